#include "vm/executable/kernel_runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device/call_context.h"
#include "device/parallel.h"
#include "object/function.h"
#include "object/tensor.h"
#include "support/bulk.h"
#include "support/pages.h"
#include "support/thread_slot.h"
#include "vm/executable/kernel_error.h"

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
  return try_parallel(loop);
}

// Precedes every workspace: the call that it counts for, what it counts as, and the bytes that it
// has, a multiple of the alignment, so that the workspace is aligned.
struct alignas(kDataAlignment) Workspace {
  CallContext* call;
  size_t bytes;
  size_t capacity;
};

void drop(Workspace* workspace) {
  std::free(workspace);
}

// The largest workspace that the thread gave back, for its next kernel: pages that the system has
// to map anew take longer than many a kernel.
using KeptWorkspace = ThreadSlot<Workspace, drop>;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kMostKept = 0;
#else
constexpr size_t kMostKept = size_t{16} << 20;
#endif

void give_back(const KernelRuntime*, void* memory) {
  if (!memory) return;
  Workspace* workspace = static_cast<Workspace*>(memory) - 1;
  if (workspace->call) workspace->call->discount_memory(workspace->bytes);
  const Workspace* const kept = KeptWorkspace::get();
  if (workspace->capacity <= kMostKept && (!kept || kept->capacity < workspace->capacity)) {
    workspace = KeptWorkspace::exchange(workspace);
  }
  std::free(workspace);
}

Workspace* take_kept(size_t bytes) {
  const Workspace* const kept = KeptWorkspace::get();
  return kept && kept->capacity >= bytes ? KeptWorkspace::exchange(nullptr) : nullptr;
}

Workspace* new_workspace(size_t bytes) {
  auto* workspace = static_cast<Workspace*>(std::aligned_alloc(kDataAlignment, bytes));
  if (!workspace) return nullptr;
  use_large_pages(workspace, bytes);
  workspace->capacity = bytes;
  return workspace;
}

void* allocate(const KernelRuntime* self, const char* kernel, uint64_t bytes) {
  const size_t most = std::min<uint64_t>(bytes, kAddressSpace);
  const size_t total =
      sizeof(Workspace) + (most + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  CallContext* const call = CallContext::current();
  Workspace* workspace = nullptr;
  try {
    charge(total);
    if (bytes <= kAddressSpace) {
      workspace = take_kept(total);
      if (!workspace) workspace = new_workspace(total);
    }
    if (!workspace) {
      if (call) call->discount_memory(total);
      self->raise(self, kernel, KernelError::OutOfMemory, -1, -1, static_cast<int64_t>(bytes), 0);
      return nullptr;
    }
    workspace->call = call;
    workspace->bytes = total;
    const auto byte = call ? call->fill_byte() : std::nullopt;
    if (byte) fill_memory(workspace + 1, *byte, total - sizeof(Workspace));
    return workspace + 1;
  } catch (...) {  // over the call's limit, or the call should stop
    if (workspace) give_back(self, workspace + 1);
    set_current_exception();
    return nullptr;
  }
}

// This runtime drives no device but the CPU, whose kernels are called directly.
int32_t launch(const KernelRuntime* self, const KernelLaunch* launch) {
  const int64_t device = static_cast<int64_t>(static_cast<uint32_t>(launch->device_type)) |
                         static_cast<int64_t>(launch->device_index) << 32;
  return self->raise(self, launch->kernel, KernelError::NoDevice, -1, -1, 0, device);
}

int32_t poll_call(const KernelRuntime*) {
  try {
    poll();
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

int32_t run_with_team(const KernelRuntime*, KernelBody body, void* context, int64_t count) {
  return try_with_team(body, context, count);
}

constexpr KernelRuntime kRuntime = {.abi_version = kKernelAbiVersion,
                                    .size = sizeof(KernelRuntime),
                                    .raise = &raise,
                                    .parallel_for = &run_loop,
                                    .allocate = &allocate,
                                    .release = &give_back,
                                    .launch = &launch,
                                    .poll = &poll_call,
                                    .with_team = &run_with_team};

}  // namespace

const KernelRuntime& kernel_runtime() {
  return kRuntime;
}

}  // namespace tenon::vm
