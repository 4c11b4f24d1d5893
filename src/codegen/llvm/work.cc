#include "codegen/llvm/work.h"

#include <unordered_map>

#include "loop/cost.h"
#include "loop/walk.h"

namespace tenon::codegen {

using loop::BinaryOp;
using loop::ExprKind;
using loop::ForKind;
using loop::StmtKind;

namespace {

// The work of the value and of the store itself.
int64_t work_of_store(const loop::Store& store) {
  return 1 + loop::cost(store.value) / loop::kSimpleCost;
}

class WorkEstimate {
 public:
  WorkEstimate(FunctionWriter& f, const loop::Var* var, llvm::Value* begin)
      : f_(f), b_(f.b), guesses_{{var, begin}} {}

  llvm::Value* work_of(const loop::Stmt& s) {
    switch (s.kind) {
      case StmtKind::kStore:
        return b_.getInt64(
            static_cast<uint64_t>(work_of_store(static_cast<const loop::Store&>(s))));
      case StmtKind::kFor: {
        const auto& loop = static_cast<const loop::For&>(s);
        llvm::Value* extent = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax,
                                                       size_or_guess(*loop.extent), b_.getInt64(0));
        bind(*loop.var, size_or_guess(*loop.begin));
        llvm::Value* product = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, extent,
                                                        work_of(*loop.body));
        llvm::Value* most = b_.getInt64(kWorthThreads);
        llvm::Value* work = b_.CreateExtractValue(product, 0);
        if (runs_lanes_at_once(loop)) {  // rounded up, since narrow vectors are work too
          work = b_.CreateUDiv(b_.CreateAdd(work, b_.getInt64(kLanesOfWork - 1)),
                               b_.getInt64(kLanesOfWork));
        }
        return b_.CreateSelect(b_.CreateExtractValue(product, 1), most,
                               b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, most, work));
      }
      case StmtKind::kLet: {
        const auto& let = static_cast<const loop::Let&>(s);
        bind(*let.var, size_or_guess(*let.value));
        return work_of(*let.body);
      }
      default: {
        llvm::Value* total = b_.getInt64(1);
        for (const loop::StmtRef& child : loop::direct_bodies(s))
          total = b_.CreateAdd(total, work_of(*child));
        return total;
      }
    }
  }

 private:
  static bool is_zero(llvm::Value* v) {
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(v);
    return constant && constant->isZero();
  }

  void bind(const loop::Var& var, llvm::Value* guess) {
    auto [it, is_new] = guesses_.try_emplace(&var, guess);
    if (is_new || it->second == guess) return;
    // Sibling statements may bind the same variable: what was computed from it no longer holds.
    it->second = guess;
    known_.clear();
  }

  // The value of an i64 in the first iteration of every enclosing loop, or a guess if it isn't
  // known.
  llvm::Value* size_or_guess(const loop::Expr& e) {
    if (auto known = known_.find(&e); known != known_.end()) return known->second;
    llvm::Value* result = find_size_or_guess(e);
    known_[&e] = result;
    return result;
  }

  llvm::Value* find_size_or_guess(const loop::Expr& e) {
    switch (e.kind) {
      case ExprKind::kLiteral:
        return b_.getInt64(static_cast<uint64_t>(static_cast<const loop::Literal&>(e).bits));
      case ExprKind::kDimValue:
        return f_.dim(static_cast<const loop::DimValue&>(e).dim);
      case ExprKind::kBinary: {
        const auto& binary = static_cast<const loop::Binary&>(e);
        llvm::Value* a = size_or_guess(*binary.a);
        llvm::Value* b = size_or_guess(*binary.b);
        const bool divides = binary.op == BinaryOp::kFloorDiv || binary.op == BinaryOp::kMod;
        // Where a loop begins, its variable and whatever it is divided into are 0.
        if (divides && is_zero(a)) return a;
        auto* divisor = llvm::dyn_cast<llvm::ConstantInt>(b);
        if (binary.op == BinaryOp::kAdd) return b_.CreateAdd(a, b);
        if (binary.op == BinaryOp::kSub) return b_.CreateSub(a, b);
        if (binary.op == BinaryOp::kMul) return b_.CreateMul(a, b);
        if (divides && divisor && divisor->getSExtValue() > 0) {
          return binary.op == BinaryOp::kMod ? b_.CreateSRem(a, b) : b_.CreateSDiv(a, b);
        }
        if (binary.op == BinaryOp::kMin)
          return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
        break;
      }
      case ExprKind::kVar: {
        auto guess = guesses_.find(static_cast<const loop::Var*>(&e));
        if (guess != guesses_.end()) return guess->second;
        auto outside = f_.env.vars.find(static_cast<const loop::Var*>(&e));
        if (outside != f_.env.vars.end() && outside->second.value.v->getType()->isIntegerTy(64))
          return outside->second.value.v;
        break;
      }
      default:
        break;
    }
    return b_.getInt64(4);  // known only when the loop runs: most loops have a few iterations
  }

  FunctionWriter& f_;
  Builder& b_;
  std::unordered_map<const loop::Var*, llvm::Value*> guesses_;  // of the loop's variables
  std::unordered_map<const loop::Expr*, llvm::Value*> known_;   // computed from them
};

}  // namespace

llvm::Value* work_per_turn(FunctionWriter& f, const loop::For& loop, llvm::Value* begin) {
  llvm::Value* work = WorkEstimate(f, loop.var.get(), begin).work_of(*loop.body);
  return f.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, work, f.b.getInt64(1));
}

std::vector<const loop::For*> parallel_loops_in(const loop::For& loop) {
  std::vector<const loop::For*> found;
  if (loop.loop != ForKind::kSerial) return found;
  loop::for_each_stmt(loop.body, [&](const loop::StmtRef& s) {
    if (s->kind != StmtKind::kFor) return;
    const auto& inner = static_cast<const loop::For&>(*s);
    if (inner.loop == ForKind::kParallel) found.push_back(&inner);
  });
  return found;
}

llvm::Value* is_worth_threads(FunctionWriter& f, const loop::For& loop, llvm::Value* begin) {
  Builder& b = f.b;
  llvm::Value* worth = b.getFalse();
  for (const loop::For* inner : parallel_loops_in(loop)) {
    llvm::Value* work = WorkEstimate(f, loop.var.get(), begin).work_of(*inner);
    worth = b.CreateOr(worth, b.CreateICmpSGE(work, b.getInt64(kWorthThreads)));
  }
  return worth;
}

}  // namespace tenon::codegen
