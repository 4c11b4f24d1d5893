#include "device/device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "object/function.h"
#include "support/error_testing.h"

namespace tenon {
namespace {

TEST(Device, HasNamesBothWays) {
  EXPECT_EQ(to_text(kCpu), "cpu:0");
  EXPECT_EQ(to_text(DLDevice{kDLCUDA, 1}), "cuda:1");
  EXPECT_EQ(parse_device("cuda:1")->device_type, kDLCUDA);
  EXPECT_EQ(parse_device("cpu")->device_id, 0);
  // A kind without a name here has its number.
  EXPECT_EQ(to_text(DLDevice{static_cast<DLDeviceType>(99), 3}), "device99:3");
  EXPECT_EQ(parse_device("device99:3")->device_type, 99);
  for (auto bad : {"", "cpu:", "cpu:x", "cpu:-1", "gpu", "cpu:1 "}) {
    EXPECT_FALSE(parse_device(bad)) << bad;
  }
}

TEST(Device, OnlyTheCpuIsThere) {
  EXPECT_TRUE(has_device(kCpu));
  EXPECT_FALSE(has_device({kDLCPU, 1}));
  EXPECT_EQ(failure_of([] {
              allocate_storage(4, {kDLOpenCL, 0});
            }),
            "error: there is no device opencl:0");
}

TEST(Device, MemoryIsAlignedAndWritable) {
  for (size_t bytes : {0, 1, 63, 64, 65, 100000}) {
    auto s = allocate_storage(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data) % 64, 0u);
    std::memset(s->data, 1, s->size);
    EXPECT_GE(s->size, bytes);
  }
}

TEST(Device, SaysHowMuchMemoryThereIsNot) {
  EXPECT_EQ(failure_of([] { allocate_storage(SIZE_MAX - 5); }),
            "error: no memory for 18446744073709551610 bytes on cpu:0");
  EXPECT_EQ(failure_of([] {
              allocate_tensor(Shape{INT64_MAX, 2}.dims(), f32);
            }),
            "error: a tensor's size is negative or overflows\n"
            "  found     tensor[9223372036854775807, 2; f32]");
  EXPECT_THROW(allocate_tensor(Shape{-1}.dims(), f32), Error);
}

TEST(Device, CopiesATensor) {
  Tensor a = allocate_tensor(Shape{2, 2}.dims(), f32), b = allocate_tensor(Shape{2, 2}.dims(), f32);
  for (int i = 0; i < 4; ++i) a.data_as<float>()[i] = static_cast<float>(i);
  copy_tensor(a, b);
  EXPECT_EQ(b.data_as<float>()[3], 3.0f);
  copy_tensor(allocate_tensor(Shape{0}.dims(), f32), allocate_tensor(Shape{0}.dims(), f32));
}

TEST(Device, RefusesACopyBetweenDifferentTypes) {
  Tensor a = allocate_tensor(Shape{2}.dims(), f32), b = allocate_tensor(Shape{3}.dims(), f32);
  EXPECT_EQ(failure_of([&] { copy_tensor(a, b); }),
            "error: a copy needs two compact tensors of one type\n"
            "  from      tensor[2; f32]\n"
            "  to        tensor[3; f32]");
  EXPECT_EQ(failure_of([&] { copy_tensor(a, a.as_read_only()); }),
            "error: the target of a copy is read-only");
}

// A device with host memory, to see that its table is used.
int copies = 0;
const DeviceTable kFake = {
    "fake",
    [] { return int32_t{2}; },
    [](int32_t, size_t bytes, size_t) { return bytes > 1000 ? nullptr : std::malloc(bytes); },
    [](int32_t, void* p, size_t) { std::free(p); },
    [](int32_t id, void* to, const void* from, size_t bytes) {
      if (id == 1) {
        set_error(ErrorKind::Runtime, "the bus is broken");
        return -1;
      }
      ++copies;
      std::memcpy(to, from, bytes);
      return 0;
    },
    [](int32_t) { return 0; }};

TEST(Device, AnotherKindUsesItsTable) {
  register_device(kDLVulkan, &kFake);
  register_device(kDLVulkan, &kFake);
  DLDevice vulkan{kDLVulkan, 0};
  Tensor a = allocate_tensor(Shape{2}.dims(), i32),
         b = allocate_tensor(Shape{2}.dims(), i32, vulkan);
  a.data_as<int32_t>()[1] = 7;
  copy_tensor(a, b);
  copy_tensor(b, a);
  EXPECT_EQ(copies, 2);
  EXPECT_EQ(a.data_as<int32_t>()[1], 7);
  EXPECT_EQ(failure_of([&] { allocate_storage(2000, vulkan); }),
            "error: no memory for 2000 bytes on vulkan:0");
  Tensor broken = allocate_tensor(Shape{2}.dims(), i32, {kDLVulkan, 1});
  EXPECT_EQ(failure_of([&] { copy_tensor(a, broken); }), "error: the bus is broken");
  EXPECT_EQ(failure_of([&] { copy_tensor(b, broken); }),
            "error: can't copy from vulkan:0 to vulkan:1 directly\n  help: copy through the host");
}

}  // namespace
}  // namespace tenon
