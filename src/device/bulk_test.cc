#include "support/bulk.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "device/call_context.h"
#include "device/device.h"

namespace tenon {
namespace {

// Stops at the poll of that number, counted from 1; 0 for none.
struct StopsAt final : CallContext {
  int polls = 0, stop = 0;

  explicit StopsAt(int at = 0) : stop(at) {}
  void poll() override {
    if (++polls == stop) throw Error(ErrorKind::Runtime, "stopped");
  }
  Ref<StorageObj> allocate(size_t, size_t) override { return {}; }
  bool may_write(const Tensor&) const override { return true; }
  bool count_memory(size_t) override { return true; }
  void discount_memory(size_t) override {}
  void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
};

TEST(Bulk, CopiesAndFillsAllOfIt) {
  for (size_t bytes : {size_t{0}, size_t{1}, kPartBytes, 2 * kPartBytes + 3}) {
    std::vector<unsigned char> from(bytes + 1, 7), to(bytes + 1, 0);
    std::iota(from.begin(), from.end(), 0);
    StopsAt call;
    CallContext::Scope scope(&call);
    copy_memory(to.data(), from.data(), bytes);
    EXPECT_TRUE(std::equal(to.begin(), to.end() - 1, from.begin()));
    EXPECT_EQ(to.back(), 0);
    EXPECT_EQ(call.polls, bytes > kPartBytes ? 2 : 0);
    fill_memory(to.data(), 0x11, bytes);
    EXPECT_EQ(std::count(to.begin(), to.end(), 0x11), static_cast<ptrdiff_t>(bytes));
  }
}

TEST(Bulk, StopsBetweenParts) {
  std::vector<char> from(3 * kPartBytes, 7), to(3 * kPartBytes, 0);
  StopsAt call(1);
  CallContext::Scope scope(&call);
  EXPECT_THROW(copy_memory(to.data(), from.data(), from.size()), Error);
  EXPECT_EQ(to[kPartBytes - 1], 7);
  EXPECT_EQ(to[kPartBytes], 0);
  call.polls = 0;
  EXPECT_THROW(fill_memory(to.data(), 5, to.size()), Error);
  EXPECT_EQ(to[kPartBytes], 0);
}

TEST(Bulk, SoDoesACopyBetweenTensors) {
  const auto size = static_cast<int64_t>(3 * kPartBytes);
  Tensor from = Tensor::empty({size}, u8), to = Tensor::empty({size}, u8);
  std::fill_n(from.data_as<char>(), size, 3);
  StopsAt call(2);
  CallContext::Scope scope(&call);
  EXPECT_THROW(copy_tensor(from, to), Error);
  call.stop = 0;
  copy_tensor(from, to);
  EXPECT_EQ(to.data_as<char>()[size - 1], 3);
}

}  // namespace
}  // namespace tenon
