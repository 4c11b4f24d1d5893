// The names that are visible in one graph or function body while it is imported.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "graph/ir/expr.h"
#include "import/onnx/model.h"

namespace tenon::onnx {

class Scope {
 public:
  // What a name stands for. A result of a node that can't be imported is unusable; an operand that
  // a function's call leaves out is absent, but not unusable.
  struct Slot {
    graph::Operand value;
    bool unusable = false;
  };
  // In a function's body: the attributes of its call by name, null if the call doesn't have one.
  using Arguments = std::map<std::string, const Attribute*>;

  // The scope of the model's graph.
  explicit Scope(const OpsetImports& opsets) : opsets_(&opsets) {}
  // The scope of a graph inside a node of this one: it sees the names of this scope, which must
  // outlive it.
  Scope inner() const;
  // The scope of the body of a function that the node `call` calls: it sees no names of this scope.
  // `arguments` must outlive it.
  Scope body(const Node& call, const OpsetImports& opsets, const Arguments& arguments) const;

  // Null if nothing has that name in this graph or the surrounding ones.
  const Slot* find(const std::string& name) const;
  // Whether this graph itself defines the name.
  bool has(const std::string& name) const { return names_.contains(name); }
  // Defines a name that this graph doesn't define yet.
  void define(const std::string& name, graph::Operand value);
  void define_unusable(const std::string& name);
  void define(const std::string& name, const Slot& slot) { names_[name] = slot; }

  // The version of a domain's operators, or `otherwise` if the domain isn't imported.
  int64_t opset(const std::string& domain, int64_t otherwise) const;
  const OpsetImports& opsets() const { return *opsets_; }
  int function_depth() const { return function_depth_; }

  // The node as seen in this scope: its name is prefixed by the surrounding calls, and references
  // to attributes of the function are replaced by the call's values. `storage` holds it if it
  // differs.
  const Node& resolve(const Node& node, Node* storage) const;

 private:
  std::unordered_map<std::string, Slot> names_;
  const Scope* outer_ = nullptr;
  const OpsetImports* opsets_;
  const Arguments* arguments_ = nullptr;
  std::string prefix_;  // the surrounding calls, separated by "/"
  int function_depth_ = 0;
};

}  // namespace tenon::onnx
