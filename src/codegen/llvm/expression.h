// Scalar expressions of loop IR as LLVM values, for one element or for all lanes of a vector loop.
// Private to this folder: it exposes LLVM types.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/facts.h"
#include "codegen/llvm/function.h"
#include "codegen/llvm/memory.h"
#include "codegen/llvm/operator.h"
#include "codegen/llvm/quantised.h"

namespace tenon::codegen {

class ExpressionWriter {
  struct Memo {
    std::unordered_map<const loop::Expr*, Value> values;
    std::unordered_map<const loop::Expr*, llvm::Value*> first_lanes;
  };

 public:
  ExpressionWriter(FunctionWriter& f, Facts& facts, MemoryWriter& memory)
      : f_(f), b_(f.b), facts_(facts), memory_(memory), operators_(f, facts) {}

  // A shared node is computed once per scope. Values are forgotten at the end of their scope,
  // because the code after it may be reached by another path.
  class Scope {
   public:
    explicit Scope(ExpressionWriter& w) : memo_(w.memo_) { memo_.emplace_back(); }
    ~Scope() { memo_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::vector<Memo>& memo_;
  };

  // Evaluates `e` in a scope of its own.
  Value evaluate(const loop::Expr& e);
  // The following must be called within a scope.
  Value value(const loop::Expr& e);
  // The value in lane 0 of an i64 whose lanes have a known stride.
  llvm::Value* first_lane(const loop::Expr& e);
  // The address of buffer[indices]; in a kernel that isn't in bounds, stops it if that is outside.
  MemoryWriter::Address address(const loop::Buffer& buffer, const Array<loop::ExprRef>& indices);

 private:
  Value compute(const loop::Expr& e);
  std::optional<Value> byte_dot_sum(const loop::Binary& e);
  std::optional<Value> word_of_bytes(const loop::Expr& e);
  Value quantised_value(const Quantised& q, decltype(quantise)* write);
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
  std::vector<Memo> memo_;  // innermost scope last
};

}  // namespace tenon::codegen
