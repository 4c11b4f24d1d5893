#include "graph/evaluate/kernel_cache.h"

#include "codegen/llvm/emit.h"
#include "object/function.h"
#include "vm/executable/kernel_object.h"
#include "vm/executable/kernel_runtime.h"

namespace tenon::graph {

KernelCache::KernelCache(codegen::Target target) : target_(std::move(target)) {}
KernelCache::~KernelCache() = default;

void KernelCache::compile(const std::vector<std::pair<std::string, loop::KernelRef>>& kernels) {
  if (kernels.empty()) return;
  Array<loop::KernelRef> named;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const loop::Kernel& kernel = *kernels[i].second;
    named.push_back(make<loop::Kernel>(String(cat("k", i)), kernel.inputs, kernel.outputs,
                                       kernel.integers, kernel.in_place, kernel.body,
                                       kernel.in_bounds));
  }
  codegen::EmitOptions options;
  options.optimisation = 1;
  const std::vector<uint8_t> bytes = codegen::compile_kernels(named, target_, options);
  objects_.push_back(vm::KernelObject::open(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      "folded kernels"));
  for (size_t i = 0; i < kernels.size(); ++i) {
    entries_[kernels[i].first] = {objects_.back()->find(cat("k", i)), kernels[i].second};
  }
}

void KernelCache::call(const std::string& key, const std::vector<Any>& args) const {
  auto it = entries_.find(key);
  TENON_ASSERT(it != entries_.end() && it->second.function, "kernel ", key, " was not compiled");
  std::vector<AnyView> views(args.begin(), args.end());
  Any result;
  if (it->second.function(const_cast<vm::KernelRuntime*>(&vm::kernel_runtime()), views.data(),
                          static_cast<int32_t>(views.size()), &result) != 0) {
    throw take_error();
  }
}

}  // namespace tenon::graph
