// Imports ONNX models as graph IR.
//
// The module has one function, @main. Its parameters are the graph's inputs that are not
// initializers; its result is the graph's output, or a tuple of several. Initializers become
// constants that share the model's memory. Model functions are expanded inline. Every binding's
// span names the node that it came from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir/module.h"
#include "import/onnx/model.h"

namespace tenon::onnx {

struct ImportOptions {
  // Sizes for symbolic dimensions, by the symbol's name in the model or in graph IR.
  std::map<std::string, int64_t> dims;
  // Shapes for inputs, by name; -1 leaves a dimension as in the model. They fix symbols for all
  // inputs. Required for inputs whose rank the model doesn't state.
  std::map<std::string, std::vector<int64_t>> shapes;
};

// A value of the model's graph that a node computes.
struct NodeValue {
  std::string name;      // ONNX's
  std::string node, op;  // of the node: its name, and "Conv" or "com.microsoft:Gelu"
  graph::Operand value;  // in @main; never null
};

struct ImportResult {
  graph::Module module;
  std::vector<std::string> inputs;   // ONNX names, in the order of @main's parameters
  std::vector<std::string> outputs;  // in the order of its results
  // The outputs of the graph's own nodes, not of those in inner graphs and functions, in the order
  // of evaluation.
  std::vector<NodeValue> values;
};

// Throws Error: what read_model throws; Unsupported with a table of every node that cannot be
// imported; Usage with the node's span for a graph that breaks ONNX's rules.
ImportResult import_model(const std::string& path, const ImportOptions& options = {});
ImportResult import_model(const Model& model, const ImportOptions& options = {});

// What can't be imported.
struct Unsupported {
  enum class What : uint8_t { Node, Input, Initializer };

  What what = What::Node;
  std::string name;
  std::string domain, op;  // of a node; "" is ai.onnx
  std::string reason;

  // The operator as in ModelReport::operators, or what else it is: "(input)", "(initializer)".
  std::string op_text() const;
};

// Information about a model, without compiling it. Types are in the text form of graph IR.
struct ModelReport {
  struct Value {
    std::string name;
    std::optional<std::string> type;  // nullopt if it depends on what can't be imported
    bool rank_known = true;
  };
  std::string file, producer;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // "" is ai.onnx
  std::vector<Value> inputs, outputs;
  std::vector<std::string> symbols;          // in the inputs' shapes
  std::map<std::string, int64_t> operators;  // "Conv", "com.microsoft:Gelu": how many nodes, with
                                             // those of inner graphs and expanded functions
  int64_t nodes = 0;
  int64_t constants = 0, constant_bytes = 0;
  std::vector<Unsupported> unsupported;
  std::string problem;  // the text of another error that prevents importing, or empty
  ErrorKind problem_kind = ErrorKind::Usage;
};

// Throws only what read_model throws.
ModelReport inspect_model(const std::string& path, const ImportOptions& options = {});
ModelReport inspect_model(const Model& model, const ImportOptions& options = {});

}  // namespace tenon::onnx
