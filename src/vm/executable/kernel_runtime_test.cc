#include "vm/executable/kernel_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "device/call_context.h"
#include "object/function.h"
#include "object/tensor.h"
#include "vm/executable/kernel_error.h"

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

// What an untrusted program may see through a kernel that reads memory before writing it.
TEST(KernelRuntime, WorkspaceIsFilledWhereTheCallAsksForIt) {
  struct Clears final : CallContext {
    bool stops = false;
    std::optional<int> fill_byte() const override { return 0; }
    void poll() override {
      if (stops) throw Error(ErrorKind::Runtime, "stopped");
    }
    Ref<StorageObj> allocate(size_t, size_t) override { return {}; }
    bool may_write(const Tensor&) const override { return true; }
    bool count_memory(size_t) override { return true; }
    void discount_memory(size_t) override {}
    void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
  } call;
  CallContext::Scope scope(&call);
  const KernelRuntime& runtime = kernel_runtime();
  constexpr size_t kBytes = 100'000;
  for (int i = 0; i < 3; ++i) {
    auto* bytes = static_cast<char*>(runtime.allocate(&runtime, "k", kBytes));
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(std::count(bytes, bytes + kBytes, 0), static_cast<ptrdiff_t>(kBytes));
    std::fill_n(bytes, kBytes, 0x5a);
    runtime.release(&runtime, bytes);
  }
  call.stops = true;
  EXPECT_EQ(runtime.allocate(&runtime, "k", size_t{64} << 20), nullptr);
  EXPECT_THAT(take_error().render(), HasSubstr("stopped"));
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(KernelRuntime, KeepsTheLargestWorkspaceForTheNextKernel) {
  const KernelRuntime& runtime = kernel_runtime();
  void* const large = runtime.allocate(&runtime, "k", 1 << 20);
  void* const small = runtime.allocate(&runtime, "k", 1 << 19);
  EXPECT_NE(large, small);
  runtime.release(&runtime, large);
  runtime.release(&runtime, small);
  for (uint64_t bytes : {1 << 10, 1 << 20}) {
    void* const again = runtime.allocate(&runtime, "k", bytes);
    EXPECT_EQ(again, large) << bytes;
    runtime.release(&runtime, again);
  }
}
#endif

// Also if adding the header's size would overflow.
TEST(KernelRuntime, WorkspaceThatNoMachineHasIsAnErrorOfTheKernel) {
  const KernelRuntime& runtime = kernel_runtime();
  for (uint64_t bytes : {uint64_t{1} << 48, UINT64_MAX}) {
    EXPECT_EQ(runtime.allocate(&runtime, "shift", bytes), nullptr);
    EXPECT_THAT(take_error().render(), HasSubstr("kernel 'shift': not enough memory"));
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

TEST(KernelError, NamesWhatWasFoundAndExpected) {
  const auto text = [](KernelError code, int32_t argument, int32_t axis, int64_t found,
                       int64_t expected) {
    return kernel_error("k", code, argument, axis, found, expected).render();
  };
  EXPECT_EQ(text(KernelError::Device, 2, -1, kDLCUDA | int64_t{1} << 32, kDLCPU),
            "error: kernel 'k': argument 2 is on the wrong device\n"
            "  found     cuda:1\n  expected  cpu:0");
  EXPECT_EQ(text(KernelError::Dtype, 0, -1, i8.word(), f32.word()),
            "error: kernel 'k': argument 0 has the wrong dtype\n"
            "  found     i8\n  expected  f32");
  EXPECT_EQ(text(KernelError::IndexOutOfRange, -1, -1, 7, 5),
            "error: kernel 'k': an index is out of range\n"
            "  found     7\n  expected  from -5 to 4");
  EXPECT_EQ(text(KernelError::OutsideBuffer, -1, 1, 3, 0),
            "error: kernel 'k': an access lies outside axis 1 of scratch\n"
            "  found     index 3\n  expected  none: there are no elements");
  EXPECT_EQ(text(KernelError::ChecksDisagree, -1, -1, 0, 0),
            "internal error: kernel 'k': the entry refused arguments that its checks accept\n"
            "  help: this is a bug in Tenon; please report it with the program that shows it");
  EXPECT_EQ(text(KernelError{17}, 0, 0, 1, 1), "error: kernel 'k': stopped with code 17");
}

TEST(KernelRuntime, WithoutDevicesLaunchesNothing) {
  const KernelRuntime& runtime = kernel_runtime();
  ASSERT_GE(runtime.size, offsetof(KernelRuntime, launch) + sizeof(void*));
  KernelLaunch launch{};
  launch.size = sizeof launch;
  launch.kernel = "scale";
  launch.device_type = kDLCUDA;
  launch.device_index = 1;
  EXPECT_NE(runtime.launch(&runtime, &launch), 0);
  const std::string error = take_error().render();
  EXPECT_THAT(error, HasSubstr("kernel 'scale': this runtime doesn't have the device"));
  EXPECT_THAT(error, HasSubstr("cuda:1"));
}

TEST(KernelError, EachCodeHasAMessageWithItsValues) {
  constexpr KernelError kCodes[] = {
#define TENON_KERNEL_ERROR(number, identifier, ...) KernelError::identifier,
#include "vm/executable/kernel_errors.def"
  };
  for (const KernelError code : kCodes) {
    const std::string text = kernel_error("k", code, 1, 2, 3, 4).render();
    EXPECT_THAT(text, HasSubstr("kernel 'k': "));
    EXPECT_THAT(text, testing::Not(HasSubstr("%"))) << text;
    EXPECT_THAT(text, testing::Not(HasSubstr("stopped with code"))) << text;
  }
  EXPECT_THAT(kernel_error("k", static_cast<KernelError>(999), 0, 0, 0, 0).render(),
              HasSubstr("stopped with code 999"));
  EXPECT_THAT(kernel_error("k", KernelError::NotATensor, 1, -1, TypeIndex::Int, 0).render(),
              HasSubstr("argument 1 is not a tensor"));
}

}  // namespace
}  // namespace tenon::vm
