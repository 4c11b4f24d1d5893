// A model's graph to the body of @main.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/import_model.h"

namespace tenon::onnx {

// What importing found, as far as it came.
struct ImportedGraph {
  graph::FunctionRef main;  // null while something is unsupported
  std::vector<ModelReport::Value> inputs, outputs;
  std::vector<std::string> symbols;  // of the inputs' shapes
  std::vector<UnsupportedNode> unsupported;
};

// Throws Usage for a graph that breaks ONNX's rules; `out` then holds what was found before.
void import_graph(const Model& model, const ImportOptions& options, ImportedGraph* out);

}  // namespace tenon::onnx
