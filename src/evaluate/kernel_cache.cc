#include "evaluate/kernel_cache.h"

#include <cstring>
#include <unordered_set>

#include "codegen/llvm/emit.h"
#include "graph/ir/rewrite.h"
#include "loop/schedule.h"
#include "object/function.h"
#include "vm/executable/kernel_runtime.h"

namespace tenon::graph {
namespace {

// `args` are those of a compiled kernel: inputs, destinations, integers.
void walk(const loop::KernelInterfaceRef& interface, const std::vector<Any>& args) {
  const loop::KernelInterface& kernel = *interface;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < kernel.inputs.size(); ++i) inputs.push_back(args[i].as<Tensor>());
  const loop::Symbols symbols = symbols_of(kernel, args);
  auto* compute = interface.as<loop::Compute>();
  loop::ScheduleOptions plain;
  plain.level = loop::ScheduleLevel::kPlain;
  const std::vector<Tensor> results =
      compute ? loop::evaluate(*compute, inputs, symbols)
              : loop::evaluate(*loop::loop_nest(interface, "walked", plain), inputs, symbols);
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor destination = args[kernel.inputs.size() + i].as<Tensor>();
    std::memcpy(destination.data(), results[i].data(), static_cast<size_t>(results[i].bytes()));
  }
}

}  // namespace

loop::Symbols symbols_of(const loop::KernelInterface& kernel, const std::vector<Any>& args) {
  loop::Symbols symbols;
  size_t next = 0;
  for (const auto* buffers : {&kernel.inputs, &kernel.outputs}) {
    for (const auto& buffer : *buffers) {
      const auto tensor = args.at(next++).as<Tensor>();
      for (size_t axis = 0; axis < buffer->shape.size(); ++axis) {
        const Dim& dim = buffer->shape[axis];
        if (dim.kind() != DimKind::kSymbol) continue;
        symbols.try_emplace(dim.node().name.str(), tensor.dim(static_cast<int32_t>(axis)));
      }
    }
  }
  for (const String& name : kernel.integers) symbols[name.str()] = args.at(next++).as<int64_t>();
  return symbols;
}

void PreparedKernel::call(const std::vector<Any>& args) const {
  if (!entry) return walk(kernel, args);
  std::vector<AnyView> views(args.begin(), args.end());
  Any result;
  if (entry(const_cast<vm::KernelRuntime*>(&vm::kernel_runtime()), views.data(),
            static_cast<int32_t>(views.size()), &result) != 0) {
    throw take_error();
  }
}

KernelCache::KernelCache(codegen::Target target, KernelMode mode, size_t capacity)
    : target_(std::move(target)), mode_(mode), capacity_(capacity) {}

PreparedKernelRef KernelCache::find(const std::string& key) {
  auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, it->second);
  return it->second->second;
}

std::vector<PreparedKernelRef> KernelCache::prepare(const std::vector<Request>& requests) {
  if (requests.empty()) return {};
  std::vector<PreparedKernelRef> prepared;
  if (mode_ == KernelMode::kWalked) {
    for (const Request& request : requests) {
      prepared.push_back(std::make_shared<PreparedKernel>(PreparedKernel{
          request.kernel,
          loop::loop_nest(
              request.kernel, request.name,
              loop::ScheduleOptions{.level = loop::ScheduleLevel::kPlain, .target = {}}),
          nullptr, nullptr}));
    }
  } else {
    prepared = compile(requests);
  }
  for (size_t i = 0; i < requests.size(); ++i) add(requests[i].key, prepared[i]);
  return prepared;
}

std::vector<PreparedKernelRef> KernelCache::compile(const std::vector<Request>& requests) const {
  loop::ScheduleOptions schedule;
  schedule.level =
      mode_ == KernelMode::kScheduled ? loop::ScheduleLevel::kShaped : loop::ScheduleLevel::kPlain;
  schedule.target = target_.facts();
  Array<loop::KernelRef> named;
  std::unordered_set<std::string> taken;
  for (const Request& request : requests) {
    const std::string name =
        free_name(request.name, [&](const std::string& n) { return taken.contains(n); });
    taken.insert(name);
    named.push_back(loop::loop_nest(request.kernel, name, schedule));
  }
  codegen::EmitOptions options;
  options.optimisation = codegen::Optimisation::kLoops;
  const std::vector<uint8_t> bytes = codegen::compile_kernels(named, target_, options);
  const Ref<vm::KernelObject> object = vm::KernelObject::open(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      "kernels compiled to be run at once");
  std::vector<PreparedKernelRef> compiled;
  for (size_t i = 0; i < requests.size(); ++i) {
    compiled.push_back(std::make_shared<PreparedKernel>(
        PreparedKernel{requests[i].kernel, named[i], object, object->find(named[i]->name)}));
  }
  return compiled;
}

void KernelCache::add(const std::string& key, PreparedKernelRef kernel) {
  TENON_ASSERT(!by_key_.contains(key), "kernel ", key, " is already compiled");
  by_use_.emplace_front(key, std::move(kernel));
  by_key_[key] = by_use_.begin();
  if (by_use_.size() <= capacity_) return;
  by_key_.erase(by_use_.back().first);
  by_use_.pop_back();
}

}  // namespace tenon::graph
