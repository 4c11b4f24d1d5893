#include "report/picture.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>

#include "driver/shown_names.h"
#include "json/json.h"
#include "report/code_calls.h"
#include "report/layout.h"
#include "support/utf8.h"
#include "vm/isa/allocation.h"

namespace tenon::report {
namespace {

using driver::GraphNode;
using Role = GraphNode::Role;
using driver::shortened;
using driver::shown_name;
using driver::shown_names;

constexpr double kLetter = 6.6, kLine = 16, kPadding = 9;  // of 11 px monospace
constexpr size_t kLongest = 46;                            // bytes of a line in a picture

size_t letters(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// What a picture shows of a name: one line, without characters that change how others are shown.
std::string name_text(const std::string& name) {
  return shortened(printable(name), kLongest);
}

std::string sources_text(const GraphNode& node) {
  if (node.sources.empty()) return "";
  const std::string first = name_text(node.sources[0]);
  return node.sources.size() == 1 ? first : cat(first, " +", node.sources.size() - 1);
}

// What a box says: the operator, the ONNX nodes, the type.
std::vector<std::string> lines_of(const GraphNode& node) {
  std::vector<std::string> lines = {name_text(node.label)};
  if (std::string sources = sources_text(node); !sources.empty()) lines.push_back(sources);
  if (!node.type.empty()) lines.push_back(name_text(node.type));
  return lines;
}

std::string full_text(const GraphNode& node) {
  std::string text = printable(node.label);
  if (!node.type.empty()) text += cat("\n", printable(node.type));
  if (!node.sources.empty()) text += cat("\nfrom ", printable(join(node.sources, ", ")));
  if (!node.weights.empty()) text += cat("\nconstants: ", printable(join(node.weights, ", ")));
  return text;
}

const char* class_of(const GraphNode& node) {
  if (node.role == Role::Parameter) return "node parameter";
  if (node.role == Role::Result) return "node result";
  return node.is_kernel ? "node kernel" : "node";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// The edge as a smooth curve through its points.
std::string path_of(const std::vector<Point>& points) {
  std::string path = cat("M", number(points[0].x), " ", number(points[0].y));
  for (size_t i = 1; i < points.size(); ++i) {
    const Point &a = points[i - 1], &b = points[i];
    const double middle = (a.y + b.y) / 2;
    path += cat("C", number(a.x), " ", number(middle), " ", number(b.x), " ", number(middle), " ",
                number(b.x), " ", number(b.y));
  }
  return path;
}

constexpr char kStyle[] =
    "svg{font:11px ui-monospace,Menlo,Consolas,monospace;background:#fff}"
    ".node rect{fill:#eef3fb;stroke:#5b7db1;rx:5px}.kernel rect{fill:#fdf1e3;stroke:#c98a3d}"
    ".parameter rect{fill:#e9f6ee;stroke:#4c9a6a;rx:14px}"
    ".result rect{fill:#f6ecf8;stroke:#9460a4;rx:14px}"
    ".node text{fill:#1b2430;text-anchor:middle}.node .name{font-weight:600}"
    ".node .type{fill:#5a6675}.edge{fill:none;stroke:#98a4b3;stroke-width:1.2}"
    ".cut rect{fill:#fff;stroke:#98a4b3;stroke-dasharray:3 2;rx:3px}"
    ".cut text{fill:#5a6675;text-anchor:middle}"
    ".title{font-size:14px;font-weight:600;fill:#1b2430}"
    "@media(prefers-color-scheme:dark){svg{background:#14181e}"
    ".node rect{fill:#1e2a3d;stroke:#6f93c9}.kernel rect{fill:#3a2b18;stroke:#d39a52}"
    ".parameter rect{fill:#183326;stroke:#5fb483}.result rect{fill:#33203a;stroke:#b27fc3}"
    ".node text,.title{fill:#e4e9f0}.node .type{fill:#9aa7b8}.edge{stroke:#5b6878}"
    ".cut rect{fill:#14181e;stroke:#5b6878}.cut text{fill:#9aa7b8}}";

std::string arrow(const Point& tip) {
  return cat("M", number(tip.x - 3.5), " ", number(tip.y - 6), "L", number(tip.x), " ",
             number(tip.y), "L", number(tip.x + 3.5), " ", number(tip.y - 6));
}

// What names a node's value where an edge is cut. The number is that of DOT.
std::string label_of(const GraphNode& node, size_t number) {
  const std::string sources = sources_text(node);
  return cat("n", number, " ", sources.empty() ? name_text(node.label) : sources);
}

double title_width(const std::string& title) {
  constexpr double kTitleLetter = 8.5;  // of 14 px
  return static_cast<double>(letters(title)) * kTitleLetter;
}

double label_width(const std::string& label) {
  return static_cast<double>(letters(label)) * kLetter + kPadding;
}

// A label where an edge is cut; a click on it leads to node `to`.
std::string cut_label(const Point& centre, const std::string& label, size_t to) {
  const double width = label_width(label);
  const std::string box = cat("<rect x=\"", number(centre.x - width / 2), "\" y=\"",
                              number(centre.y - kLabelHeight / 2), "\" width=\"", number(width),
                              "\" height=\"", number(kLabelHeight), "\"/>");
  return cat("<g class=\"cut\" data-to=\"", to, "\">", box, "<text x=\"", number(centre.x),
             "\" y=\"", number(centre.y + 4), "\">", escape_markup(label), "</text></g>\n");
}

// The nodes and edges of one function; its nodes are numbered from `first` on.
std::string group(const std::vector<GraphNode>& nodes, const Layout& layout, size_t first) {
  std::string out;
  const auto draw = [&](const Edge& edge) {
    out +=
        cat("<path class=\"edge\" d=\"", path_of(edge.points), arrow(edge.points.back()), "\"/>\n");
  };
  std::vector<size_t> first_cut_user(nodes.size());  // of each node with a label below it
  for (size_t i = nodes.size(); i-- > 0;) {
    const std::vector<Edge>& edges = layout.boxes[i].edges;
    for (size_t n = 0; n < edges.size(); ++n) {
      if (edges[n].label) first_cut_user[nodes[i].inputs[n]] = i;
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Placed& box = layout.boxes[i];
    for (size_t n = 0; n < box.edges.size(); ++n) {
      draw(box.edges[n]);
      if (!box.edges[n].label) continue;
      const size_t input = nodes[i].inputs[n];
      out += cut_label(*box.edges[n].label, label_of(nodes[input], first + input), first + input);
    }
    if (!box.leaves) continue;
    draw(*box.leaves);
    out += cut_label(*box.leaves->label, label_of(nodes[i], first + i), first + first_cut_user[i]);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    const std::vector<std::string> lines = lines_of(node);
    const Point& centre = layout.boxes[i].centre;
    size_t longest = 0;
    for (const std::string& line : lines) longest = std::max(longest, letters(line));
    const double width = static_cast<double>(longest) * kLetter + 2 * kPadding;
    const double height = static_cast<double>(lines.size()) * kLine + kPadding;
    const double top = centre.y - height / 2;
    out += cat("<g class=\"", class_of(node), "\" data-node=\"", first + i, "\"><title>",
               escape_markup(full_text(node)), "</title><rect x=\"", number(centre.x - width / 2),
               "\" y=\"", number(top), "\" width=\"", number(width), "\" height=\"", number(height),
               "\"/>");
    for (size_t line = 0; line < lines.size(); ++line) {
      const char* kind = line == 0 ? "name" : line + 1 == lines.size() ? "type" : "source";
      out += cat("<text class=\"", kind, "\" x=\"", number(centre.x), "\" y=\"",
                 number(top + kPadding / 2 + static_cast<double>(line) * kLine + 11.5), "\">",
                 escape_markup(lines[line]), "</text>");
    }
    out += "</g>\n";
  }
  return out;
}

// Nodes are numbered from `first` on.
Layout layout_of(const std::vector<GraphNode>& nodes, size_t first) {
  std::vector<Box> boxes;
  for (const GraphNode& node : nodes) {
    Box box;
    box.label_width = label_width(label_of(node, first + boxes.size()));
    const std::vector<std::string> lines = lines_of(node);
    for (const std::string& line : lines) {
      box.width = std::max(box.width, static_cast<double>(letters(line)) * kLetter);
    }
    box.width += 2 * kPadding;
    box.height = static_cast<double>(lines.size()) * kLine + kPadding;
    box.inputs = node.inputs;
    boxes.push_back(std::move(box));
  }
  return lay_out(boxes);
}

std::string type_text(const vm::FreshTensor& tensor) {
  if (!tensor.dims) return "";
  std::vector<std::string> sizes;
  for (const vm::Word word : *tensor.dims) {
    const vm::Arg size(word);
    sizes.push_back(size.is(vm::ArgKind::Immediate) ? cat(size.value()) : "?");
  }
  return tensor_type_text(join(sizes, ", "), tensor.dtype);
}

// Makes the nodes of a function from the calls in its code, as far as they fit the picture.
class CodeDrawing {
 public:
  CodeDrawing(const vm::Unit& unit, PictureSize* size) : unit_(unit), size_(size) {}

  Drawing of(const vm::FunctionUnit& function) {
    for (uint32_t i = 0; i < function.params.size(); ++i) {
      GraphNode node;
      node.role = Role::Parameter;
      node.label = function.params[i].name;
      node.type = cat(function.params[i].type);
      makers_[i].nodes = add(std::move(node));
    }
    result_.role = Role::Result;
    result_.label = "result";
    if (!function.result_names.empty()) {
      result_.label = join(shown_names(function.result_names), ", ");
    }
    result_.label = shown_name(result_.label);
    result_.type = shown_name(cat(function.result));
    for_each_step(unit_, function, [&](const CodeStep& step) { draw(step); });
    return {function.name, nodes_.take(), left_out_};
  }

 private:
  struct Maker {
    std::vector<size_t> nodes;  // none for sizes and memory
    std::string type;           // of a tensor that a call writes
  };

  // The node's number; none if it doesn't fit.
  std::vector<size_t> add(GraphNode node) {
    if (size_->take(node)) return {nodes_.add(std::move(node))};
    ++left_out_;
    return {};
  }

  void draw(const CodeStep& step) {
    const vm::OpcodeInfo& info = *step.instruction.info;
    GraphNode node = info.op_class == vm::OpClass::Return ? result_ : GraphNode();
    for (const uint32_t constant : step.constants) {
      const std::string& name = unit_.constants[constant].name;
      node.weights.push_back(name.empty() ? cat("constant ", constant) : shown_name(name));
    }
    node.weights = shown_names(node.weights);
    for (const uint32_t reg : step.inputs) {
      const std::vector<size_t>& from = makers_[reg].nodes;
      node.inputs.insert(node.inputs.end(), from.begin(), from.end());
    }
    Maker made;
    if (step.call) {
      made.nodes = draw_call(step, std::move(node));
    } else if (node.role == Role::Result) {
      add(std::move(node));
    } else if (const auto tensor = vm::fresh_tensor(step.instruction)) {
      made.type = type_text(*tensor);
    } else if (!step.writes.empty() && info.op_class != vm::OpClass::Match) {
      // It renames, bundles or takes apart.
      node.label = step.callee ? label_of(*step.callee) : cat(info.mnemonic);
      made.nodes = nodes_.bundle(std::move(node));
    }
    for (const uint32_t reg : step.writes) makers_[reg] = made;
  }

  std::vector<size_t> draw_call(const CodeStep& step, GraphNode node) {
    node.label = label_of(step.call->callee);
    node.is_kernel = step.call->callee.kind == Callee::Kind::Kernel;
    if (step.call->from) node.sources = shown_names(step.call->from->nodes);
    const std::vector<uint32_t> outputs = outputs_of(step);
    for (const uint32_t reg : outputs) {
      if (node.type.size() > driver::kLongestName) break;
      node.type += cat(node.type.empty() ? "" : ", ", makers_[reg].type);
    }
    node.type = shown_name(node.type);
    const std::vector<size_t> number = add(std::move(node));
    for (const uint32_t reg : outputs) makers_[reg].nodes = number;
    return number;
  }

  static std::string label_of(const Callee& callee) { return shown_name(callee.label()); }

  // The new tensors that a call writes, or else, if it has no result, the last tensor, in place.
  std::vector<uint32_t> outputs_of(const CodeStep& step) {
    if (!step.call->outputs.empty() || !step.writes.empty()) return step.call->outputs;
    for (size_t i = step.inputs.size(); i-- > 0;) {
      if (!makers_[step.inputs[i]].type.empty()) return {step.inputs[i]};
    }
    return {};
  }

  const vm::Unit& unit_;
  PictureSize* size_;
  driver::GraphNodes nodes_;
  size_t left_out_ = 0;
  GraphNode result_;
  std::map<uint32_t, Maker> makers_;  // by register
};

size_t bytes_of(const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  return bytes;
}

// What the picture says above a function.
std::string title_of(const Drawing& drawing) {
  if (drawing.left_out == 0) return drawing.title;
  return cat(drawing.title, ": ", drawing.left_out, " of ",
             counted(drawing.nodes.size() + drawing.left_out, "node"),
             " left out, because a picture has at most ", kMostNodes, " nodes, ", kMostEdges,
             " edges and ", bytes_text(kMostText), " of names");
}

}  // namespace

bool PictureSize::take(const GraphNode& node) {
  const size_t text =
      node.label.size() + node.type.size() + bytes_of(node.sources) + bytes_of(node.weights);
  is_full_ = is_full_ || nodes_ == kMostNodes || node.inputs.size() > kMostEdges - edges_ ||
             text > kMostText - text_;
  if (is_full_) return false;
  ++nodes_;
  edges_ += node.inputs.size();
  text_ += text;
  return true;
}

Picture::Picture(std::vector<Drawing> drawings) : drawings_(std::move(drawings)) {
  PictureSize size;
  for (Drawing& drawing : drawings_) {
    const auto rest = std::ranges::find_if_not(
        drawing.nodes, [&](const GraphNode& node) { return size.take(node); });
    drawing.left_out += static_cast<size_t>(drawing.nodes.end() - rest);
    drawing.nodes.erase(rest, drawing.nodes.end());
  }
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      // A whole character of UTF-8, or a byte that isn't part of one.
      const size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
      const std::string_view character = text.substr(i, length);
      if (is_utf8(character)) {
        out += character;
        i += character.size();
      } else {
        out += "\xef\xbf\xbd";
        ++i;
      }
      continue;
    }
    ++i;
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // XML has no other control characters.
        out += c >= ' ' || c == '\n' || c == '\t' ? std::string(1, static_cast<char>(c))
                                                  : "\xef\xbf\xbd";
    }
  }
  return out;
}

std::string to_svg(const Picture& picture, Style style) {
  std::string body;
  size_t first = 0;
  double width = 0, height = 0;
  for (const Drawing& drawing : picture.drawings()) {
    const std::string title = printable(title_of(drawing));
    const Layout layout = layout_of(drawing.nodes, first);
    constexpr double kTitle = 28;
    body += cat("<text class=\"title\" x=\"16\" y=\"", number(height + 22), "\">",
                escape_markup(title), "</text>\n<g transform=\"translate(0 ",
                number(height + kTitle), ")\">\n", group(drawing.nodes, layout, first), "</g>\n");
    first += drawing.nodes.size();
    width = std::max(width, layout.width);
    if (drawing.left_out > 0) width = std::max(width, 32 + title_width(title));
    height += kTitle + layout.height;
  }
  const std::string rules = style == Style::Own ? cat("<style>", kStyle, "</style>\n") : "";
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", number(width), "\" height=\"",
             number(height), "\" viewBox=\"0 0 ", number(width), " ", number(height), "\">\n",
             rules, body, "</svg>\n");
}

