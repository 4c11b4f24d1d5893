#include "codegen/llvm/passes.h"

#include <exception>
#include <vector>

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Pass.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimpleLoopUnswitch.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Vectorize/LoopVectorize.h"
#include "support/error.h"
#include "support/poll.h"

namespace tenon::codegen {

namespace {

// Asks from inside LLVM, which can't be left by an exception, whether to stop.
class Stop {
 public:
  bool asked() noexcept {
    if (reason_) return true;
    try {
      poll();
    } catch (...) {
      reason_ = std::current_exception();
    }
    return reason_ != nullptr;
  }
  void rethrow() const {
    if (reason_) std::rethrow_exception(reason_);
  }

 private:
  std::exception_ptr reason_;
};

// Runs after a function's code has been generated, and before the next function's. Once the work is
// to stop, empties the functions that follow.
class EmptyRestWhenStopped final : public llvm::FunctionPass {
 public:
  explicit EmptyRestWhenStopped(Stop& stop) : llvm::FunctionPass(kId), stop_(stop) {}
  bool runOnFunction(llvm::Function& done) override {
    if (is_emptied_ || !stop_.asked()) return false;
    is_emptied_ = true;
    llvm::LLVMContext& context = done.getContext();
    llvm::Module& module = *done.getParent();
    for (auto f = std::next(done.getIterator()); f != module.end(); ++f) {
      if (f->isDeclaration()) continue;
      f->dropAllReferences();
      new llvm::UnreachableInst(context, llvm::BasicBlock::Create(context, "stopped", &*f));
    }
    return true;
  }

 private:
  static inline char kId = 0;  // its address identifies the pass
  Stop& stop_;
  bool is_emptied_ = false;
};

// LLVM compares two widened halves as halves, which takes one lane after the other on processors
// that can't compute with them.
void compare_widened(llvm::Module& module) {
  std::vector<llvm::FCmpInst*> comparisons;
  for (llvm::Function& f : module) {
    for (llvm::Instruction& i : llvm::instructions(f)) {
      auto* const comparison = llvm::dyn_cast<llvm::FCmpInst>(&i);
      if (comparison && comparison->getOperand(0)->getType()->getScalarType()->isHalfTy()) {
        comparisons.push_back(comparison);
      }
    }
  }
  for (llvm::FCmpInst* comparison : comparisons) {
    llvm::IRBuilder<> b(comparison);
    llvm::Type* const wide = comparison->getOperand(0)->getType()->getWithNewType(b.getFloatTy());
    llvm::Value* const widened =
        b.CreateFCmp(comparison->getPredicate(), b.CreateFPExt(comparison->getOperand(0), wide),
                     b.CreateFPExt(comparison->getOperand(1), wide));
    comparison->replaceAllUsesWith(widened);
    comparison->eraseFromParent();
  }
}

}  // namespace

void optimise(llvm::Module& module, llvm::TargetMachine& machine, Optimisation level) {
  // When the work is to stop, what is left of the passes is skipped.
  Stop stop;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(
      [&stop](llvm::StringRef, llvm::Any) { return !stop.asked(); });
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  // Nothing may become a call of the C library.
  llvm::TargetLibraryInfoImpl library((llvm::Triple(module.getTargetTriple())));
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (level == Optimisation::kAll) {
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  } else {
    // The passes that loop nests still need after scheduling, each once.
    llvm::FunctionPassManager f;
    f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    f.addPass(llvm::EarlyCSEPass(true));
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::InstCombinePass());
    llvm::LoopPassManager invariants;
    invariants.addPass(llvm::LICMPass(llvm::LICMOptions()));
    invariants.addPass(llvm::SimpleLoopUnswitchPass(false, true));
    f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(invariants), /*UseMemorySSA=*/true));
    f.addPass(llvm::GVNPass());
    llvm::LoopPassManager induction;
    induction.addPass(llvm::IndVarSimplifyPass());
    induction.addPass(llvm::LoopDeletionPass());
    f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(induction)));
    f.addPass(llvm::LoopVectorizePass(llvm::LoopVectorizeOptions(false, false)));
    f.addPass(llvm::InstCombinePass());
    llvm::LoopPassManager again;
    again.addPass(llvm::LICMPass(llvm::LICMOptions()));
    f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(again), true));
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::ADCEPass());
    passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
    passes.addPass(llvm::GlobalDCEPass());
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(f)));
  }
  passes.run(module, modules);
  stop.rethrow();
  if (!machine.getTargetFeatureString().contains("+avx512fp16")) compare_widened(module);
}

std::string generate(llvm::Module& module, llvm::TargetMachine& machine,
                     llvm::CodeGenFileType type) {
  Stop stop;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl library((llvm::Triple(module.getTargetTriple())));
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true))
    throw Error(ErrorKind::Internal, "LLVM can't write object files for this target");
  passes.add(new EmptyRestWhenStopped(stop));
  passes.run(module);
  stop.rethrow();
  return std::string(bytes.data(), bytes.size());
}

}  // namespace tenon::codegen
