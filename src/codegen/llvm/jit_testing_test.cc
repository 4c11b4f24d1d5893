#include "codegen/llvm/jit_testing.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace tenon::codegen {

struct OpenedKernels::Runtime : vm::KernelRuntime {
  OpenedKernels* owner;
};

OpenedKernels::OpenedKernels(const std::vector<uint8_t>& object) {
  runtime_ = std::make_unique<Runtime>();
  runtime_->owner = this;
  runtime_->abi_version = vm::kKernelAbiVersion;
  runtime_->size = sizeof(vm::KernelRuntime);
  static auto static_owner = [](const vm::KernelRuntime* r) {
    return static_cast<const Runtime*>(r)->owner;
  };
  runtime_->raise = [](const vm::KernelRuntime* self, const char* kernel, vm::KernelError code,
                       int32_t argument, int32_t axis, int64_t found, int64_t expected) -> int32_t {
    static_owner(self)->raised = {code, kernel, argument, axis, found, expected};
    return 1000 + static_cast<int32_t>(code);
  };
  // Runs chunks from last to first, to detect bodies that depend on their order.
  runtime_->parallel_for = [](const vm::KernelRuntime* self, vm::KernelBody body, void* context,
                              int64_t count, int64_t grain) -> int32_t {
    ++static_owner(self)->parallel_calls;
    for (int64_t begin = (count - 1) / grain * grain; begin >= 0; begin -= grain) {
      int32_t code = body(context, begin, std::min(begin + grain, count));
      if (code != 0) return code;
    }
    return 0;
  };
  runtime_->allocate = [](const vm::KernelRuntime* self, const char*, uint64_t bytes) -> void* {
    if (bytes > static_owner(self)->workspace_limit) return nullptr;
    ++static_owner(self)->workspaces_held;
    return std::aligned_alloc(64, (bytes + 127) & ~uint64_t{63});
  };
  runtime_->release = [](const vm::KernelRuntime* self, void* workspace) {
    --static_owner(self)->workspaces_held;
    std::free(workspace);
  };
  runtime_->with_team = [](const vm::KernelRuntime* self, vm::KernelBody body, void* context,
                           int64_t count) -> int32_t {
    ++static_owner(self)->teams;
    return body(context, 0, count);
  };
  runtime_->poll = [](const vm::KernelRuntime* self) -> int32_t {
    OpenedKernels* owner = static_owner(self);
    owner->at_poll();
    return ++owner->polls >= owner->polls_until_stop ? -1 : 0;
  };
  object_ = vm::KernelObject::open({reinterpret_cast<const char*>(object.data()), object.size()},
                                   "kernels under test");
}

OpenedKernels::~OpenedKernels() = default;

const vm::KernelRuntime* OpenedKernels::runtime() const {
  return runtime_.get();
}

void OpenedKernels::make_older() {
  runtime_->size = offsetof(vm::KernelRuntime, with_team);
  runtime_->with_team = nullptr;
}

vm::KernelEntryFunction OpenedKernels::entry(const std::string& name) const {
  vm::KernelEntryFunction found = object_->find(name);
  if (found == nullptr) throw std::runtime_error("no kernel " + name);
  return found;
}

int32_t OpenedKernels::call(const std::string& name, std::vector<Any> arguments) {
  Any result;
  raised = {};
  return entry(name)(runtime_.get(), arguments.data(), static_cast<int32_t>(arguments.size()),
                     &result);
}

}  // namespace tenon::codegen