std::string to_dot(const Picture& picture) {
  const auto in_quotes = [](const std::string& text) {
    const std::string quoted_text = tenon::quoted(text);
    return quoted_text.substr(1, quoted_text.size() - 2);
  };
  std::string out = "digraph model {\n  node [shape=box, fontname=monospace];\n";
  size_t first = 0;
  for (const Drawing& drawing : picture.drawings()) {
    out += cat("  subgraph \"cluster_", in_quotes(drawing.title), "\" {\n    label=\"",
               in_quotes(title_of(drawing)), "\";\n");
    for (size_t i = 0; i < drawing.nodes.size(); ++i) {
      const GraphNode& node = drawing.nodes[i];
      std::string label;
      for (const std::string& line : lines_of(node)) {
        label += cat(label.empty() ? "" : "\\n", in_quotes(line));
      }
      out += cat("    n", first + i, " [label=\"", label, "\"",
                 node.role == Role::Operator ? "" : ", shape=ellipse", "];\n");
      for (const size_t input : node.inputs)
        out += cat("    n", first + input, " -> n", first + i, ";\n");
    }
    out += "  }\n";
    first += drawing.nodes.size();
  }
  return out + "}\n";
}

Picture picture_of_code(const vm::Unit& unit) {
  PictureSize size;
  std::vector<Drawing> drawings;
  for (const vm::FunctionUnit& function : unit.functions) {
    if (function.exported) drawings.push_back(CodeDrawing(unit, &size).of(function));
  }
  return drawings;
}

}  // namespace tenon::report
