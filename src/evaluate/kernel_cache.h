// Kernels that are ready to be called in this process: compiled and opened, or to be walked.
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

// How kernels run, from the fastest to the one that shares least with what it tests.
enum class KernelMode : uint8_t {
  kScheduled,  // operators by the schedules that fit them, compiled
  kPlain,      // operators by plain loops in the order of their stages, compiled
  kWalked,     // computes, walked by loop/evaluator an element at a time: no schedules, no code
};

struct PreparedKernel {
  loop::KernelInterfaceRef kernel;  // held: its address may be part of its key
  loop::KernelRef nest;             // its loops, by which its work is estimated
  Ref<vm::KernelObject> object;
  vm::KernelEntryFunction entry = nullptr;  // null: walked

  // Inputs, outputs and integers in `args`. Throws what the kernel raises.
  void call(const std::vector<Any>& args) const;
};
using PreparedKernelRef = std::shared_ptr<const PreparedKernel>;

// The last ones that were asked for; whoever holds another has it still. Keys are the caller's: two
// kernels under one key must compute the same. Not shared by threads.
class KernelCache {
 public:
  // Each keeps a page or more mapped and, with those that were compiled with it, an open object.
  static constexpr size_t kCapacity = 512;

  explicit KernelCache(codegen::Target target, KernelMode mode = KernelMode::kScheduled,
                       size_t capacity = kCapacity);

  // Null when there is none under the key (any more).
  PreparedKernelRef find(const std::string& key);

  struct Request {
    std::string key, name;
    loop::KernelInterfaceRef kernel;
  };
  // In the order of `requests`; what is compiled is compiled into one object. Errors of a compiled
  // kernel carry its name, with a number behind it where several have one name.
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
  std::list<Entry> by_use_;  // the latest first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace tenon::graph
