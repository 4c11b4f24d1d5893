#include "vm/executable/kernel_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object/function.h"
#include "object/tensor.h"

namespace tenon::vm {
namespace {

using testing::HasSubstr;

TEST(KernelRuntime, WorkspaceOfNoBytesIsStillWorkspace) {
  const KernelRuntime& runtime = kernel_runtime();
  void* none = runtime.allocate(&runtime, "k", 0);
  void* one = runtime.allocate(&runtime, "k", 1);
  ASSERT_NE(none, nullptr);
  ASSERT_NE(one, nullptr);
  EXPECT_NE(none, one);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(none) % kDataAlignment, 0u);
  runtime.release(&runtime, none);
  runtime.release(&runtime, one);
  runtime.release(&runtime, nullptr);
}

// Also where adding what stands ahead of the workspace would overflow.
TEST(KernelRuntime, WorkspaceThatNoMachineHasIsAnErrorOfTheKernel) {
  const KernelRuntime& runtime = kernel_runtime();
  for (uint64_t bytes : {uint64_t{1} << 48, UINT64_MAX}) {
    EXPECT_EQ(runtime.allocate(&runtime, "shift", bytes), nullptr);
    EXPECT_THAT(take_error().render(), HasSubstr("kernel 'shift': there is not enough memory"));
  }
}

TEST(KernelRuntime, WhatABodyReturnsEndsTheLoop) {
  const KernelRuntime& runtime = kernel_runtime();
  const KernelBody refuse = [](void* runtime, int64_t, int64_t) {
    auto* self = static_cast<const KernelRuntime*>(runtime);
    return self->raise(self, "divide", KernelError::DivisionByZero, -1, -1, 0, 0);
  };
  void* context = const_cast<KernelRuntime*>(&runtime);
  EXPECT_NE(runtime.parallel_for(&runtime, refuse, context, 10, 1), 0);
  EXPECT_THAT(take_error().render(), HasSubstr("kernel 'divide'"));
}

}  // namespace
}  // namespace tenon::vm
