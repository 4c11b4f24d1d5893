// Pictures of a model's graph.
#pragma once

#include <string>
#include <vector>

#include "driver/model_graph.h"
#include "vm/isa/unit.h"

namespace tenon::report {

// The graph of a function from its code, for files without a graph of their own: calls of kernels
// and packed functions, with the ONNX nodes that they compute.
std::vector<driver::GraphNode> graph_of_code(const vm::Unit& unit,
                                             const vm::FunctionUnit& function);

// One SVG of all functions, below each other. Each node is a `<g class="node" data-node="INDEX">`
// with its full names in a `<title>`; long names are cut in the picture. Nodes are numbered through
// all functions. Where an edge is cut (layout.h), a `<g class="cut" data-to="INDEX">` names the
// value at each end; INDEX is the node at the other end.
struct Drawing {
  std::string title;
  std::vector<driver::GraphNode> nodes;
};
enum class Style : uint8_t { Own, FromPage /* page/page.css */ };
std::string to_svg(const std::vector<Drawing>& drawings, Style style = Style::Own);

// The same for Graphviz.
std::string to_dot(const std::vector<Drawing>& drawings);

// Text with &, <, >, quotes and control characters escaped, for HTML and XML. Invalid UTF-8 becomes
// U+FFFD.
std::string escape_markup(std::string_view text);

}  // namespace tenon::report
