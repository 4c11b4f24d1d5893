#include "codegen/llvm/function.h"

#include "codegen/llvm/size.h"
#include "codegen/llvm/stack_use.h"
#include "loop/cost.h"
#include "support/error.h"

namespace tenon::codegen {

FunctionWriter::FunctionWriter(ModuleWriter& module, const loop::Kernel& k, CodeSize& code_size,
                               llvm::Function* f)
    : m(module),
      kernel(k),
      size(code_size),
      entry(llvm::BasicBlock::Create(m.context, "entry", f)),
      b(m.context),
      start(llvm::BasicBlock::Create(m.context, "start", f)),
      function_(f),
      exit_(llvm::BasicBlock::Create(m.context, "exit", f)),
      exit_code_(llvm::PHINode::Create(m.i32, 4, "code", exit_)) {
  b.SetInsertPoint(start);
  llvm::FastMathFlags flags;
  flags.setAllowContract(true);
  b.setFastMathFlags(flags);
}

void FunctionWriter::finish() {
  entry.CreateBr(reserve_ ? reserve_ : start);
  return_code(b.getInt32(0));
  Builder end(exit_);
  if (workspace_ != nullptr) m.call(end, env.runtime, &vm::KernelRuntime::release, workspace_);
  end.CreateRet(exit_code_);
}

void FunctionWriter::count_cost(const loop::Expr& e) {
  size.add_cost(loop::own_cost(e) * lanes.width);
}

llvm::BasicBlock* FunctionWriter::block(const char* name) {
  size.add_block();
  size.require_few(++blocks_, sizes_);
  return llvm::BasicBlock::Create(m.context, name, function_, exit_);
}

llvm::AllocaInst* FunctionWriter::stack_slot(llvm::Type* type, uint64_t count, uint64_t alignment) {
  slot_bytes_ += count * m.module.getDataLayout().getTypeAllocSize(type);
  if (slot_bytes_ > vm::kKernelStack) throw too_much_stack(kernel.name, slot_bytes_);
  Builder first(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::AllocaInst* slot = first.CreateAlloca(llvm::ArrayType::get(type, count));
  slot->setAlignment(llvm::Align(alignment));
  return slot;
}

llvm::Value* FunctionWriter::symbol(std::string_view name) const {
  auto s = env.symbols.find(name);
  TENON_ASSERT(s != env.symbols.end(), "kernel '", kernel.name, "' doesn't bind symbol '", name,
               "'");
  return s->second;
}

llvm::Value* FunctionWriter::dim(const Dim& d) {
  if (auto c = d.as_const()) return entry.getInt64(static_cast<uint64_t>(*c));
  auto [it, is_new] = dims_.try_emplace(&d.node());
  if (is_new) {
    size.require_few(blocks_, ++sizes_);
    it->second = dim_writer_.write(d);
  }
  return it->second;
}

void FunctionWriter::use_workspace(llvm::BasicBlock* reserve, llvm::Value* workspace) {
  reserve_ = reserve;
  workspace_ = workspace;
}

void FunctionWriter::return_code(llvm::Value* code) {
  if (matrix_shapes != nullptr) release_matrices(*this);
  exit_code_->addIncoming(code, b.GetInsertBlock());
  b.CreateBr(exit_);
}

void FunctionWriter::stop_if(llvm::Value* condition, vm::KernelError code, llvm::Value* found,
                             llvm::Value* expected, int32_t argument, int32_t axis) {
  const bool per_lane = condition->getType()->isVectorTy();
  llvm::Value* failing = per_lane ? mask_and(condition) : condition;
  if (auto* known = llvm::dyn_cast<llvm::Constant>(failing);
      known != nullptr && known->isNullValue())
    return;
  llvm::BasicBlock* stop = block("stop");
  llvm::BasicBlock* go_on = block("go.on");
  b.CreateCondBr(per_lane ? b.CreateOrReduce(failing) : failing, stop, go_on, m.unlikely());
  b.SetInsertPoint(stop);
  if (per_lane && found != nullptr) {
    llvm::Value* bits = b.CreateBitCast(failing, b.getIntNTy(lanes.width));
    llvm::Value* first = b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b.getTrue());
    found = b.CreateExtractElement(found, b.CreateZExtOrTrunc(first, m.i64));
  }
  llvm::Value* zero = b.getInt64(0);
  return_code(m.raise(b, env.runtime, kernel, code, argument, axis, found ? found : zero,
                      expected ? expected : zero));
  b.SetInsertPoint(go_on);
}

llvm::Value* FunctionWriter::all_lanes(llvm::Value* scalar) {
  return b.CreateVectorSplat(lanes.width, scalar);
}

llvm::Value* FunctionWriter::lane_numbers() {
  return b.CreateStepVector(llvm::FixedVectorType::get(m.i64, lanes.width));
}

llvm::Value* FunctionWriter::mask_and(llvm::Value* condition) {
  return lanes.mask ? b.CreateAnd(lanes.mask, condition) : condition;
}

}  // namespace tenon::codegen
