#include "evaluate/kernel_cache.h"

#include <unordered_set>

#include "codegen/llvm/emit.h"
#include "object/function.h"
#include "vm/executable/kernel_runtime.h"

namespace tenon::graph {
namespace {

loop::KernelRef renamed(const loop::Kernel& kernel, const std::string& name) {
  return make<loop::Kernel>(String(name), kernel.inputs, kernel.outputs, kernel.integers,
                            kernel.in_place, kernel.body, kernel.in_bounds);
}

// `name`, or the first of `name_1`, `name_2`, ... that is not in `taken`, which gets it.
std::string untaken(const std::string& name, std::unordered_set<std::string>* taken) {
  std::string found = name;
  for (int i = 1; !taken->insert(found).second; ++i) found = cat(name, "_", i);
  return found;
}

}  // namespace

void CompiledKernel::call(const std::vector<Any>& args) const {
  std::vector<AnyView> views(args.begin(), args.end());
  Any result;
  if (entry(const_cast<vm::KernelRuntime*>(&vm::kernel_runtime()), views.data(),
            static_cast<int32_t>(views.size()), &result) != 0) {
    throw take_error();
  }
}

KernelCache::KernelCache(codegen::Target target, size_t capacity)
    : target_(std::move(target)), capacity_(capacity) {}

CompiledKernelRef KernelCache::find(const std::string& key) {
  auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, it->second);
  return it->second->second;
}

std::vector<CompiledKernelRef> KernelCache::compile(const std::vector<Request>& requests) {
  if (requests.empty()) return {};
  Array<loop::KernelRef> named;
  std::unordered_set<std::string> taken;
  for (const Request& request : requests) {
    named.push_back(renamed(*request.kernel, untaken(request.kernel->name.str(), &taken)));
  }
  codegen::EmitOptions options;
  options.optimisation = 1;
  const std::vector<uint8_t> bytes = codegen::compile_kernels(named, target_, options);
  const Ref<vm::KernelObject> object = vm::KernelObject::open(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      "kernels compiled to be run at once");
  std::vector<CompiledKernelRef> compiled;
  for (size_t i = 0; i < requests.size(); ++i) {
    compiled.push_back(std::make_shared<CompiledKernel>(
        CompiledKernel{requests[i].kernel, object, object->find(named[i]->name)}));
    add(requests[i].key, compiled.back());
  }
  return compiled;
}

void KernelCache::add(const std::string& key, CompiledKernelRef kernel) {
  TENON_ASSERT(!by_key_.contains(key), "kernel ", key, " is compiled already");
  by_use_.emplace_front(key, std::move(kernel));
  by_key_[key] = by_use_.begin();
  if (by_use_.size() <= capacity_) return;
  by_key_.erase(by_use_.back().first);
  by_use_.pop_back();
}

}  // namespace tenon::graph
