// The tensors that a function allocates, and when the storage of each is in use, for plan_memory.
//
// All bindings of a function, those in nested blocks included, are numbered in one order: a binding
// with blocks before what they hold, and its end after. So the arms of a branch follow one another,
// and the values of one aren't alive during the next. Loops run their blocks again: what they use
// and what was made outside is in use until the loop's end. The calls of a group
// (memory.concurrent) all happen when the last one does.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/ir/module.h"
#include "graph/pass/arena.h"

namespace tenon::graph {

// A block of the function.
struct PlannedScope {
  int64_t parent = -1;               // the scope around it; -1 for the function's
  const Binding* binding = nullptr;  // in the parent, which has the block
  int64_t begin = 0, end = 0;        // of that binding
  bool loops = false;                // a loop's condition or body
};

// A storage whose tensor is written here.
struct PlannedValue {
  const Var* storage = nullptr;
  const Binding* binding = nullptr;  // of the storage
  int64_t device = 0;
  Dim bytes;
  Lifetime life;
  int64_t scope = 0;
  // Whether something may refer to it that isn't followed here: it needs a storage of its own.
  bool escapes = false;
  // Values that different arms of a branch make form a group: only one of them exists at a time.
  // The group's leader lists its members, itself included unless it escapes; other lists are empty.
  size_t leader = 0;
  std::vector<size_t> group;
};

class Lifetimes {
 public:
  explicit Lifetimes(const FunctionRef& function);

  const std::vector<PlannedValue>& values() const { return values_; }
  const PlannedScope& scope(int64_t at) const { return scopes_[static_cast<size_t>(at)]; }
  // Whether `outer` is `inner` or around it.
  bool encloses(int64_t outer, int64_t inner) const;
  int64_t common(int64_t a, int64_t b) const;
  // Where to allocate a storage of this size that is used in `scope`: in the outermost scope, but
  // not outside of `outermost`, that only loops lie between. They may not turn at all, so a
  // symbolic size must be modest, have a value for any values of its symbols, and be needed by
  // every turn; its symbols must be known before the loops.
  int64_t outside_loops(int64_t scope, const Dim& bytes, int64_t outermost) const;
  // The scope directly in `outer` that is `inner` or around it.
  int64_t child(int64_t outer, int64_t inner) const;
  // The binding of `outer` that has `inner` in a block of its own; null if they are the same.
  const Binding* entry(int64_t outer, int64_t inner) const;

 private:
  using Owners = std::vector<size_t>;  // indices of values, ascending

  int64_t add_scope(int64_t parent, const Binding* binding, bool loops);
  void block(const BlockRef& block, int64_t scope);
  void visit(const Binding& binding, int64_t scope, int64_t at);
  void visit_branch(const Binding& binding, const std::vector<BlockRef>& arms, int64_t scope);
  void visit_loop(const Binding& binding, const Loop& loop, int64_t scope);
  void tie(const std::vector<Owners>& results, const std::vector<int64_t>& arms);

  Owners owners(const Operand& operand) const;
  void use(const Operand& operand, int64_t at, int64_t scope);
  void escape(const Operand& operand);
  void escape_all(const BlockRef& block);
  void know_symbols(const TypeRef& type, int64_t at, int64_t scope);
  void finish();

  std::vector<PlannedScope> scopes_;
  std::vector<PlannedValue> values_;
  std::unordered_map<const Var*, Owners> owners_;
  struct Known {
    int64_t at, scope;
  };
  std::unordered_map<std::string, Known> symbols_;  // where each was bound first
  struct Use {
    size_t value;
    int64_t at, scope;
  };
  std::vector<Use> uses_;
  int64_t next_ = 0;
};

// Where a storage is allocated that values in several blocks use: in the innermost block around
// them, but outside of loops within the block `outermost`, before the first of them.
class StorageHome {
 public:
  StorageHome(const Lifetimes& lifetimes, int64_t outermost)
      : lifetimes_(lifetimes), outermost_(outermost) {}

  // Returns whether the value's storage is allocated outside of a loop around it.
  bool add(const PlannedValue& value);
  int64_t scope() const { return scope_; }
  const Binding* before() const;

 private:
  const Lifetimes& lifetimes_;
  const int64_t outermost_;
  int64_t scope_ = -1;
  const PlannedValue* first_ = nullptr;
};

}  // namespace tenon::graph
