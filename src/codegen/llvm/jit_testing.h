// For this folder's tests: opens a kernel object in this process and calls its entries as the
// machine does, with a runtime that records the last raised error.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/llvm/emit.h"
#include "object/tensor.h"
#include "vm/executable/kernel_abi.h"
#include "vm/executable/kernel_object.h"

namespace tenon::codegen {

struct Raised {
  vm::KernelError code{};
  std::string kernel;
  int32_t argument = -1, axis = -1;
  int64_t found = 0, expected = 0;
};

class OpenedKernels {
 public:
  explicit OpenedKernels(const std::vector<uint8_t>& object);
  ~OpenedKernels();
  OpenedKernels(const OpenedKernels&) = delete;
  OpenedKernels& operator=(const OpenedKernels&) = delete;

  const vm::KernelTable& table() const { return *object_->table; }
  vm::KernelEntryFunction entry(const std::string& name) const;
  // Returns 0, or the code of a failure that `raised` describes.
  int32_t call(const std::string& name, std::vector<Any> arguments);

  Raised raised;
  int64_t parallel_calls = 0;   // of parallel_for
  int64_t teams = 0;            // calls of with_team
  int64_t workspaces_held = 0;  // allocated and not yet released
  int64_t polls = 0;            // of poll, which fails from `polls_until_stop` on
  int64_t polls_until_stop = INT64_MAX;
  std::function<void()> at_poll = [] {};
  uint64_t workspace_limit = uint64_t{1} << 40;
  const vm::KernelRuntime* runtime() const;
  void make_older();  // the runtime, which then has no with_team

 private:
  struct Runtime;
  std::unique_ptr<Runtime> runtime_;
  Ref<vm::KernelObject> object_;
};

}  // namespace tenon::codegen
