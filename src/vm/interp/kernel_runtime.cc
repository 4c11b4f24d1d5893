#include "vm/interp/kernel_runtime.h"

#include <cstdlib>

#include "device/parallel.h"
#include "object/function.h"
#include "object/tensor.h"
#include "vm/executable/kernel_error.h"
#include "vm/interp/machine.h"

namespace tenon::vm {
namespace {

int32_t raise(const KernelRuntime*, const char* kernel, KernelError code, int32_t argument,
              int32_t axis, int64_t found, int64_t expected) {
  try {
    set_error(kernel_error(kernel, code, argument, axis, found, expected));
  } catch (...) {
    set_current_exception();
  }
  return -1;
}

int32_t run_loop(const KernelRuntime*, KernelBody body, void* context, int64_t count,
                 int64_t grain) {
  ParallelLoop loop;
  loop.n = count;
  loop.grain = grain < 1 ? 1 : grain;
  loop.body = body;
  loop.context = context;
  return parallel_table().run(&loop);
}

// Ahead of every workspace: its machine and size. A whole alignment, so that the rest is aligned.
struct alignas(kDataAlignment) Workspace {
  Machine* machine;
  size_t bytes;
};

void* allocate(const KernelRuntime* self, const char* kernel, uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 47;
  size_t total = sizeof(Workspace) + (bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  Machine* machine = Machine::current();
  bool fits = bytes <= kMost && (!machine || machine->count_memory(total));
  auto* workspace =
      fits ? static_cast<Workspace*>(std::aligned_alloc(kDataAlignment, total)) : nullptr;
  if (!workspace) {
    if (fits && machine) machine->discount_memory(total);
    self->raise(self, kernel, KernelError::OutOfMemory, -1, -1, static_cast<int64_t>(bytes), 0);
    return nullptr;
  }
  workspace->machine = machine;
  workspace->bytes = total;
  return workspace + 1;
}

void give_back(const KernelRuntime*, void* memory) {
  if (!memory) return;
  Workspace* workspace = static_cast<Workspace*>(memory) - 1;
  if (workspace->machine) workspace->machine->discount_memory(workspace->bytes);
  std::free(workspace);
}

constexpr KernelRuntime kRuntime = {
    kKernelAbiVersion, sizeof(KernelRuntime), &raise, &run_loop, &allocate, &give_back};

}  // namespace

const KernelRuntime& kernel_runtime() {
  return kRuntime;
}

}  // namespace tenon::vm
