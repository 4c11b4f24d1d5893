#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <thread>

#include "device/device.h"
#include "object/device_name.h"
#include "object/module.h"
#include "object/tensor.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using testing::HasSubstr;

constexpr char kAllocates[] = R"(
const = tensor[4; f32] hex "0000803f0000803f0000803f0000803f"
func @make(n: i64) -> any {
  %0 = new_tensor cpu:0, f32, %0
  ret %0!
}
func @churn(rounds: i64, n: i64) {
again:
  %2 = new_tensor cpu:0, u8, %1
  %3 = new_tensor cpu:0, u8, %1
  kill %2, %3
  %0 = sub %0, 1
  %2 = gt %0, 0
  if %2, done
  goto again
done:
  ret _
}
func @keep_all(n: i64, size: i64) -> any {
  %2 = alloc_adt 0
again:
  %3 = new_tensor cpu:0, u8, %1
  %2 = alloc_adt 1, %3!, %2!
  %0 = sub %0, 1
  if %0, done
  goto again
done:
  ret %2!
}
func @cells() {
again:
  %0 = alloc_adt 1, %0!, _
  goto again
}
func @tuples() {
again:
  %0 = alloc_tuple %0!
  goto again
}
func @captures() {
again:
  %0 = alloc_closure @weight3, %0!, _, _
  goto again
}
func @shapes() {
again:
  %1 = make_shape 1, 2, 3
  %0 = alloc_tuple %0!, %1!
  goto again
}
func @views(x: any) {
  %1 = alloc_tuple
again:
  %2 = reshape_tensor %0, 4
  %1 = alloc_tuple %1!, %2!
  goto again
}
func @storages() {
again:
  %1 = alloc_storage 1, 64, cpu:0
  %0 = alloc_tuple %0!, %1!
  goto again
}
func @wide(n: i64) -> i64 {
again:
  %1 = make_shape 1, 2
  %2 = alloc_adt 1, %1, %1
  %2 = alloc_tuple %2!, %1!
  %2 = alloc_closure @weight1, %2!
  %0 = sub %0, 1
  if %0, done
  goto again
done:
  ret 1
}
local func @weight1(a: any) -> any {
  ret #0
}
local func @weight3(a: any, b: any, c: any) -> any {
  ret #0
}
func @weight() -> any {
  ret #0
}
)";

TEST(Pool, ClassesRoundUpByAtMostAQuarter) {
  Pool* pool = new Pool(kCpu);
  pool->set_owner(Pool::this_thread());
  for (size_t bytes : {0, 1, 64, 65, 100, 1000, 4096, 5000, 100000, 1 << 20}) {
    auto block = Ref<StorageObj>::adopt(pool->allocate(bytes, 64));
    size_t capacity = static_cast<PoolBlock*>(block.get())->capacity;
    EXPECT_GE(capacity, bytes);
    EXPECT_LE(capacity, std::max<size_t>(64, bytes + bytes / 4 + 16));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data) % 64, 0u);
  }
  auto aligned = Ref<StorageObj>::adopt(pool->allocate(100, 4096));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned->data) % 4096, 0u);
  aligned = {};
  pool->close();
}

// Headers and the gaps that alignment leaves count as well.
TEST(Pool, CountsWhatItsBlocksTake) {
  for (const size_t alignment : {1, 64, 128, 256, 1024, 4096}) {
    for (const size_t bytes : {0, 1, 64, 5000}) {
      Pool* pool = new Pool(kCpu);
      pool->set_owner(Pool::this_thread());
      std::vector<Ref<StorageObj>> blocks(1000);
      const size_t before = mallinfo2().arena + mallinfo2().hblkhd;
      for (auto& block : blocks) {
        block = Ref<StorageObj>::adopt(pool->allocate(bytes, alignment));
      }
      const size_t taken = mallinfo2().arena + mallinfo2().hblkhd - before;
      EXPECT_LE(taken, pool->used() * 3 / 2 + (size_t{1} << 18)) << bytes << " at " << alignment;
      blocks.clear();
      pool->close();
      malloc_trim(0);
    }
  }
}

TEST(Pool, HighlyAlignedBlocksStopAtTheLimit) {
  Pool* pool = new Pool(kCpu);
  pool->set_owner(Pool::this_thread());
  pool->begin_call(16 << 10);
  auto one = Ref<StorageObj>::adopt(pool->allocate(0, 4096));
  EXPECT_THAT(failure_of([&] { pool->allocate(0, 4096); }), HasSubstr("memory limit"));
  one = nullptr;
  pool->close();
}

TEST(Pool, ReusesWhatWasFreed) {
  Machine m(program_of(assemble(kAllocates)));
  m.call("churn", 10, 1000);
  const PoolStats before = m.memory();
  m.call("churn", 10000, 1000);
  EXPECT_EQ(m.memory().pooled, before.pooled);
  EXPECT_LE(m.memory().call_peak, 4096u);
}

