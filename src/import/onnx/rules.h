// Errors for models that break ONNX's own rules, as opposed to models that Tenon can't import.
#pragma once

#include <string>

#include "import/onnx/model.h"
#include "support/error.h"

namespace tenon::onnx {

// The error for a model, to which the caller adds what was found and expected.
Error against_rules(const Model& model);
// The same for a node.
Error against_rules(const Model& model, const Node& node);
[[noreturn]] void invalid(const Model& model, const std::string& found,
                          const std::string& expected);

// "node 'conv1' (Conv) of resnet.onnx".
std::string node_text(const Model& model, const Node& node);

// Throws Unsupported for operator versions that are later than those that Tenon knows.
void check_opsets(const Model& model, const OpsetImports& opsets);

}  // namespace tenon::onnx
