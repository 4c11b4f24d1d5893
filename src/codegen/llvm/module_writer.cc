#include "codegen/llvm/module_writer.h"

#include "codegen/llvm/entry_layout.h"
#include "support/text.h"

namespace tenon::codegen {

ModuleWriter::ModuleWriter(llvm::Module& m, const Target& t, bool clear)
    : module(m),
      context(m.getContext()),
      target(t),
      clear_scratch(clear),
      math(m, t, [this](llvm::Function* f) { prepare(f); }),
      i1(llvm::Type::getInt1Ty(context)),
      i8(llvm::Type::getInt8Ty(context)),
      i16(llvm::Type::getInt16Ty(context)),
      i32(llvm::Type::getInt32Ty(context)),
      i64(llvm::Type::getInt64Ty(context)),
      pointer(llvm::PointerType::get(context, 0)) {}

std::string feature_text(const Target& target) {
  std::string text;
  for (const std::string& feature : target.features)
    text += cat(text.empty() ? "+" : ",+", feature);
  return text;
}

void ModuleWriter::prepare(llvm::Function* f) const {
  f->addFnAttr("target-cpu", target.architecture->base_cpu);
  f->addFnAttr("target-features", feature_text(target));
  f->addFnAttr("tune-cpu", target.tune);
  f->addFnAttr("prefer-vector-width", std::to_string(target.capabilities.vector_bytes * 8));
  f->addFnAttr("min-legal-vector-width", std::to_string(target.capabilities.vector_bytes * 8));
  // A frame larger than a page touches each of its pages in order, so that a stack that is too
  // small ends in its guard page.
  f->addFnAttr("probe-stack", "inline-asm");
  f->addFnAttr("no-builtins");  // calls to memset and similar functions must not appear
  f->setDoesNotThrow();
}

llvm::Function* ModuleWriter::function(llvm::FunctionType* type, const std::string& name) {
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  prepare(f);
  return f;
}

llvm::Constant* ModuleWriter::text(std::string_view text) {
  auto [it, is_new] = texts_.try_emplace(std::string(text));
  if (is_new) {
    llvm::Constant* data = llvm::ConstantDataArray::getString(context, {text.data(), text.size()});
    it->second = constant(data, "text");
  }
  return it->second;
}

llvm::GlobalVariable* ModuleWriter::constant(llvm::Constant* data, const char* name) {
  auto* global = new llvm::GlobalVariable(module, data->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, data, name);
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return global;
}

llvm::Value* ModuleWriter::field(Builder& b, llvm::Type* type, llvm::Value* base,
                                 int64_t offset) const {
  return b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(i8, base, static_cast<uint64_t>(offset)));
}

llvm::Value* ModuleWriter::raise(Builder& b, llvm::Value* runtime, const loop::Kernel& kernel,
                                 vm::KernelError code, int32_t argument, int32_t axis,
                                 llvm::Value* found, llvm::Value* expected) {
  return call(b, runtime, &vm::KernelRuntime::raise, text(kernel.name),
              b.getInt32(static_cast<uint32_t>(code)), b.getInt32(static_cast<uint32_t>(argument)),
              b.getInt32(static_cast<uint32_t>(axis)), found, expected);
}

llvm::Function* ModuleWriter::shared_function(const char* name) {
  if (llvm::Function* f = module.getFunction(name)) return f;
  llvm::Function* f = function(
      llvm::FunctionType::get(i32, {pointer, pointer, pointer, pointer, i32, pointer}, false),
      name);
  f->setLinkage(llvm::GlobalValue::ExternalLinkage);
  f->setVisibility(llvm::GlobalValue::HiddenVisibility);
  f->setDSOLocal(true);
  return f;
}

llvm::Function* ModuleWriter::check() {
  return shared_function(kCheckSymbol);
}

llvm::Function* ModuleWriter::refuse() {
  llvm::Function* f = shared_function(kRefuseSymbol);
  f->addFnAttr(llvm::Attribute::Cold);
  return f;
}

}  // namespace tenon::codegen
