#include "codegen/llvm/interrupt.h"

#include <algorithm>

#include "codegen/llvm/work.h"
#include "loop/walk.h"

namespace tenon::codegen {

using loop::BinaryOp;
using loop::ExprKind;
using loop::ForKind;
using loop::StmtKind;

std::optional<int64_t> WorkCount::at_most(const loop::Expr& e) const {
  if (e.kind == ExprKind::kVar) {
    auto known = at_most_.find(static_cast<const loop::Var*>(&e));
    return known == at_most_.end() ? std::nullopt : std::optional(known->second);
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

std::optional<int64_t> WorkCount::uncounted(const loop::Stmt& s) {
  if (auto known = uncounted_.find(&s); known != uncounted_.end()) return known->second;
  if (s.kind == StmtKind::kLet) {
    const auto& let = static_cast<const loop::Let&>(s);
    at_most_.erase(let.var.get());
    if (const auto most = at_most(*let.value)) at_most_[let.var.get()] = *most;
  }
  std::optional<int64_t> work = 0;
  if (s.kind == StmtKind::kStore) work = work_of_store(static_cast<const loop::Store&>(s));
  for (const loop::StmtRef& child : loop::direct_bodies(s)) {
    const auto inner = uncounted(*child);
    work = work && inner ? std::optional(*work + *inner) : std::nullopt;
  }
  if (s.kind == StmtKind::kFor && work) {
    const auto& loop = static_cast<const loop::For&>(s);
    const auto turns = at_most(*loop.extent);
    const int64_t each = std::max<int64_t>(*work, 1);
    // The tasks of a parallel loop count for themselves.
    const bool small = turns && loop.loop != ForKind::kParallel && *turns <= kUncounted / each;
    work = small ? std::optional(each * std::max<int64_t>(*turns, 1)) : std::nullopt;
    if (small && loop.loop == ForKind::kVector) work = (*work + kLanesOfWork - 1) / kLanesOfWork;
  }
  if (work && *work > kUncounted) work = std::nullopt;
  return uncounted_[&s] = work;
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
  llvm::CallInst* code = b.CreateCall(
      m.poll_type, m.runtime_function(b, f_.env.runtime, offsetof(vm::KernelRuntime, poll)),
      {f_.env.runtime});
  // It touches none of the kernel's memory, so the kernel's loads and stores may be moved across
  // it.
  code->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  code->setDoesNotThrow();
  b.CreateCondBr(b.CreateICmpNE(code, b.getInt32(0)), stop, go_on, m.unlikely());
  b.SetInsertPoint(stop);
  f_.return_code(code);
  b.SetInsertPoint(go_on);
}

}  // namespace tenon::codegen
