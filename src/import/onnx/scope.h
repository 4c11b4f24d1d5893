// The names of one graph or function body while it is imported.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "graph/ir/expr.h"
#include "import/onnx/model.h"

namespace tenon::onnx {

class Scope {
 public:
  // What a name stands for. A value that a node which can't be imported makes is unusable; an
  // operand that a function's call leaves out is absent, without being unusable.
  struct Slot {
    graph::Operand value;
    bool unusable = false;
  };
  // In a function's body: its call's attributes by name, null where the call has none.
  using Arguments = std::map<std::string, const Attribute*>;

  // Of the model's graph.
  explicit Scope(const OpsetImports& opsets) : opsets_(&opsets) {}
  // Of a graph inside a node of this one: it sees the names here. Lives no longer than this.
  Scope inner() const;
  // Of the body of a function that the node `call` calls: it sees none of the names here.
  // `arguments` outlives it.
  Scope body(const Node& call, const OpsetImports& opsets, const Arguments& arguments) const;

  // Null when nothing has that name, here or in the graphs around.
  const Slot* find(const std::string& name) const;
  // Whether this graph itself has the name.
  bool has(const std::string& name) const { return names_.contains(name); }
  // The name must be new here.
  void define(const std::string& name, graph::Operand value);
  void define_unusable(const std::string& name);
  void define(const std::string& name, const Slot& slot) { names_[name] = slot; }

  // The version of a domain's operators; `otherwise` for a domain that isn't imported.
  int64_t opset(const std::string& domain, int64_t otherwise) const;
  const OpsetImports& opsets() const { return *opsets_; }
  int function_depth() const { return function_depth_; }

  // The node as it reads here: named after the calls around it, its references to attributes of
  // the function replaced by the call's values. `storage` holds it where it differs.
  const Node& resolve(const Node& node, Node* storage) const;

 private:
  std::unordered_map<std::string, Slot> names_;
  const Scope* outer_ = nullptr;
  const OpsetImports* opsets_;
  const Arguments* arguments_ = nullptr;
  std::string prefix_;  // the calls around, "/" between
  int function_depth_ = 0;
};

}  // namespace tenon::onnx
