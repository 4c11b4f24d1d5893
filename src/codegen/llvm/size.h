// Sizes as LLVM values: the sizes that a kernel has, and the code that computes them.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/code_size.h"
#include "codegen/llvm/numeric.h"
#include "loop/kernel.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::codegen {

// The integer parameters of a kernel's body: the symbols that its parameters' shapes bind, in order
// of first appearance, then its integers.
std::vector<std::string> kernel_symbols(const loop::Kernel& kernel);
// Every size that the kernel's body computes, without duplicates.
std::vector<Dim> kernel_dims(const loop::Kernel& kernel);

// Emits sizes, and counts their code. With `on_failure`, a result that overflows, a division by 0
// or a broadcast of incompatible sizes branches to the block that it returns; without it,
// arithmetic wraps and division by 0 gives 0. The builder only moves forward.
class DimWriter {
 public:
  using OnFailure = std::function<llvm::BasicBlock*(vm::KernelError code, llvm::Value* found,
                                                    llvm::Value* expected)>;
  DimWriter(Builder& b, CodeSize& size, std::function<llvm::Value*(std::string_view)> symbol,
            OnFailure on_failure = nullptr)
      : b_(b), size_(size), symbol_(std::move(symbol)), on_failure_(std::move(on_failure)) {}
  llvm::Value* write(const Dim& d) { return write(d.node()); }

 private:
  llvm::Value* write(const DimNode& d);
  llvm::Value* checked(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b);
  void fail_if(llvm::Value* condition, vm::KernelError code, llvm::Value* found,
               llvm::Value* expected);
  llvm::Value* floor_division(llvm::Value* a, llvm::Value* b, bool remainder);
  llvm::Value* write_sum(const DimNode& sum);
  llvm::Value* add(llvm::Value* a, llvm::Value* b);

  // A sum that was written, for those that go on from it, as the offsets of a concatenation do.
  struct Written {
    Ref<const DimNode> sum;
    llvm::Value* value = nullptr;
  };

  Builder& b_;
  CodeSize& size_;
  std::function<llvm::Value*(std::string_view)> symbol_;
  OnFailure on_failure_;
  std::array<Written, 4> last_sums_;
  size_t sums_ = 0;  // that were written
};

}  // namespace tenon::codegen
