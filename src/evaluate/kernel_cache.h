// Kernels that are compiled, opened and ready to be called in this process.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/target.h"
#include "loop/kernel.h"
#include "object/any.h"
#include "vm/executable/kernel_object.h"

namespace tenon::graph {

struct CompiledKernel {
  loop::KernelRef kernel;  // held: its address may be part of its key
  Ref<vm::KernelObject> object;
  vm::KernelEntryFunction entry = nullptr;

  // Inputs, outputs and integers in `args`. Throws what the kernel raises.
  void call(const std::vector<Any>& args) const;
};
using CompiledKernelRef = std::shared_ptr<const CompiledKernel>;

// The last ones that were asked for; whoever holds another has it still. Keys are the caller's: two
// kernels under one key must compute the same. Not shared by threads.
class KernelCache {
 public:
  // Each keeps a page or more mapped and, with those that were compiled with it, an open object.
  static constexpr size_t kCapacity = 512;

  explicit KernelCache(codegen::Target target, size_t capacity = kCapacity);

  // Null when there is none under the key (any more).
  CompiledKernelRef find(const std::string& key);

  struct Request {
    std::string key;
    loop::KernelRef kernel;
  };
  // Compiles all into one object; in the order of `requests`. Errors of a kernel carry its name,
  // with a number behind it where several have one name.
  std::vector<CompiledKernelRef> compile(const std::vector<Request>& requests);

  size_t size() const { return by_key_.size(); }
  const codegen::Target& target() const { return target_; }

 private:
  void add(const std::string& key, CompiledKernelRef kernel);

  using Entry = std::pair<std::string, CompiledKernelRef>;
  codegen::Target target_;
  size_t capacity_;
  std::list<Entry> by_use_;  // the latest first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace tenon::graph
