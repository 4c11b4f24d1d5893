// Kernels that are ready to be called in this process: compiled and loaded, or walked.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/target.h"
#include "loop/evaluator.h"
#include "loop/kernel.h"
#include "object/any.h"
#include "vm/executable/kernel_object.h"

namespace tenon::graph {

// How kernels run, from the fastest mode to the most independent of what it tests.
enum class KernelMode : uint8_t {
  kScheduled,  // scheduled for the target and compiled
  kPlain,      // as plain loops in the order of their stages, compiled
  kWalked,     // computes, walked by loop/evaluator element by element: no schedules, no code
};

struct PreparedKernel {
  loop::KernelInterfaceRef kernel;  // kept alive: its address may be part of its key
  loop::KernelRef nest;             // its loops, for estimating its work
  Ref<vm::KernelObject> object;
  vm::KernelEntryFunction entry = nullptr;  // null: walked

  // `args` are inputs, outputs, then integers. Throws what the kernel throws.
  void call(const std::vector<Any>& args) const;
};
using PreparedKernelRef = std::shared_ptr<const PreparedKernel>;

// The values of a kernel's symbols in a call with these arguments, inputs, outputs, then integers.
loop::Symbols symbols_of(const loop::KernelInterface& kernel, const std::vector<Any>& args);

// A cache of the most recently used kernels; evicted ones live on while they are referenced. The
// caller chooses keys: two kernels with one key must compute the same. Not thread-safe.
class KernelCache {
 public:
  // Each kernel keeps at least a page mapped; kernels compiled together share a loaded object.
  static constexpr size_t kCapacity = 512;

  explicit KernelCache(codegen::Target target, KernelMode mode = KernelMode::kScheduled,
                       size_t capacity = kCapacity);

  // Null if the cache doesn't hold the key.
  PreparedKernelRef find(const std::string& key);

  struct Request {
    std::string key, name;
    loop::KernelInterfaceRef kernel;
  };
  // Prepares kernels, in the order of `requests`, and compiles those that need it into one object.
  // Errors of a compiled kernel carry its name, numbered if several have the same name.
  std::vector<PreparedKernelRef> prepare(const std::vector<Request>& requests);

  size_t size() const { return by_key_.size(); }
  const codegen::Target& target() const { return target_; }
  KernelMode mode() const { return mode_; }

 private:
  std::vector<PreparedKernelRef> compile(const std::vector<Request>& requests) const;
  void add(const std::string& key, PreparedKernelRef kernel);

  using Entry = std::pair<std::string, PreparedKernelRef>;
  codegen::Target target_;
  KernelMode mode_;
  size_t capacity_;
  std::list<Entry> by_use_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace tenon::graph
