// How loops are stopped: a function counts its work and asks the runtime, every few milliseconds,
// whether its call is to stop.
//
// Work of a small constant amount isn't counted where it is done: the loop around it counts it. So
// register tiles and the loops in them never pay, and the check is a subtraction in memory per
// hundreds of microseconds. Private to this folder: it shows LLVM types.
#pragma once

#include <optional>
#include <unordered_map>

#include "codegen/llvm/function.h"

namespace tenon::codegen {

// Work is counted as in work.h.
class WorkCount {
 public:
  static constexpr int64_t kBetweenPolls = 1 << 20;
  static constexpr int64_t kUncounted = 1 << 19;  // what a statement may do without counting

  // From this much on, counting every turn of a loop costs less than the loop loses in parts.
  static constexpr int64_t kWorthCounting = 1 << 10;

  explicit WorkCount(FunctionWriter& f) : f_(f) {}

  // The work of a statement, at most, if that is constant and at most kUncounted; nullopt if the
  // statement counts its work itself.
  std::optional<int64_t> uncounted(const loop::Stmt& s);
  // Counts work (an i64) that is about to be done, and asks the runtime when enough has been
  // counted. If the call is to stop, the function returns.
  void spend(llvm::Value* work);

 private:
  // An upper bound of an i64, if a constant one is easily seen.
  std::optional<int64_t> at_most(const loop::Expr& e) const;

  FunctionWriter& f_;
  llvm::AllocaInst* left_ = nullptr;  // work left until the next poll
  std::unordered_map<const loop::Stmt*, std::optional<int64_t>> uncounted_;
  std::unordered_map<const loop::Var*, int64_t> at_most_;  // of variables of lets
};

}  // namespace tenon::codegen
