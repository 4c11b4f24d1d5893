#include "codegen/llvm/size.h"

#include <optional>
#include <unordered_set>

#include "llvm/IR/MDBuilder.h"
#include "loop/cost.h"
#include "loop/dim_hash.h"
#include "loop/walk.h"

namespace tenon::codegen {

using vm::KernelError;

std::vector<std::string> kernel_symbols(const loop::Kernel& kernel) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  auto add = [&](const std::string& name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  for (const auto* buffers : {&kernel.inputs, &kernel.outputs})
    for (const auto& buffer : *buffers)
      for (const Dim& d : buffer->shape)
        if (d.kind() == DimKind::kSymbol) add(d.node().name.str());
  for (const String& name : kernel.integers) add(name.str());
  return names;
}

std::vector<Dim> kernel_dims(const loop::Kernel& kernel) {
  std::vector<Dim> dims;
  loop::Seen seen;
  auto visit = [&](const loop::ExprRef& e) {
    if (e->kind == loop::ExprKind::kDimValue) {
      dims.push_back(static_cast<const loop::DimValue&>(*e).dim);
    } else if (e->kind == loop::ExprKind::kCheckedIndex) {
      dims.push_back(static_cast<const loop::CheckedIndex&>(*e).extent);
    }
  };
  loop::for_each_stmt(kernel.body, [&](const loop::StmtRef& s) {
    if (s->kind == loop::StmtKind::kAlloc) {
      const auto& scratch = *static_cast<const loop::Alloc&>(*s).buffer;
      dims.insert(dims.end(), scratch.shape.begin(), scratch.shape.end());
    }
    for (const loop::ExprRef& e : loop::direct_exprs(*s)) loop::post_order(e, visit, &seen);
  });
  // Without duplicates; atoms can't overflow.
  std::vector<Dim> unique;
  std::unordered_set<Dim, DimHash> found;
  for (const Dim& d : dims) {
    if (d.kind() == DimKind::kConst || d.kind() == DimKind::kSymbol) continue;
    if (found.insert(d).second) unique.push_back(d);
  }
  return unique;
}

void DimWriter::fail_if(llvm::Value* condition, KernelError code, llvm::Value* found,
                        llvm::Value* expected) {
  if (auto* c = llvm::dyn_cast<llvm::Constant>(condition); c != nullptr && c->isNullValue()) return;
  size_.add_block();
  llvm::BasicBlock* failed = on_failure_(code, found, expected);
  llvm::BasicBlock* good =
      llvm::BasicBlock::Create(b_.getContext(), "fits", b_.GetInsertBlock()->getParent());
  b_.CreateCondBr(condition, failed, good,
                  llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(good);
}

llvm::Value* DimWriter::checked(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* c) {
  llvm::Value* pair = b_.CreateBinaryIntrinsic(id, a, c);
  fail_if(b_.CreateExtractValue(pair, 1), KernelError::Overflow, b_.getInt64(0), b_.getInt64(0));
  return b_.CreateExtractValue(pair, 0);
}

llvm::Value* DimWriter::floor_division(llvm::Value* a, llvm::Value* c, bool remainder) {
  llvm::Value* zero = b_.getInt64(0);
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(c);
  if (known != nullptr && known->getValue().isStrictlyPositive() && known->getValue().isPowerOf2())
    return remainder ? b_.CreateAnd(a, known->getSExtValue() - 1)
                     : b_.CreateAShr(a, known->getValue().logBase2());
  llvm::Value* by_zero = b_.CreateICmpEQ(c, zero);
  if (on_failure_) fail_if(by_zero, KernelError::DivisionByZero, a, zero);
  llvm::Value* minus_one = b_.CreateICmpEQ(c, b_.getInt64(~uint64_t{0}));
  llvm::Value* divisor = b_.CreateSelect(b_.CreateOr(by_zero, minus_one), b_.getInt64(1), c);
  llvm::Value* quotient = b_.CreateSDiv(a, divisor);
  llvm::Value* rest = b_.CreateSub(a, b_.CreateMul(quotient, divisor));
  llvm::Value* has_rest = b_.CreateICmpNE(rest, zero);
  llvm::Value* signs_differ = b_.CreateICmpSLT(b_.CreateXor(rest, c), zero);
  llvm::Value* wrong_side = b_.CreateAnd(has_rest, signs_differ);
  llvm::Value* result = nullptr;
  if (remainder) {
    result = b_.CreateSelect(wrong_side, b_.CreateAdd(rest, c), rest);
  } else {
    llvm::Value* negated = b_.CreateSub(zero, a);
    llvm::Value* below = b_.CreateSub(quotient, b_.getInt64(1));
    result = b_.CreateSelect(minus_one, negated, b_.CreateSelect(wrong_side, below, quotient));
  }
  return b_.CreateSelect(by_zero, zero, result);
}

llvm::Value* DimWriter::add(llvm::Value* a, llvm::Value* b) {
  size_.add_cost(loop::kSimpleCost);
  return on_failure_ ? checked(llvm::Intrinsic::sadd_with_overflow, a, b) : b_.CreateAdd(a, b);
}

namespace {

// The terms of `sum` that `part` lacks; nullopt if `part` has others. Both are in canonical order.
std::optional<std::vector<const DimNode*>> terms_beyond(const DimNode& sum, const DimNode& part) {
  std::vector<const DimNode*> beyond;
  auto next = part.args.begin();
  for (const auto& term : sum.args) {
    if (next != part.args.end() && Dim(term) == Dim(*next)) {
      ++next;
    } else {
      beyond.push_back(term.get());
    }
  }
  if (next != part.args.end()) return std::nullopt;
  return beyond;
}

}  // namespace

llvm::Value* DimWriter::write_sum(const DimNode& sum) {
  llvm::Value* result = nullptr;
  std::vector<const DimNode*> terms;
  for (const Written& last : last_sums_) {
    if (!last.sum || last.sum->args.size() >= sum.args.size()) continue;
    auto beyond = terms_beyond(sum, *last.sum);
    if (!beyond || (result && beyond->size() >= terms.size())) continue;
    result = last.value;
    terms = std::move(*beyond);
  }
  if (!result) {
    for (const auto& term : sum.args) terms.push_back(term.get());
  }
  for (const DimNode* term : terms) {
    llvm::Value* const value = write(*term);
    result = result ? add(result, value) : value;
  }
  last_sums_[sums_++ % last_sums_.size()] = {Ref<const DimNode>(&sum), result};
  return result;
}

llvm::Value* DimWriter::write(const DimNode& d) {
  switch (d.kind) {
    case DimKind::kAdd:
      return write_sum(d);
    case DimKind::kConst:
      return b_.getInt64(static_cast<uint64_t>(d.value));
    case DimKind::kSymbol:
      return symbol_(d.name);
    default:
      break;
  }
  llvm::Value* result = nullptr;
  for (const auto& arg : d.args) {
    llvm::Value* v = write(*arg);
    if (result == nullptr) {
      result = v;
      continue;
    }
    size_.add_cost(loop::kSimpleCost);
    llvm::Value* a = result;
    switch (d.kind) {
      case DimKind::kMul:
        result =
            on_failure_ ? checked(llvm::Intrinsic::smul_with_overflow, a, v) : b_.CreateMul(a, v);
        break;
      case DimKind::kFloorDiv:
        result = floor_division(a, v, false);
        break;
      case DimKind::kMod:
        result = floor_division(a, v, true);
        break;
      case DimKind::kMin:
        result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, v);
        break;
      case DimKind::kMax:
        result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, v);
        break;
      case DimKind::kBcast: {
        llvm::Value* one = b_.getInt64(1);
        llvm::Value* a_is_one = b_.CreateICmpEQ(a, one);
        if (on_failure_) {
          llvm::Value* a_counts = b_.CreateNot(a_is_one);
          llvm::Value* both_count = b_.CreateAnd(a_counts, b_.CreateICmpNE(v, one));
          fail_if(b_.CreateAnd(both_count, b_.CreateICmpNE(a, v)), KernelError::Dimension, v, a);
        }
        result = b_.CreateSelect(a_is_one, v, a);
        break;
      }
      case DimKind::kConst:
      case DimKind::kSymbol:
      case DimKind::kAdd:
        break;
    }
  }
  return result;
}

}  // namespace tenon::codegen
