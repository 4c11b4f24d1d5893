#include "codegen/llvm/stack_use.h"

#include <algorithm>

#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/raw_ostream.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::codegen {

namespace {

// What the runtime's parallel_for takes between a loop's caller and its task.
constexpr uint64_t kParallelForStack = 8 << 10;

}  // namespace

Error too_much_stack(std::string_view kernel, uint64_t bytes) {
  return Error(ErrorKind::Unsupported, cat("kernel '", kernel, "' needs too much stack"))
      .found(cat(bytes, " bytes for buffers and values that don't fit into registers"))
      .expected(cat("at most ", vm::kKernelStack))
      .help("use narrower vectors, unroll less, or split it into kernels with fewer loops");
}

StackUse::StackUse(llvm::Module& module) : module_(module) {
  module.getContext().setDiagnosticHandlerCallBack(&StackUse::note, this);
  // LLVM then reports every frame that isn't empty.
  for (llvm::Function& f : module) f.addFnAttr("warn-stack-size", "0");
}

void StackUse::note(const llvm::DiagnosticInfo* info, void* self) {
  auto& use = *static_cast<StackUse*>(self);
  if (const auto* frame = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(info)) {
    use.frames_[&frame->getFunction()] = frame->getStackSize();
  } else if (info->getSeverity() == llvm::DS_Error && use.error_.empty()) {
    llvm::raw_string_ostream out(use.error_);
    llvm::DiagnosticPrinterRawOStream printer(out);
    info->print(printer);
  }
}

// A function mentions the tasks that it runs as arguments of parallel_for, and others where it
// calls them. None calls itself.
uint64_t StackUse::needed(const llvm::Function& f) {
  if (auto known = needed_.find(&f); known != needed_.end()) return known->second;
  uint64_t below = 0;
  for (const llvm::BasicBlock& block : f) {
    for (const llvm::Instruction& instruction : block) {
      for (const llvm::Use& operand : instruction.operands()) {
        const auto* called = llvm::dyn_cast<llvm::Function>(operand.get());
        if (called == nullptr || called->isDeclaration()) continue;
        const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        const bool directly = call != nullptr && call->isCallee(&operand);
        below = std::max(below, needed(*called) + (directly ? 0 : kParallelForStack));
      }
    }
  }
  auto frame = frames_.find(&f);
  return needed_[&f] = below + (frame == frames_.end() ? 0 : frame->second);
}

void StackUse::check(const std::map<const llvm::Function*, std::string>& entries) {
  if (!error_.empty()) {
    throw Error(ErrorKind::Internal, "LLVM can't generate code for kernels").found(error_);
  }
  for (const llvm::Function& f : module_) {  // in the module's order, so that errors don't vary
    auto entry = entries.find(&f);
    if (entry == entries.end() || needed(f) <= vm::kKernelStack) continue;
    throw too_much_stack(entry->second, needed(f));
  }
}

}  // namespace tenon::codegen
