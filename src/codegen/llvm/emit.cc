#include "codegen/llvm/emit.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "codegen/llvm/bytecode_flow.h"
#include "codegen/llvm/bytecode_writer.h"
#include "codegen/llvm/compile_stack.h"
#include "codegen/llvm/link.h"
#include "codegen/llvm/lower.h"
#include "codegen/llvm/memory_limit.h"
#include "codegen/llvm/passes.h"
#include "codegen/llvm/stack_use.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "support/error.h"
#include "support/phase.h"
#include "support/poll.h"
#include "support/trace.h"
#include "vm/executable/code_abi.h"
#include "vm/executable/cpu_features.h"
#include "vm/executable/kernel_abi.h"
#include "vm/executable/model_abi.h"

namespace tenon::codegen {

namespace {

constexpr size_t kKernelsPerModule = 24;

// LLVM 21 replaced text by Triple in some functions, and 22 in others.
#if LLVM_VERSION_MAJOR >= 21
llvm::Triple triple(const Target& target) {
  return llvm::Triple(target.architecture->llvm_triple());
}
#else
std::string triple(const Target& target) {
  return target.architecture->llvm_triple();
}
#endif

std::unique_ptr<llvm::TargetMachine> target_machine(const Target& target) {
  static std::once_flag once;
  std::call_once(once, [] {
#define TENON_BACK_END(name, llvm_name, ...) \
  LLVMInitialize##llvm_name##TargetInfo();   \
  LLVMInitialize##llvm_name##Target();       \
  LLVMInitialize##llvm_name##TargetMC();     \
  LLVMInitialize##llvm_name##AsmPrinter();
#include "codegen/llvm/back_ends.def"
  });
  std::string error;
#if LLVM_VERSION_MAJOR >= 22
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple(target), error);
#else
  const llvm::Target* found =
      llvm::TargetRegistry::lookupTarget(target.architecture->llvm_triple(), error);
#endif
  if (found == nullptr)
    throw Error(ErrorKind::Unsupported,
                cat("this LLVM can't generate code for ", target.architecture->name, ": ", error));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  options.MCOptions.ABIName = target.architecture->abi;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple(target), target.architecture->base_cpu, feature_text(target), options,
      llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

// Their entries in a module.
using KernelNames = std::map<const llvm::Function*, std::string>;

// Compiles modules for one target to object files.
class ModuleCompiler {
 public:
  ModuleCompiler(const Target& target, const EmitOptions& options, std::string* ir,
                 std::string* assembly)
      : target_(target),
        options_(options),
        machine_(target_machine(target)),
        ir_(ir),
        assembly_(assembly) {}

  // `write` returns the kernels that it wrote.
  template <class Write>
  std::string compile(Write&& write) {
    llvm::LLVMContext context;
    llvm::Module module("kernels", context);
    module.setTargetTriple(triple(target_));
    module.setDataLayout(machine_->createDataLayout());
    module.setPICLevel(llvm::PICLevel::BigPIC);
    if (const std::string_view abi = target_.architecture->abi; !abi.empty()) {
      module.addModuleFlag(llvm::Module::Error, "target-abi", llvm::MDString::get(context, abi));
    }
    KernelNames kernels;
    {
      ModuleWriter writer(module, target_, options_.clear_scratch);
      kernels = write(writer);
    }
    std::string problems;
    llvm::raw_string_ostream problem_stream(problems);
    if (llvm::verifyModule(module, &problem_stream))
      throw Error(ErrorKind::Internal, "the code written for the program is not valid LLVM IR")
          .found(problem_stream.str());
    {
      const trace::Scope recorded(trace::Kind::Phase, "optimise");
      optimise(module, *machine_, options_.optimisation);
    }
    if (ir_ != nullptr) {
      llvm::raw_string_ostream out(*ir_);
      module.print(out, nullptr);
    }
    if (assembly_ != nullptr)
      *assembly_ +=
          generate(*llvm::CloneModule(module), *machine_, llvm::CodeGenFileType::AssemblyFile);
    StackUse stack(module);
    std::string object = [&] {
      const trace::Scope recorded(trace::Kind::Phase, "assemble");
      return generate(module, *machine_, llvm::CodeGenFileType::ObjectFile);
    }();
    stack.check(kernels);
    return object;
  }

