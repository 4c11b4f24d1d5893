// Scalar expressions of loop IR as LLVM values: of one element, or of all lanes of a vector loop.
// Private to this folder: it shows LLVM types.
#pragma once

#include <unordered_map>
#include <vector>

#include "codegen/llvm/facts.h"
#include "codegen/llvm/function.h"
#include "codegen/llvm/memory.h"
#include "codegen/llvm/operator.h"

namespace tenon::codegen {

class ExpressionWriter {
 public:
  ExpressionWriter(FunctionWriter& f, Facts& facts, MemoryWriter& memory)
      : f_(f), b_(f.b), facts_(facts), memory_(memory), operators_(f, facts) {}

  // A shared node is computed once per scope. What a scope computes is forgotten at its end: the
  // code behind it may be reached by another way.
  class Scope {
   public:
    explicit Scope(ExpressionWriter& w) : memo_(w.memo_) { memo_.emplace_back(); }
    ~Scope() { memo_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::vector<std::unordered_map<const loop::Expr*, Value>>& memo_;
  };

  // In a scope of its own.
  Value evaluate(const loop::Expr& e);
  // The rest is called within a scope.
  Value value(const loop::Expr& e);
  // The value in lane 0 of an i64 whose lanes are a known stride apart.
  llvm::Value* first_lane(const loop::Expr& e);
  // Where buffer[indices] lies; in a kernel that isn't in bounds, stops it if that is outside.
  MemoryWriter::Address address(const loop::Buffer& buffer, const Array<loop::ExprRef>& indices);

 private:
  Value compute(const loop::Expr& e);
  Value checked_index(const loop::CheckedIndex& e);
  Value inside(const loop::Expr& index, const loop::Buffer& buffer, int32_t axis);
  Value for_some_lane(const loop::Expr& e);
  Value select(const loop::Select& e);
  Value select_by_lane(const loop::Select& e, llvm::Value* condition);
  Value select_by_branch(const loop::Select& e, llvm::Value* condition);
  void compute_shared(const loop::Select& e);

  FunctionWriter& f_;
  Builder& b_;
  Facts& facts_;
  MemoryWriter& memory_;
  OperatorWriter operators_;
  std::vector<std::unordered_map<const loop::Expr*, Value>> memo_;  // innermost scope last
};

}  // namespace tenon::codegen
