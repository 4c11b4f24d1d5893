// What a report shows of a model: its graph before and after compilation, and the kernels that it
// became. A file keeps it with --keep-graph (the section `graph`), as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/module.h"
#include "loop/dim.h"

namespace tenon::driver {

// How to keep it, on the command line and from Python.
inline constexpr char kKeepGraph[] = "--keep-graph (keep_graph=True in Python)";

// An operator, a kernel call, a parameter or the result of a function. Texts are cut
// (shown_names.h), except the name of a kernel.
struct GraphNode {
  enum class Role : uint8_t { Parameter, Operator, Result };

  Role role = Role::Operator;
  std::string label;  // the operator, kernel or library function; the parameter's name
  std::string type;   // of its value, in the language's notation
  std::vector<std::string> sources;  // the ONNX nodes that it computes
  std::vector<std::string> weights;  // constant operands: names or types
  std::vector<size_t> inputs;        // the nodes whose values it uses, all of them earlier
  bool is_kernel = false;            // then `label` is in ModelGraph::kernels
};

// The nodes of a function while they are made.
class GraphNodes {
 public:
  // Each input counts once. Returns the node's number.
  size_t add(GraphNode node);
  // The nodes that stand for a value which renames or bundles those of `node.inputs`: these, or, of
  // many, a node of its own, so that bundles within bundles don't multiply edges.
  std::vector<size_t> bundle(GraphNode node);
  std::vector<GraphNode> take() { return std::move(nodes_); }

 private:
  std::vector<GraphNode> nodes_;
};

struct FunctionGraph {
  std::string name;
  std::vector<GraphNode> before, after;  // compilation
};

struct KernelFacts {
  std::string text;  // its compute, in the language
  // The floating-point and wide integer operations of a call, over the kernel's symbols; nullopt if
  // they depend on data.
  std::optional<Dim> flops;
  // Where a call's arguments have the symbols.
  struct Symbol {
    std::string name;
    size_t argument = 0;
    std::optional<size_t> axis;  // nullopt: the argument is the integer itself
  };
  std::vector<Symbol> symbols;
};

struct ModelGraph {
  std::vector<FunctionGraph> functions;  // the exported ones
  std::map<std::string, KernelFacts> kernels;
};

// The operations and operators of one function, without the bodies of its branches and loops.
std::vector<GraphNode> graph_of(const graph::FunctionRef& function);

// The operators that a kernel computes, such as "relu_max_pool".
std::string operators_of_kernel(const std::string& kernel);

// `lowered` is what the passes made of `module`.
ModelGraph describe_model(const graph::Module& module, const graph::Module& lowered);

std::string to_json(const ModelGraph& graph);
// Throws Damaged for text that `to_json` doesn't write; `file` is its name in errors.
ModelGraph model_graph_from_json(std::string_view text, const std::string& file);

}  // namespace tenon::driver
