#include "codegen/llvm/interrupt.h"

#include <algorithm>

#include "codegen/llvm/facts.h"
#include "loop/walk.h"

namespace tenon::codegen {

using loop::ForKind;
using loop::StmtKind;

std::optional<int64_t> StoreCount::uncounted(const loop::Stmt& s) {
  if (auto known = uncounted_.find(&s); known != uncounted_.end()) return known->second;
  std::optional<int64_t> stores = s.kind == StmtKind::kStore ? 1 : 0;
  for (const loop::StmtRef& child : loop::direct_bodies(s)) {
    const auto inner = uncounted(*child);
    stores = stores && inner ? std::optional(*stores + *inner) : std::nullopt;
  }
  if (s.kind == StmtKind::kFor && stores) {
    const auto& loop = static_cast<const loop::For&>(s);
    const auto turns = loop::as_int(loop.extent);
    const int64_t each = std::max<int64_t>(*stores, 1);
    // The tasks of a parallel loop count for themselves.
    const bool small = turns && loop.loop != ForKind::kParallel && *turns <= kUncounted / each;
    stores = small ? std::optional(each * std::max<int64_t>(*turns, 1)) : std::nullopt;
  }
  if (stores && *stores > kUncounted) stores = std::nullopt;
  return uncounted_[&s] = stores;
}

void StoreCount::spend(llvm::Value* stores) {
  ModuleWriter& m = f_.m;
  Builder& b = f_.b;
  if (left_ == nullptr) {
    left_ = f_.stack_slot(m.i64, 1, 8);
    f_.entry.CreateStore(f_.entry.getInt64(kBetweenPolls), left_, /*isVolatile=*/true);
  }
  // Volatile: a register that lives through all loops would cost more than this does.
  llvm::Value* left = b.CreateSub(b.CreateLoad(m.i64, left_, /*isVolatile=*/true), stores);
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
  // It touches nothing that the kernel does, whose loads and stores need not be kept apart from it.
  code->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  code->setDoesNotThrow();
  b.CreateCondBr(b.CreateICmpNE(code, b.getInt32(0)), stop, go_on, m.unlikely());
  b.SetInsertPoint(stop);
  f_.return_code(code);
  b.SetInsertPoint(go_on);
}

}  // namespace tenon::codegen