TEST(Pool, AStreamOfSizesLeavesMemoryFlat) {
  Machine m(program_of(assemble(kAllocates)));
  uint64_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    m.call("churn", 2, static_cast<int64_t>((random >> 33) % (4 << 20)));
  }
  // The policy's maximum of free memory: 16 MiB or a call's peak.
  EXPECT_LE(m.memory().pooled, size_t{24} << 20);
}

TEST(Pool, OutlivesItsMachineAndTakesBlocksBackFromOtherThreads) {
  Any kept;
  {
    Machine m(program_of(assemble(kAllocates)));
    kept = m.call("make", 1000);
    std::thread([&] {
      for (int i = 0; i < 100; ++i) m.call("make", 500);
    }).join();
    Any other = m.call("make", 2000);
    std::thread([taken = std::move(other)]() mutable { taken = Any(); }).join();
    m.call("make", 2000);
  }
  kept.as<Tensor>().data_as<float>()[999] = 1;
  std::thread([&] { kept = Any(); }).join();
}

TEST(Pool, MemoryLimitStopsACallAndResultsStopCounting) {
  Limits limits;
  limits.memory = 1 << 20;
  Machine m(program_of(assemble(kAllocates)), limits);
  EXPECT_THAT(failure_of([&] { m.call("keep_all", 100, 100000); }), HasSubstr("memory limit"));
  std::vector<Any> results;
  for (int i = 0; i < 20; ++i) results.push_back(m.call("make", 50000));  // 200 KB each
  EXPECT_THAT(failure_of([&] { m.call("make", 500000); }), HasSubstr("memory limit"));
}

TEST(Memory, IsOnTheCpuAlone) {
  Machine m(program_of(assemble(kAllocates)));
  EXPECT_EQ(m.allocate_tensor(std::vector<int64_t>{2}, f32, kCpu).device().device_type, kDLCPU);
  for (DLDevice device : {DLDevice{kDLCUDA, 0}, DLDevice{kDLCPU, 1}}) {
    const std::string error = failure_of([&] { m.allocate_storage(64, 64, device); });
    EXPECT_THAT(error, HasSubstr("this machine can't allocate on the device"));
    EXPECT_THAT(error, HasSubstr(tenon::to_text(device)));
    EXPECT_EQ(failure_of([&] { m.allocate_tensor(std::vector<int64_t>{2}, f32, device); }), error);
  }
}

TEST(Machine, PoisonsStorageThatIsFreed) {
  // The address of the tensor that a host function sees.
  const char* seen = nullptr;
  Function look = Function::from_typed([&](const Tensor& x) { seen = x.data_as<char>(); });
  Function byte = Function::from_typed([&] { return static_cast<int64_t>(seen[0] & 0xff); });
  ProgramOptions options;
  options.modules = {Module("test", "host", [=](std::string_view name) {
    return name == "host.look" ? look : name == "host.byte" ? byte : Function();
  })};
  Unit unit = assemble(R"(
    packed $host.look
    packed $host.byte
    func @freed() -> i64 {
      %0 = make_tensor u8, 1, 7
      _ = call_packed $host.look, %0
      kill %0
      %0 = call_packed $host.byte
      ret %0
    }
  )");
  for (bool poison : {false, true}) {
    Machine m(program_of(unit, options), {}, {.poison = poison});
    EXPECT_EQ(m.call("freed").as<int64_t>(), poison ? 0xff : 7);
  }
}

