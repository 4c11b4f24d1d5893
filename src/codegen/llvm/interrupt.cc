#include "codegen/llvm/interrupt.h"

#include <algorithm>

#include "codegen/llvm/work.h"
#include "loop/cost.h"
#include "loop/walk.h"

namespace tenon::codegen {

using loop::BinaryOp;
using loop::ExprKind;
using loop::ForKind;
using loop::StmtKind;

void WorkCount::bind(const loop::Var& var, std::optional<int64_t> most) {
  auto [it, is_new] = bounds_of_vars_.try_emplace(&var, most);
  if (is_new || it->second == most) return;
  // Sibling statements may bind the same variable: bounds that follow from it no longer hold.
  it->second = most;
  bounds_.clear();
}

std::optional<int64_t> WorkCount::at_most(const loop::Expr& e) {
  if (auto known = bounds_.find(&e); known != bounds_.end()) return known->second;
  const auto bound = find_bound(e);
  bounds_[&e] = bound;
  return bound;
}

std::optional<int64_t> WorkCount::find_bound(const loop::Expr& e) {
  if (e.kind == ExprKind::kVar) {
    auto known = bounds_of_vars_.find(static_cast<const loop::Var*>(&e));
    return known == bounds_of_vars_.end() ? std::nullopt : known->second;
  }
  if (e.kind == ExprKind::kLiteral) return static_cast<const loop::Literal&>(e).bits;
  if (e.kind != ExprKind::kBinary) return std::nullopt;
  const auto& binary = static_cast<const loop::Binary&>(e);
  const auto divisor = loop::as_int(binary.b);
  const auto a = at_most(*binary.a);
  if (binary.op == BinaryOp::kMin) {
    const auto b = at_most(*binary.b);
    return a && b ? std::min(*a, *b) : a ? a : b;
  }
  if (!a || !divisor) return std::nullopt;
  if (binary.op == BinaryOp::kFloorDiv && *divisor > 0) return *a / *divisor;
  // Index arithmetic of a kernel that isn't in bounds may wrap.
  int64_t sum = 0;
  if (binary.op == BinaryOp::kAdd && f_.kernel.in_bounds &&
      !__builtin_add_overflow(*a, *divisor, &sum)) {
    return sum;
  }
  return std::nullopt;
}

WorkCount::Work WorkCount::work_of(const loop::Stmt& s) {
  if (auto known = known_.find(&s); known != known_.end()) return known->second;
  if (s.kind == StmtKind::kLet) {
    const auto& let = static_cast<const loop::Let&>(s);
    bind(*let.var, at_most(*let.value));
  } else if (s.kind == StmtKind::kFor) {
    bind(*static_cast<const loop::For&>(s).var, std::nullopt);
  }
  int64_t own = s.kind == StmtKind::kStore ? loop::kSimpleCost : 0;
  for (const loop::ExprRef& e : loop::direct_exprs(s)) own += loop::cost(e);
  own = (own + loop::kSimpleCost - 1) / loop::kSimpleCost;
  Work inner;
  for (const loop::StmtRef& child : loop::direct_bodies(s)) {
    const Work of_child = work_of(*child);
    inner.uncounted += of_child.uncounted;
    inner.counts_itself |= of_child.counts_itself;
  }
  if (s.kind == StmtKind::kFor) {
    const auto& loop = static_cast<const loop::For&>(s);
    const auto turns = at_most(*loop.extent);
    const int64_t each = std::max<int64_t>(inner.uncounted, 1);
    // The tasks of a parallel loop count for themselves.
    if (inner.counts_itself || loop.loop == ForKind::kParallel || !turns ||
        *turns > kUncounted / each) {
      inner = {0, true};
    } else {
      inner.uncounted = each * std::max<int64_t>(*turns, 0);
      if (runs_lanes_at_once(loop)) {
        inner.uncounted = (inner.uncounted + kLanesOfWork - 1) / kLanesOfWork;
      }
    }
  }
  return known_[&s] = {own + inner.uncounted, inner.counts_itself};
}

void WorkCount::spend(llvm::Value* work) {
  ModuleWriter& m = f_.m;
  Builder& b = f_.b;
  if (left_ == nullptr) {
    left_ = f_.stack_slot(m.i64, 1, 8);
    f_.entry.CreateStore(f_.entry.getInt64(kBetweenPolls), left_, /*isVolatile=*/true);
  }
  // Volatile: a register that is live through all loops would cost more.
  llvm::Value* left = b.CreateSub(b.CreateLoad(m.i64, left_, /*isVolatile=*/true), work);
  b.CreateStore(left, left_, /*isVolatile=*/true);
  llvm::BasicBlock* ask = f_.block("ask");
  llvm::BasicBlock* stop = f_.block("stop");
  llvm::BasicBlock* go_on = f_.block("go.on");
  b.CreateCondBr(b.CreateICmpSLE(left, b.getInt64(0)), ask, go_on, m.unlikely());
  b.SetInsertPoint(ask);
  b.CreateStore(b.getInt64(kBetweenPolls), left_, /*isVolatile=*/true);
  llvm::CallInst* code = m.call(b, f_.env.runtime, &vm::KernelRuntime::poll);
  // It touches none of the kernel's memory, so the kernel's loads and stores may be moved across
  // it.
  code->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  code->setDoesNotThrow();
  // The host's code may have used the registers that hold matrices.
  llvm::BasicBlock* asked = f_.matrix_shapes != nullptr ? f_.block("asked") : go_on;
  b.CreateCondBr(b.CreateICmpNE(code, b.getInt32(0)), stop, asked, m.unlikely());
  b.SetInsertPoint(stop);
  f_.return_code(code);
  if (asked != go_on) {
    b.SetInsertPoint(asked);
    load_matrix_shapes(f_);
    b.CreateBr(go_on);
  }
  b.SetInsertPoint(go_on);
}

}  // namespace tenon::codegen
