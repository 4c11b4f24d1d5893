// Parallel loops. Each becomes a function of its own, a task, which runs a range of iterations:
//
//   i32 task(context*, i64 first, i64 end)     iterations [first, end), counted from 0
//
// Tasks read the values that they use from the context, which is on the caller's stack: an 8-byte
// slot each for the runtime, the loop's begin, the buffers, symbols and variables in scope, and the
// direction of a sweep.
#include "codegen/llvm/statement.h"
#include "codegen/llvm/work.h"
#include "loop/cost.h"
#include "loop/sweep.h"
#include "support/error.h"

namespace tenon::codegen {

using loop::StmtKind;

namespace {

// Work that a thread takes at once: much less than kWorthThreads, so that threads end together.
constexpr int64_t kWorkPerChunk = 1 << 12;

// Replaces each value of the caller by the task's, which is a constant or read from its context.
// Returns the context.
llvm::Value* pass(FunctionWriter& f, FunctionWriter* task, llvm::Value* task_context,
                  const std::vector<llvm::Value**>& values) {
  llvm::AllocaInst* context = f.stack_slot(f.m.i64, values.size(), 8);
  for (size_t i = 0; i < values.size(); ++i) {
    llvm::Value*& value = *values[i];
    if (llvm::isa<llvm::Constant>(value)) continue;
    const auto offset = static_cast<int64_t>(8 * i);
    f.b.CreateStore(value, f.b.CreateConstGEP1_64(f.m.i8, context, static_cast<uint64_t>(offset)));
    value = f.m.field(task->entry, value->getType(), task_context, offset);
  }
  return context;
}

// Runs all iterations here if they are few or cheap, otherwise distributes them over the runtime's
// threads. Returns the code of the failure that stopped them, or 0.
llvm::Value* run_task(FunctionWriter& f, llvm::Function* task, llvm::Value* context,
                      llvm::Value* extent, llvm::Value* work_per_turn) {
  Builder& b = f.b;
  llvm::Value* grain = b.CreateBinaryIntrinsic(
      llvm::Intrinsic::smax, b.getInt64(1), b.CreateUDiv(b.getInt64(kWorkPerChunk), work_per_turn));
  llvm::BasicBlock* alone = f.block("alone");
  llvm::BasicBlock* together = f.block("together");
  llvm::BasicBlock* done = f.block("done");
  llvm::Value* unshared = b.CreateUDiv(b.getInt64(kWorthThreads), work_per_turn);
  b.CreateCondBr(b.CreateICmpSLE(extent, unshared), alone, together);
  b.SetInsertPoint(alone);
  llvm::Value* code_alone = b.CreateCall(task, {context, b.getInt64(0), extent});
  b.CreateBr(done);
  b.SetInsertPoint(together);
  llvm::Value* code_together =
      f.m.call(b, f.env.runtime, &vm::KernelRuntime::parallel_for, task, context, extent, grain);
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* code = b.CreatePHI(f.m.i32, 2);
  code->addIncoming(code_alone, alone);
  code->addIncoming(code_together, together);
  return code;
}

// The direction of this call of the kernel, an i64: 1 to go backwards, 0 forwards. It alternates in
// a word of the object's writable data; that calls on several threads may change it at once costs
// nothing but time.
llvm::Value* next_direction(FunctionWriter& f) {
  auto* word =
      new llvm::GlobalVariable(f.m.module, f.m.i32, false, llvm::GlobalValue::InternalLinkage,
                               llvm::ConstantInt::get(f.m.i32, 0), "direction");
  llvm::LoadInst* direction = f.b.CreateAlignedLoad(f.m.i32, word, llvm::Align(4));
  direction->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::StoreInst* next =
      f.b.CreateAlignedStore(f.b.CreateXor(direction, f.b.getInt32(1)), word, llvm::Align(4));
  next->setAtomic(llvm::AtomicOrdering::Monotonic);
  return f.b.CreateZExt(direction, f.m.i64);
}

}  // namespace

// All values of an environment, in an order that doesn't depend on nodes' addresses.
std::vector<llvm::Value**> StatementWriter::values_of(Env& env) const {
  std::vector<llvm::Value**> values = {&env.runtime};
  auto add_buffer = [&](const loop::Buffer* buffer) {
    auto place = env.places.find(buffer);
    if (place != env.places.end()) values.push_back(&place->second);
  };
  auto add_var = [&](const loop::Var* var) {
    auto variable = env.vars.find(var);
    if (variable != env.vars.end()) values.push_back(&variable->second.value.v);
  };
  for (const auto* list : {&f_.kernel.inputs, &f_.kernel.outputs})
    for (const auto& buffer : *list) add_buffer(buffer.get());
  for (const loop::Stmt* s : enclosing_)
    if (s->kind == StmtKind::kAlloc) add_buffer(static_cast<const loop::Alloc*>(s)->buffer.get());
  for (auto& [name, value] : env.symbols) values.push_back(&value);
  for (const loop::Stmt* s : enclosing_) {
    if (s->kind == StmtKind::kFor) add_var(static_cast<const loop::For*>(s)->var.get());
    if (s->kind == StmtKind::kLet) add_var(static_cast<const loop::Let*>(s)->var.get());
  }
  TENON_ASSERT(values.size() == 1 + env.places.size() + env.symbols.size() + env.vars.size(),
               "kernel '", f_.kernel.name, "' has values that no enclosing statement binds");
  return values;
}

void StatementWriter::return_failure(llvm::Value* code) {
  llvm::BasicBlock* failed = f_.block("failed");
  llvm::BasicBlock* after = f_.block("succeeded");
  b_.CreateCondBr(b_.CreateICmpNE(code, b_.getInt32(0)), failed, after, f_.m.unlikely());
  b_.SetInsertPoint(failed);
  f_.return_code(code);
  b_.SetInsertPoint(after);
}

void StatementWriter::parallel_loop(const loop::For& loop) {
  llvm::Value* begin = expressions_.evaluate(*loop.begin).v;
  llvm::Value* extent = turns_of(loop);
  ModuleWriter& m = f_.m;
  llvm::Function* function = m.called_function<vm::KernelBody>(cat(symbol_of(f_.kernel), ".task"));
  FunctionWriter task(m, f_.kernel, f_.size, function);
  task.env = f_.env;
  task.stack_bytes = f_.stack_bytes;
  llvm::Value* task_begin = begin;
  std::vector<llvm::Value**> values = values_of(task.env);
  values.insert(values.begin() + 1, &task_begin);
  const bool alternates = loop::is_sweep(f_.kernel, loop);
  llvm::Value* direction = alternates ? next_direction(f_) : nullptr;
  if (alternates) values.push_back(&direction);
  f_.size.add_cost(loop::kSimpleCost * static_cast<int64_t>(values.size()));
  llvm::Value* context = pass(f_, &task, function->getArg(0), values);

  StatementWriter turns(task, facts_, alias_, loop.body);
  llvm::Value* first =
      task.b.CreateAdd(task_begin, function->getArg(1), "", false, f_.kernel.in_bounds);
  llvm::Value* count = task.b.CreateSub(function->getArg(2), function->getArg(1), "", false, true);
  if (alternates) turns.may_go_back(loop, first, count, direction);
  turns.count(first, count, loop);
  task.finish();

  llvm::BasicBlock* some = f_.block("parallel");
  llvm::BasicBlock* after = f_.block("end.parallel");
  b_.CreateCondBr(b_.CreateICmpSGT(extent, b_.getInt64(0)), some, after);
  b_.SetInsertPoint(some);
  return_failure(run_task(f_, function, context, extent, work_per_turn(f_, loop, begin)));
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void StatementWriter::team_loop(const loop::For& loop) {
  llvm::Value* begin = expressions_.evaluate(*loop.begin).v;
  llvm::Value* extent = turns_of(loop);
  ModuleWriter& m = f_.m;
  // An older runtime doesn't have the function.
  llvm::Value* size = m.field(b_, m.i32, f_.env.runtime, offsetof(vm::KernelRuntime, size));
  llvm::Value* worth =
      b_.CreateAnd(is_worth_threads(f_, loop, begin),
                   b_.CreateICmpUGT(size, b_.getInt32(static_cast<uint32_t>(
                                              offset_in_table(&vm::KernelRuntime::with_team)))));
  llvm::Function* function = m.called_function<vm::KernelBody>(cat(symbol_of(f_.kernel), ".turns"));
  FunctionWriter leader(m, f_.kernel, f_.size, function);
  leader.env = f_.env;
  leader.stack_bytes = f_.stack_bytes;
  llvm::Value* leader_begin = begin;
  std::vector<llvm::Value**> values = values_of(leader.env);
  values.insert(values.begin() + 1, &leader_begin);
  f_.size.add_cost(loop::kSimpleCost * static_cast<int64_t>(values.size()));
  llvm::Value* context = pass(f_, &leader, function->getArg(0), values);

  StatementWriter turns(leader, facts_, alias_, loop.body);
  turns.has_team_ = true;
  turns.enclosing_ = enclosing_;
  turns.count(leader_begin, function->getArg(2), loop);
  leader.finish();

  llvm::BasicBlock* together = f_.block("together");
  llvm::BasicBlock* alone = f_.block("alone");
  llvm::BasicBlock* done = f_.block("done");
  b_.CreateCondBr(worth, together, alone);
  b_.SetInsertPoint(together);
  llvm::Value* led =
      m.call(b_, f_.env.runtime, &vm::KernelRuntime::with_team, function, context, extent);
  b_.CreateBr(done);
  b_.SetInsertPoint(alone);
  llvm::Value* code = b_.CreateCall(function, {context, b_.getInt64(0), extent});
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* either = b_.CreatePHI(m.i32, 2);
  either->addIncoming(led, together);
  either->addIncoming(code, alone);
  return_failure(either);
}

}  // namespace tenon::codegen