 private:
  const Target& target_;
  const EmitOptions& options_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::string *ir_, *assembly_;
};

// Entries are hidden symbols that the table refers to.
std::string entry_symbol(size_t kernel) {
  return cat("tenon.entry.", kernel);
}

// The entry comes first, so that the kernel's code is between it and the next entry.
llvm::Function* write_kernel(ModuleWriter& m, const loop::Kernel& kernel, size_t index) {
  auto& functions = m.module.getFunctionList();
  llvm::Function* const before = functions.empty() ? nullptr : &functions.back();
  CodeSize size(kernel);
  llvm::Function* body = write_body(m, kernel, size);
  llvm::Function* entry = write_entry(m, kernel, body, size);
  entry->setName(entry_symbol(index));
  entry->setLinkage(llvm::GlobalValue::ExternalLinkage);
  entry->setVisibility(llvm::GlobalValue::HiddenVisibility);
  const auto first = before ? std::next(before->getIterator()) : functions.begin();
  functions.splice(first, functions, entry->getIterator());
  return entry;
}

// The exported table, in the order of `kernels`: sorted by name.
void write_table(ModuleWriter& m, const std::vector<loop::KernelRef>& kernels) {
  auto* entry_type = llvm::StructType::get(m.context, {m.pointer, m.pointer});
  auto* function_type = abi_function<vm::KernelEntryFunction>(m.context);
  std::vector<llvm::Constant*> entries;
  for (size_t i = 0; i < kernels.size(); ++i) {
    llvm::Function* f = m.module.getFunction(entry_symbol(i));
    if (f == nullptr) {
      f = llvm::Function::Create(function_type, llvm::GlobalValue::ExternalLinkage, entry_symbol(i),
                                 m.module);
      f->setVisibility(llvm::GlobalValue::HiddenVisibility);
      f->setDSOLocal(true);
    }
    entries.push_back(llvm::ConstantStruct::get(entry_type, {m.text(kernels[i]->name), f}));
  }
  auto* entries_type = llvm::ArrayType::get(entry_type, entries.size());
  auto* list = m.constant(llvm::ConstantArray::get(entries_type, entries), "entries");
  const vm::CpuFeatureSet words = vm::cpu_feature_set(m.target.features);
  llvm::Constant* table =
      llvm::ConstantStruct::getAnon({llvm::ConstantInt::get(m.i32, vm::kKernelAbiVersion),
                                     llvm::ConstantInt::get(m.i32, kernels.size()),
                                     llvm::ConstantDataArray::get(m.context, words), list});
  new llvm::GlobalVariable(m.module, table->getType(), true, llvm::GlobalValue::ExternalLinkage,
                           table, vm::kKernelTableSymbol);
}

// The exported table of a shared object for a program. Where the program's file will lie is
// unknown: a note section makes the linker reserve the headers that vm::write_shared then fills in.
void write_model_table(ModuleWriter& m, bool has_code) {
  const auto hidden = [&](const char* name, llvm::Type* type, llvm::Constant* value) {
    auto* made = new llvm::GlobalVariable(m.module, type, true, llvm::GlobalValue::ExternalLinkage,
                                          value, name);
    made->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return made;
  };
  hidden("tenon_model_note", m.i64, llvm::ConstantInt::get(m.i64, 0))
      ->setSection(vm::kModelSection);
  // Not exported any more, so that its distance is known when the object is linked.
  llvm::GlobalVariable* kernels = m.module.getNamedGlobal(vm::kKernelTableSymbol);
  kernels->setVisibility(llvm::GlobalValue::HiddenVisibility);
  auto* type = llvm::StructType::get(m.context, {m.i32, m.i32, m.i64, m.i64, m.i64, m.i64});
  llvm::GlobalVariable* table = hidden("model_table", type, nullptr);
  const auto distance = [&](llvm::Constant* from_table) {
    return llvm::ConstantExpr::getSub(llvm::ConstantExpr::getPtrToInt(from_table, m.i64),
                                      llvm::ConstantExpr::getPtrToInt(table, m.i64));
  };
  llvm::Constant* zero = llvm::ConstantInt::get(m.i64, 0);
  table->setInitializer(llvm::ConstantStruct::get(
      type, {llvm::ConstantInt::get(m.i32, vm::kModelAbiVersion),
             llvm::ConstantInt::get(m.i32, sizeof(vm::ModelTable)), zero, zero, distance(kernels),
             has_code ? distance(hidden(vm::kCodeTableSymbol, m.i8, nullptr)) : zero}));
  llvm::GlobalAlias::create(vm::kModelTableSymbol, table);
}

// The code shared by all kernel objects for a target, compiled once per process.
std::string shared_code(const Target& target) {
  static std::mutex mutex;
  static std::map<std::string, std::string> objects;
  std::lock_guard lock(mutex);
  std::string& object =
      objects[cat(target.architecture->name, " ", target.tune, " ", to_text(target))];
  if (object.empty()) {
    const EmitOptions options;
    object = ModuleCompiler(target, options, nullptr, nullptr).compile([](ModuleWriter& m) {
      write_checks(m);
      return KernelNames();
    });
  }
  return object;
}

std::vector<uint8_t> compile(const Array<loop::KernelRef>& kernels, const Target& target,
                             const EmitOptions& options) {
  std::vector<loop::KernelRef> sorted(kernels.begin(), kernels.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a->name < b->name; });
  for (size_t i = 1; i < sorted.size(); ++i)
    TENON_ASSERT(sorted[i - 1]->name != sorted[i]->name, "two kernels are named '", sorted[i]->name,
                 "'");
  for (const loop::KernelRef& kernel : sorted) {
    loop::check(*kernel);
    check_nesting(*kernel);
  }

