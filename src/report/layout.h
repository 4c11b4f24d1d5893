// A layered layout of directed graphs, after Sugiyama: data flows from top to bottom.
#pragma once

#include <cstddef>
#include <vector>

namespace tenon::report {

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double width = 0, height = 0;
  std::vector<size_t> inputs;  // earlier boxes, to each of which an edge leads
};

struct Placed {
  Point centre;
  // Of the edge from each input: from the input's lower side to this box's upper side.
  std::vector<std::vector<Point>> edges;
};

struct Layout {
  std::vector<Placed> boxes;
  double width = 0, height = 0;  // everything lies within (0, 0) and these
};

// In time about linear in the boxes and the layers that their edges cross.
Layout lay_out(const std::vector<Box>& boxes);

}  // namespace tenon::report
