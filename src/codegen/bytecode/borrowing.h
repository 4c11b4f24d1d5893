// Which parameters a function need not own.
#pragma once

#include <unordered_set>

#include "graph/ir/module.h"

namespace tenon::codegen {

// A parameter that holds a cell, a tuple or an array is borrowed if its function only matches it,
// reads its fields, elements or size, or passes it on as borrowed; so is a variable for a field of
// such a value. Nothing counts references to them: the caller keeps what it lends. (The idea, too,
// is that of Ullrich and de Moura, "Counting Immutable Beans", 2019.)
//
// Three rules keep what owning is good for:
//   - A part that is kept, or passed on as owned, makes the whole owned: if nothing else refers to
//     the whole, the part moves, and may be changed in place. Parts whose type is a parameter, as
//     in @fold of any list, don't count: mostly they are numbers, or the list is still needed.
//   - What is matched where a cell of as many fields is made is owned: the new cell may take its
//     memory.
//   - A tail call that may lead back to its function keeps its constant space: an argument of it
//     that is owned makes its parameter owned. Any other tail call that lends what its frame owns
//     becomes a call that returns.
// Parameters of functions that are values are owned: who calls one doesn't know it.
class Borrowing {
 public:
  // Takes nearly linear time.
  explicit Borrowing(const graph::Module& module);

  // Of a parameter, a pattern's variable, or a variable for a field.
  bool is_borrowed(const graph::Var* var) const { return borrowed_.contains(var); }

 private:
  std::unordered_set<const graph::Var*> borrowed_;
};

}  // namespace tenon::codegen
