// Translates a model's graph to the body of @main.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/import_model.h"

namespace tenon::onnx {

// The result of importing, as far as it got.
struct ImportedGraph {
  graph::FunctionRef main;  // null if something is unsupported
  std::vector<ModelReport::Value> inputs, outputs;
  std::vector<std::string> symbols;  // in the inputs' shapes
  bool has_maps = false;             // so that the module declares their type
  std::vector<Unsupported> unsupported;
  std::vector<NodeValue> values;
};

// Throws Usage for a graph that breaks ONNX's rules; `out` then has what was found until there.
void import_graph(const Model& model, const ImportOptions& options, ImportedGraph* out);

}  // namespace tenon::onnx