  // How kernels are distributed over modules depends only on their number, so the bytes do too.
  const size_t modules =
      std::max<size_t>(1, (sorted.size() + kKernelsPerModule - 1) / kKernelsPerModule);
  std::vector<std::string> objects(modules), ir(modules), assembly(modules);
  std::vector<std::exception_ptr> failures(modules);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < modules;) {
      try {
        ModuleCompiler compiler(target, options, options.ir_text ? &ir[i] : nullptr,
                                options.assembly_text ? &assembly[i] : nullptr);
        objects[i] = compiler.compile([&](ModuleWriter& m) {
          KernelNames names;
          for (size_t k = i * sorted.size() / modules; k < (i + 1) * sorted.size() / modules; ++k) {
            poll();
            const trace::Scope recorded(trace::Kind::Codegen, sorted[k]->name.view());
            names[write_kernel(m, *sorted[k], k)] = sorted[k]->name.str();
          }
          if (i == 0) write_table(m, sorted);
          if (i == 0 && options.shared) write_model_table(m, options.bytecode != nullptr);
          return names;
        });
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::optional<Phase> compiling(std::in_place, "kernels");
  const size_t workers =
      std::min<size_t>(modules, static_cast<size_t>(std::max(1, options.threads)));
  std::vector<std::thread> others;
  others.reserve(workers - 1);
  // If the system has no more threads, fewer or none help; `work` itself doesn't throw.
  try {
    while (others.size() + 1 < workers) {
      others.emplace_back([&, poller = Poller::current()] {
        const Poller::Scope scope(poller);
        try {
          run_with_compile_stack([&] {
            const FatalAllocationScope fatal;
            work();
          });
        } catch (const Error&) {
        }
      });
    }
  } catch (const std::system_error&) {
  }
  work();
  for (std::thread& t : others) t.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (const std::string& text : ir)
    if (options.ir_text) *options.ir_text += text;
  for (const std::string& text : assembly)
    if (options.assembly_text) *options.assembly_text += text;
  if (options.bytecode) {
    EmitOptions light = options;  // LLVM's own passes take twice as long, and gain nothing
    light.optimisation = Optimisation::kLoops;
    ModuleCompiler compiler(target, light, options.ir_text, options.assembly_text);
    objects.push_back(compiler.compile([&](ModuleWriter& m) {
      const trace::Scope recorded(trace::Kind::Codegen, "bytecode");
      BytecodeWriter(m, *options.bytecode).write();
      return KernelNames();
    }));
  }
  objects.push_back(shared_code(target));
  compiling.reset();
  Phase linking("link");
  std::vector<std::string> exported = {vm::kKernelTableSymbol};
  if (options.bytecode) exported.emplace_back(vm::kCodeTableSymbol);
  if (options.shared) exported = {vm::kModelTableSymbol};
  return link_closed(objects, target.architecture->emulation, exported);
}

}  // namespace

bool can_compile_bytecode(const vm::Unit& unit, const Target& target) {
  return target.architecture->compiles_bytecode && is_worth_compiling(unit);
}

std::vector<uint8_t> compile_kernels(const Array<loop::KernelRef>& kernels, const Target& target,
                                     const EmitOptions& options) {
  std::vector<uint8_t> object;
  run_with_compile_stack([&] {
    const FatalAllocationScope fatal;
    object = compile(kernels, target, options);
  });
  return object;
}

}  // namespace tenon::codegen
