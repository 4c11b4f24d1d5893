// Errors for models that break ONNX's own rules, as opposed to models that Tenon can't import.
#pragma once

#include <string>

#include "import/onnx/model.h"
#include "support/error.h"

namespace tenon::onnx {

// Without what was found and expected.
Error against_rules(const Model& model);
// The same, at a node.
Error against_rules(const Model& model, const Node& node);
[[noreturn]] void invalid(const Model& model, const std::string& found,
                          const std::string& expected);

// "node 'conv1' (Conv) of resnet.onnx".
std::string node_text(const Model& model, const Node& node);

// Throws Unsupported for operators of a version that is later than Tenon knows.
void check_opsets(const Model& model, const OpsetImports& opsets);

}  // namespace tenon::onnx
