// Where the evaluator lets go of values: a value that nothing reads again holds no memory, and an
// array or cell that nothing else holds is updated in place.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/ir/expr.h"

namespace tenon::graph {

// Of a function's own blocks. A place without an entry has no last uses.
class LastUses {
 public:
  using Vars = std::vector<const Var*>;

  // Literals within the function only use what they capture.
  void add(const FunctionExpr& function);

  // What nothing reads once this binding has read its operands.
  const Vars& at(const Binding& binding) const { return found(of_bindings_, &binding); }
  // What only other arms read.
  const Vars& at_begin(const Block& arm) const { return found(begins_, &arm); }
  // What nothing reads once the block has read its result.
  const Vars& at_end(const Block& block) const { return found(ends_, &block); }
  // The loop's variables, and what nothing reads once the loop has ended.
  const Vars& after_loop(const Binding& binding) const { return found(after_loops_, &binding); }

 private:
  template <class Key>
  static const Vars& found(const std::unordered_map<const Key*, Vars>& map, const Key* key) {
    static const Vars none;
    const auto at = map.find(key);
    return at == map.end() ? none : at->second;
  }

  void block(const Block& block);
  void binding(const Binding& binding);
  void arms(const ExprRef& value);
  void loop(const Binding& binding);
  void use(const VarRef& var, Vars* last_uses);

  std::unordered_map<const Binding*, Vars> of_bindings_, after_loops_;
  std::unordered_map<const Block*, Vars> begins_, ends_;

  // The walk, backwards.
  std::unordered_set<const Var*> live_;
  Vars* became_live_ = nullptr;  // in the present arm, in the order of the walk
};

}  // namespace tenon::graph
