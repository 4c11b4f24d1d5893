// Pictures of a model's graph.
#pragma once

#include <string>
#include <vector>

#include "driver/model_graph.h"
#include "vm/isa/unit.h"

namespace tenon::report {

// What a picture has at most, so that a browser can show it. All of its functions share this.
inline constexpr size_t kMostNodes = 20'000, kMostEdges = 60'000;
inline constexpr size_t kMostText = size_t{8} << 20;  // bytes of its nodes' names and types

// Counts what a picture has.
class PictureSize {
 public:
  // Whether the node fits. After one that doesn't, none does: nodes use only those before them.
  bool take(const driver::GraphNode& node);

 private:
  size_t nodes_ = 0, edges_ = 0, text_ = 0;
  bool is_full_ = false;
};

// One function.
struct Drawing {
  std::string title;
  std::vector<driver::GraphNode> nodes;
  size_t left_out = 0;  // further nodes, which didn't fit
};

// Functions, without what doesn't fit; the title of one that lacks nodes says so.
class Picture {
 public:
  Picture(std::vector<Drawing> drawings);
  const std::vector<Drawing>& drawings() const { return drawings_; }

 private:
  std::vector<Drawing> drawings_;
};

// The exported functions of a program from their code, for files without a graph of their own:
// calls of kernels and packed functions, with the ONNX nodes that they compute.
Picture picture_of_code(const vm::Unit& unit);

// One SVG of all functions, below each other. Each node is a `<g class="node" data-node="INDEX">`
// with its full names in a `<title>`; long names are cut in the picture. Nodes are numbered through
// all functions. Where an edge is cut (layout.h), a `<g class="cut" data-to="INDEX">` names the
// value at each end; INDEX is the node at the other end.
enum class Style : uint8_t { Own, FromPage /* page/page.css */ };
std::string to_svg(const Picture& picture, Style style = Style::Own);

// The same for Graphviz.
std::string to_dot(const Picture& picture);

// Text with &, <, >, quotes and control characters escaped, for HTML and XML. Invalid UTF-8 becomes
// U+FFFD.
std::string escape_markup(std::string_view text);

}  // namespace tenon::report
