#include "import/onnx/rules.h"

#include "import/onnx/count_nodes.h"
#include "import/onnx/op_table.h"
#include "support/text.h"

namespace tenon::onnx {

Error against_rules(const Model& model) {
  Error e(ErrorKind::Usage, cat(printable(model.file), " breaks ONNX's rules"));
  return e.help("export the model again, or correct it; `onnx.checker` lists what is wrong");
}

Error against_rules(const Model& model, const Node& node) {
  return against_rules(model).at(Span::node(node.name)).where(node_text(model, node));
}

void invalid(const Model& model, const std::string& found, const std::string& expected) {
  throw against_rules(model).found(found).expected(expected);
}

std::string node_text(const Model& model, const Node& node) {
  return cat("node '", printable(node.name), "' (", printable(op_text(node)), ") of ",
             printable(model.file));
}

void check_opsets(const Model& model, const OpsetImports& opsets) {
  auto found = opsets.find("");
  if (found != opsets.end() && (found->second < 1 || found->second > kNewestOpset)) {
    throw Error(ErrorKind::Unsupported,
                cat(printable(model.file), " uses operators of an unknown version"))
        .found(cat("opset ", found->second))
        .expected(cat("1 to ", kNewestOpset))
        .help("export it for an earlier opset; `onnx.version_converter` may convert it");
  }
}

}  // namespace tenon::onnx
