// What calls of static functions take from the pool and from the system, counted: code of known
// sizes without recursion.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "device/device.h"
#include "driver/compile.h"
#include "graph/ir/text.h"
#include "vm/interp/machine.h"

// GCC looks into these where they are inlined.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {
thread_local size_t requests = 0;  // of this thread, to the system's allocator

void* try_request(size_t bytes, size_t alignment) noexcept {
  ++requests;
  void* memory = nullptr;
  const size_t least = std::max(alignment, sizeof(void*));
  return posix_memalign(&memory, least, bytes) == 0 ? memory : nullptr;
}
void* request(size_t bytes, size_t alignment) {
  void* const memory = try_request(bytes, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(size_t bytes) {
  return request(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return request(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++requests;
  return std::malloc(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return try_request(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace tenon::driver {
namespace {

struct Taken {
  size_t blocks = 0, from_system = 0, requests = 0;
};

// The blocks that a call of main takes once others have been before it.
Taken in_steady_state(const std::string& text, bool with_output) {
  initialise();
  CompileOptions options;
  options.libraries = "none";
  vm::Machine machine(
      vm::Program::from_unit(compile(graph::parse_module(text, "test.tn"), options)));
  const int64_t shape[] = {64};
  const Tensor x = allocate_tensor(shape, f32, kCpu), y = allocate_tensor(shape, f32, kCpu);
  std::fill_n(x.data_as<float>(), 64, 1.0f);
  const Any argument(x), output(y);
  const AnyView arguments[] = {argument}, outputs[] = {output};
  const auto call = [&] {
    with_output ? machine.call_into("main", arguments, outputs) : machine.call("main", arguments);
  };
  for (int i = 0; i < 3; ++i) call();
  const vm::PoolStats before = machine.memory();
  requests = 0;
  call();
  const size_t made = requests;
  const vm::PoolStats after = machine.memory();
  return {after.allocations - before.allocations,
          after.system_allocations - before.system_allocations, made};
}

// A function has one storage for all that it computes, beside its result, which the caller may
// give.
void expect_one_storage(const std::string& text) {
  for (const bool with_output : {false, true}) {
    SCOPED_TRACE(with_output);
    const Taken taken = in_steady_state(text, with_output);
    EXPECT_LE(taken.blocks, with_output ? 1u : 2u);
    EXPECT_EQ(taken.from_system, 0u);
    if (!with_output) continue;
#ifndef __SANITIZE_ADDRESS__  // which sees the end of each object
    EXPECT_EQ(taken.requests, 0u);
#endif
  }
}

TEST(StaticFunction, HasOneStorage) {
  expect_one_storage(R"(
fn @main(%x: tensor[64; f32]) -> tensor[64; f32] {
  %a = cumsum(%x, axis=0)
  %b = cumsum(%a, axis=0)
  %c = add(%a, %b)
  %d = cumsum(%c, axis=0)
  cumsum(%d, axis=0)
})");
}

TEST(StaticFunction, HasOneStorageForTheArmsOfItsBranches) {
  expect_one_storage(R"(
fn @main(%x: tensor[64; f32]) -> tensor[64; f32] {
  %s = reduce_sum(%x, axes=[0])
  %big = greater(%s, tensor[f32]{1})
  %a = if %big {
    %b = cumsum(%x, axis=0)
    cumsum(%b, axis=0)
  } else {
    cumsum(%x, axis=0)
  }
  %c = cumsum(%a, axis=0)
  cumsum(%c, axis=0)
})");
}

// A turn of a loop takes a storage for the tensor that it hands to the next, and no other.
TEST(StaticFunction, HasAStorageForEachTurnOfALoop) {
  constexpr size_t kTurns = 10;
  const Taken taken = in_steady_state(R"(
fn @main(%x: tensor[64; f32]) -> tensor[64; f32] {
  %first = cumsum(%x, axis=0)
  %second = cumsum(%first, axis=0)
  %r = loop (%i: i64 = 0, %y: tensor[64; f32] = %x) while { less(%i, 10) } {
    %a = add(%second, %y)
    %b = cumsum(%a, axis=0)
    %c = cumsum(%b, axis=0)
    %d = sigmoid(%c)
    %e = cumsum(%d, axis=0)
    %j = add(%i, 1)
    (%j, %e)
  }
  %r.1
})",
                                      false);
  EXPECT_LE(taken.blocks, 1 + kTurns);
  EXPECT_EQ(taken.from_system, 0u);
}

}  // namespace
}  // namespace tenon::driver
