// Where a function's variables are bound and used, for passes that match groups of bindings.
#pragma once

#include <unordered_map>

#include "graph/ir/module.h"

namespace tenon::graph {

class UseDef {
 public:
  // `function` must outlive this.
  explicit UseDef(const FunctionRef& function);

  // A binding and the block that it is in; null if there is none.
  struct Place {
    const Binding* binding = nullptr;
    const Block* block = nullptr;

    explicit operator bool() const { return binding; }
  };

  // Where a variable is bound; null for a parameter, another operand and one of another function.
  Place definition(const Operand& operand) const { return find(operand).definition; }
  // The right-hand side of that binding, or null.
  ExprRef value_of(const Operand& operand) const;
  // How often a variable is used, nested blocks and the results of blocks included.
  int64_t uses(const Operand& operand) const { return find(operand).uses; }
  // The binding that alone uses a variable, and does so once; null if there is none.
  Place only_use(const Operand& operand) const;

 private:
  struct Entry {
    Place definition, last_use;
    int64_t uses = 0;
  };

  void read(const BlockRef& block);
  const Entry& find(const Operand& operand) const;

  std::unordered_map<const Var*, Entry> entries_;
};

}  // namespace tenon::graph
