// Kernels that are compiled, opened and ready to be called in this process.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/target.h"
#include "loop/kernel.h"
#include "object/any.h"
#include "vm/executable/kernel_object.h"

namespace tenon::graph {

// Keys are the caller's: two kernels under one key must compute the same. Not shared by threads.
class KernelCache {
 public:
  explicit KernelCache(codegen::Target target);
  ~KernelCache();

  bool has(const std::string& key) const { return entries_.contains(key); }
  // Compiles `kernels` into one object. Their own names don't matter.
  void compile(const std::vector<std::pair<std::string, loop::KernelRef>>& kernels);
  // Inputs, outputs and integers in `args`. Throws what the kernel raises.
  void call(const std::string& key, const std::vector<Any>& args) const;

  const codegen::Target& target() const { return target_; }

 private:
  codegen::Target target_;
  std::vector<Ref<vm::KernelObject>> objects_;
  struct Entry {
    vm::KernelEntryFunction function = nullptr;
    loop::KernelRef kernel;  // held: its address may be part of the key
  };
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace tenon::graph
