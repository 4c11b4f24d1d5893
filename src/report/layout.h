// A layered layout of directed graphs, after Sugiyama: data flows from top to bottom.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tenon::report {

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double width = 0, height = 0;
  std::vector<size_t> inputs;  // earlier boxes, to each of which an edge leads
  double label_width = 0;      // of the label that names its value where an edge is cut
};

// An edge that would pass more layers than this is cut: a label below its input and one above its
// user stand for what is between them, so that neither the work nor the picture grows with the
// layers that edges cross.
inline constexpr size_t kMostPassed = 16;
inline constexpr double kLabelHeight = 18;

// From the lower side of the input to the upper side of the user, or from the label there.
struct Edge {
  std::vector<Point> points;
  std::optional<Point> label;  // the middle of the label, if the edge is cut
};

struct Placed {
  Point centre;
  std::vector<Edge> edges;     // from each input
  std::optional<Edge> leaves;  // to the label below the box, if an edge to a user is cut
};

struct Layout {
  std::vector<Placed> boxes;
  double width = 0, height = 0;  // everything lies within (0, 0) and these
};

// In time about linear in the boxes and their inputs.
Layout lay_out(const std::vector<Box>& boxes);

}  // namespace tenon::report
