// How loops are stopped: a function counts the stores that it makes and asks the runtime, every few
// milliseconds, whether its call is to stop.
//
// Work of a constant, small size isn't counted where it stands: the loop around it counts it. So no
// innermost loop of a tile pays, and the check is a subtraction in memory per thousands of stores.
// Private to this folder: it shows LLVM types.
#pragma once

#include <optional>
#include <unordered_map>

#include "codegen/llvm/function.h"

namespace tenon::codegen {

class StoreCount {
 public:
  static constexpr int64_t kBetweenPolls = 1 << 19;  // stores
  static constexpr int64_t kUncounted = 1 << 14;     // that a statement may make without counting

  explicit StoreCount(FunctionWriter& f) : f_(f) {}

  // How many stores a statement makes at most, where that is constant and at most kUncounted;
  // nullopt where it counts them itself.
  std::optional<int64_t> uncounted(const loop::Stmt& s);
  // Counts so many (an i64), and asks the runtime when enough have been made. Where the call is to
  // stop, the function returns.
  void spend(llvm::Value* stores);

 private:
  FunctionWriter& f_;
  llvm::AllocaInst* left_ = nullptr;  // until the runtime is asked
  std::unordered_map<const loop::Stmt*, std::optional<int64_t>> uncounted_;
};

}  // namespace tenon::codegen