TEST(Machine, MemoryLimitCountsEveryKindOfObject) {
  Limits limits;
  limits.memory = 4 << 20;
  Machine m(program_of(assemble(kAllocates)), limits);
  for (const char* function : {"cells", "tuples", "captures", "shapes", "storages"}) {
    EXPECT_THAT(failure_of([&] { m.call(function); }), HasSubstr("memory limit")) << function;
    EXPECT_EQ(m.call("wide", 100'000).as<int64_t>(), 1);  // freed objects stop counting
  }
  int64_t four = 4;
  Tensor x = Tensor::empty(std::span(&four, 1), f32);
  EXPECT_THAT(failure_of([&] { m.call("views", x); }), HasSubstr("memory limit"));
  Any list = m.call("keep_all", 1000, 64);
  EXPECT_EQ(m.call("wide", 1000).as<int64_t>(), 1);
  list = Any();
}

TEST(Machine, PackedFunctionsAllocateUnderTheMemoryLimit) {
  Function big =
      Function::from_typed([](int64_t n) { return allocate_tensor(std::span(&n, 1), u8); });
  ProgramOptions options;
  options.modules = {Module("test", "host", [=](std::string_view name) {
    return name == "host.big" ? big : Function();
  })};
  Limits limits;
  limits.memory = 1 << 20;
  Machine m(program_of(assemble("packed $host.big\nfunc @f(n: i64) -> any {\n"
                                "  %0 = call_packed $host.big, %0\n  ret %0!\n}"),
                       options),
            limits);
  EXPECT_EQ(m.call("f", 1000).as<Tensor>().count(), 1000);
  EXPECT_THAT(failure_of([&] { m.call("f", 2 << 20); }), HasSubstr("memory limit"));
}

TEST(Machine, ReleasesEverythingAfterAnError) {
  Limits limits;
  limits.fuel = 50;
  Machine m(program_of(assemble(kAllocates)), limits);
  EXPECT_THROW(m.call("keep_all", 1000, 64), Error);
  m.set_limits({});
  m.call("churn", 1, 64);
  EXPECT_LE(m.memory().call_peak, 2 * (64 + sizeof(PoolBlock)));
}

TEST(Machine, CountsTheBytesThatCodeAsksFor) {
  Machine m(program_of(assemble(R"(
func @f() -> any {
  %0 = alloc_storage 100, 64, cpu:0
  %1 = alloc_storage 10, 64, cpu:0
  kill %0
  %0 = alloc_storage 105, 64, cpu:0
  kill %0
  ret %1
})")));
  for (int i = 0; i < 2; ++i) {  // from the system, then from the pool
    const Any held = m.call("f");
    EXPECT_EQ(m.memory().call_bytes, 115u);
  }
}

TEST(Machine, ADeepResultIsDestroyedWithoutRecursion) {
  Machine m(program_of(assemble(kAllocates)));
  Any list = m.call("keep_all", 300000, 1);
  list = Any();
}

TEST(Machine, ConstantsAreReadOnly) {
  Machine m(program_of(assemble(kAllocates)));
  EXPECT_TRUE(m.call("weight").as<Tensor>().read_only());
  EXPECT_EQ(m.call("weight").as<Tensor>().data_as<float>()[3], 1);
}

TEST(Machine, ArgumentsAreReadOnlyToTheProgram) {
  Machine m(program_of(assemble("func @same(x: any) -> any {\n ret %0!\n}")));
  Machine other(program_of(assemble(kAllocates)));
  int64_t shape[1] = {2};
  EXPECT_TRUE(m.call("same", Tensor::empty(shape, f32)).as<Tensor>().read_only());
  EXPECT_TRUE(m.call("same", other.call("make", 2)).as<Tensor>().read_only());
  Any earlier = other.call("make", 2);
  EXPECT_FALSE(earlier.as<Tensor>().read_only());
}

TEST(Machine, LargeStridedInputsAreMadeCompactInParts) {
  Machine m(program_of(assemble("func @same(x: any) -> any {\n ret %0!\n}")));
  const int64_t rows = 3000, columns = 3001;  // 36 MB of i32, transposed: several parts
  std::vector<int32_t> data(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int32_t>(i);
  int64_t shape[3] = {1, columns, rows}, strides[3] = {7, 1, columns};
  DLManagedTensor managed{};
  managed.dl_tensor = {data.data(), kCpu, 3, i32, shape, strides, 0};
  Tensor t = m.call("same", Tensor::from_dlpack(&managed)).as<Tensor>();
  ASSERT_TRUE(t.compact());
  for (int64_t i = 0; i < columns; ++i) {
    for (int64_t j = 0; j < rows; ++j) {
      ASSERT_EQ(t.data_as<int32_t>()[i * rows + j], j * columns + i);
    }
  }
}

TEST(Machine, StridedAndUnalignedInputsAreMadeCompact) {
  Machine m(program_of(assemble("func @same(x: any) -> any {\n ret %0!\n}")));
  float data[7] = {0, 1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {3, 2}, strides[2] = {1, 3};  // a transposed 2x3
  DLManagedTensor managed{};
  managed.dl_tensor = {data + 1, kCpu, 2, f32, shape, strides, 0};
  Tensor t = m.call("same", Tensor::from_dlpack(&managed)).as<Tensor>();
  ASSERT_TRUE(t.compact());
  EXPECT_THAT(std::vector<float>(t.data_as<float>(), t.data_as<float>() + 6),
              testing::ElementsAre(1, 4, 2, 5, 3, 6));

  char bytes[17] = {};
  int64_t four = 4;
  DLManagedTensor odd{};
  odd.dl_tensor = {bytes + 1, kCpu, 1, f32, &four, nullptr, 0};
  Tensor u = m.call("same", Tensor::from_dlpack(&odd)).as<Tensor>();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(u.data()) % 4, 0u);
}

}  // namespace
}  // namespace tenon::vm
