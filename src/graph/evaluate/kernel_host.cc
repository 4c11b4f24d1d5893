#include "graph/evaluate/kernel_host.h"

#include <cstdlib>

#include "device/parallel.h"
#include "object/function.h"
#include "object/tensor.h"
#include "vm/executable/kernel_error.h"

namespace tenon::graph {
namespace {

int32_t raise(const vm::KernelRuntime*, const char* kernel, vm::KernelError code, int32_t argument,
              int32_t axis, int64_t found, int64_t expected) {
  set_error(vm::kernel_error(kernel, code, argument, axis, found, expected));
  return -1;
}

int32_t run_in_parallel(const vm::KernelRuntime*, vm::KernelBody body, void* context, int64_t count,
                        int64_t grain) {
  ParallelLoop loop;
  loop.n = count;
  loop.grain = grain;
  loop.body = body;
  loop.context = context;
  return try_parallel(loop);
}

void* allocate(const vm::KernelRuntime*, const char* kernel, uint64_t bytes) {
  if (bytes > PTRDIFF_MAX - kDataAlignment) bytes = 0;
  const uint64_t rounded = (bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  void* memory = rounded == 0 ? nullptr : std::aligned_alloc(kDataAlignment, rounded);
  if (!memory) {
    raise(nullptr, kernel, vm::KernelError::OutOfMemory, -1, -1, static_cast<int64_t>(bytes), 0);
  }
  return memory;
}

void release(const vm::KernelRuntime*, void* workspace) {
  std::free(workspace);
}

}  // namespace

const vm::KernelRuntime& kernel_host() {
  static const vm::KernelRuntime runtime = {
      vm::kKernelAbiVersion, sizeof(vm::KernelRuntime), raise, run_in_parallel, allocate, release};
  return runtime;
}

}  // namespace tenon::graph
