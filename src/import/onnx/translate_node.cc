#include "import/onnx/translate_node.h"

#include <algorithm>

#include "import/onnx/container.h"
#include "import/onnx/rules.h"

namespace tenon::onnx {

namespace {

// "x: tensor[n, 4; f32], w: tensor[4; f32]".
std::string operands_text(const Node& n, const Operands& operands) {
  constexpr size_t kMost = 6;  // Concat may have hundreds
  std::vector<std::string> parts;
  for (size_t i = 0; i < operands.size() && i < kMost; ++i) {
    if (operands[i]) parts.push_back(cat(n.inputs[i], ": ", graph::type_of(operands[i])));
  }
  if (operands.size() > kMost) parts.push_back(cat("and ", operands.size() - kMost, " more"));
  return printable(join(parts, ", "));
}

// The name of the first operand whose rank isn't known, or "".
std::string without_rank(const Node& n, const Operands& operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    const auto* t = graph::type_as<graph::TensorType>(graph::type_of(operands[i]));
    if (t && t->rank < 0) return n.inputs[i];
  }
  return "";
}

// The attribute or output that the translation didn't handle, or "".
std::string left_out(const NodeContext& cx, const Operands& results) {
  if (const Attribute* a = cx.unread()) return cat("attribute '", a->name, "' not implemented");
  for (size_t i = 0; i < cx.outputs(); ++i) {
    if (cx.wants(i) && (i >= results.size() || !results[i])) {
      return cat("output ", i, " ('", cx.node().outputs[i], "') not implemented");
    }
  }
  return "";
}

}  // namespace

Translation translate_node(const Model& model, const Node& node, Translate translate,
                           Operands operands, int64_t opset, graph::Builder& builder,
                           InnerGraph inner_graph) {
  builder.at(Span::node(node.name));
  if (std::ranges::any_of(operands, is_imaginary)) {
    return {Operands(node.outputs.size(), imaginary(builder)), {}};
  }
  const std::string types = operands_text(node, operands);
  const std::string open = without_rank(node, operands);
  NodeContext cx(builder, node, std::move(operands), opset, std::move(inner_graph));
  Translation out;
  try {
    out.results = translate(cx);
    out.problem = left_out(cx, out.results);
    if (!out.problem.empty()) out.results.clear();
  } catch (Error& e) {
    if (e.kind() == ErrorKind::Unsupported) return {{}, e.message()};
    // Errors of the importer have rows; one without is an operator's, for authors of IR.
    if (e.kind() == ErrorKind::Usage && e.rows().empty() && !open.empty()) {
      return {{}, cat("the rank of '", printable(open), "' is known only at run time")};
    }
    e.at(Span::node(node.name));
    const bool has_place = std::any_of(e.rows().begin(), e.rows().end(),
                                       [](const Error::Row& r) { return r.label == "where"; });
    if (has_place) throw;
    if (!types.empty()) e.first_row("operands", types);
    e.first_row("where", node_text(model, node));
    throw;
  }
  for (Operand& value : out.results) value = cx.with_symbols(value);
  return out;
}

}  // namespace tenon::onnx
