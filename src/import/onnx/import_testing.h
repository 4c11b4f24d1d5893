// For tests of the importer: builds models by hand and returns their text or error.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "import/onnx/import_model.h"
#include "import/onnx/model_maker_testing.h"

namespace tenon::onnx {

using M = ModelMaker;

class ImportModel : public testing::Test {
 protected:
  static void SetUpTestSuite() { graph::register_operators(); }
};

inline std::string text(const ModelMaker& m, const ImportOptions& options = {}) {
  return graph::to_text(import_model(m.model, options).module);
}

inline Error error_of(const ModelMaker& m, const ImportOptions& options = {}) {
  try {
    import_model(m.model, options);
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorKind::Internal, "nothing was thrown");
}

// An inner graph without inputs.
inline Graph graph_of(const std::vector<Node>& nodes, const std::string& output) {
  Graph g;
  g.nodes = nodes;
  Value v;
  v.name = output;
  g.outputs.push_back(v);
  return g;
}

}  // namespace tenon::onnx
