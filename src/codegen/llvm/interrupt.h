// Interruptible loops: a function counts its work and polls the runtime, every few milliseconds,
// whether its call should stop.
//
// Work of a small constant amount isn't counted in place but by the enclosing loop. So register
// tiles and the loops in them pay nothing, and a check is a subtraction in memory per hundreds of
// microseconds. Private to this folder: it exposes LLVM types.
#pragma once

#include <optional>
#include <unordered_map>

#include "codegen/llvm/function.h"

namespace tenon::codegen {

// Counts work, in the units of work.h.
class WorkCount {
 public:
  static constexpr int64_t kBetweenPolls = 1 << 20;
  static constexpr int64_t kUncounted = 1 << 19;  // work that a statement may do uncounted

  // From this much work per iteration on, counting each iteration costs less than running the loop
  // in parts.
  static constexpr int64_t kWorthCounting = 1 << 10;

  explicit WorkCount(FunctionWriter& f) : f_(f) {}

  // What the loop around a statement counts for it.
  struct Work {
    int64_t uncounted = 0;       // the most work that isn't counted within the statement
    bool counts_itself = false;  // there are loops in it, or it is one, that count their own work
  };
  Work work_of(const loop::Stmt& s);
  // Counts work (an i64) that is about to be done, and polls the runtime once enough has been
  // counted. If the call should stop, the function returns.
  void spend(llvm::Value* work);

 private:
  // An upper bound of an i64, if a constant one is easy to find.
  std::optional<int64_t> at_most(const loop::Expr& e);
  std::optional<int64_t> find_bound(const loop::Expr& e);
  void bind(const loop::Var& var, std::optional<int64_t> most);

  FunctionWriter& f_;
  llvm::AllocaInst* left_ = nullptr;  // work left until the next poll
  std::unordered_map<const loop::Stmt*, Work> known_;
  std::unordered_map<const loop::Var*, std::optional<int64_t>> bounds_of_vars_;
  std::unordered_map<const loop::Expr*, std::optional<int64_t>> bounds_;
};

}  // namespace tenon::codegen
