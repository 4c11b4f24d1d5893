#include "object/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "object/function.h"
#include "object/packed_elements.h"
#include "object/reflect.h"
#include "support/error_testing.h"
#include "support/poll.h"

namespace tenon {
namespace {

Tensor iota(std::initializer_list<int64_t> shape) {
  Tensor t = Tensor::empty(shape, i32);
  std::iota(t.data_as<int32_t>(), t.data_as<int32_t>() + t.count(), 0);
  return t;
}

TEST(Tensor, IsACompactDlpackTensor) {
  Tensor t = Tensor::empty({2, 3, 4}, f32);
  EXPECT_EQ(to_text(t), "tensor[2, 3, 4; f32]");
  EXPECT_EQ(t.count(), 24);
  EXPECT_EQ(t.bytes(), 96);
  EXPECT_TRUE(t.compact());
  EXPECT_FALSE(t.read_only());
  EXPECT_EQ(t.strides()[0], 12);
  EXPECT_EQ(t.strides()[2], 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
}

TEST(Tensor, TheLayoutWordSaysWhatAKernelChecks) {
  uint64_t w = Tensor::empty({2, 3}, f32).layout();
  EXPECT_EQ(w & LayoutWord::kTypeMask, LayoutWord::of(f32, 2, kDLCPU));
  EXPECT_NE(w & LayoutWord::of(f32, 3, kDLCPU), LayoutWord::of(f32, 3, kDLCPU));
  EXPECT_TRUE(w & LayoutWord::kCompact);
  EXPECT_TRUE(w & LayoutWord::kAligned);
  EXPECT_FALSE(w & LayoutWord::kReadOnly);
}

TEST(Tensor, RankZeroAndZeroSizesExist) {
  EXPECT_EQ(Tensor::empty({}, i64).count(), 1);
  Tensor none = Tensor::empty({INT64_MAX, 0}, f64);
  EXPECT_EQ(none.count(), 0);
  EXPECT_TRUE(none.compact());
}

TEST(Tensor, RefusesSizesThatCannotBe) {
  EXPECT_EQ(failure_of([] {
              Tensor::empty({INT64_MAX, 2}, f32);
            }),
            "error: tensor[9223372036854775807, 2; f32] can't exist\n"
            "  expected  at most 32 dimensions, none negative, and a size below 2^63");
  EXPECT_THROW(Tensor::empty({-1}, f32), Error);
  std::vector<int64_t> many(33, 1);
  EXPECT_THROW(Tensor::empty(many, f32), Error);
  EXPECT_THROW(Tensor::empty({int64_t{1} << 60}, f32), Error);  // no such memory
}

TEST(Tensor, OverStorageChecksItsSize) {
  Tensor owner = Tensor::empty({16}, u8);
  auto storage = Ref<Object>(owner->owner).cast<StorageObj>();
  EXPECT_EQ(Tensor::over(storage, 8, f32, Shape{2}.dims()).data(), owner.data_as<char>() + 8);
  EXPECT_EQ(failure_of([&] { Tensor::over(storage, 8, f32, Shape{3}.dims()); }),
            "error: a tensor doesn't fit its storage\n"
            "  expected  12 bytes at 8   tensor[3; f32]\n"
            "  found     16 bytes");
  EXPECT_THROW(Tensor::over(storage, UINT64_MAX, f32, Shape{0}.dims()), Error);
}

TEST(Tensor, StorageIsFreedWithItsLastTensor) {
  static int freed = 0;
  static char memory[64];
  auto s = make<StorageObj>();
  s->data = memory;
  s->size = sizeof memory;
  s->flags = StorageObj::kIsPooled;
  s->free = [](StorageObj*) { ++freed; };
  Tensor a = Tensor::over(s, 0, f32, Shape{4}.dims());
  EXPECT_TRUE(a.layout() & LayoutWord::kPooled);
  s = {};
  Tensor b = a.reshaped(Shape{2, 2}.dims());
  a = Tensor();
  EXPECT_EQ(freed, 0);
  b = Tensor();
  EXPECT_EQ(freed, 1);
}

TEST(Tensor, AViewKeepsItsOwnerAndIsReadOnly) {
  static const float data[4] = {1, 2, 3, 4};
  auto owner = ShapeObj::of({});
  Tensor t = Tensor::view(data, Shape{2, 2}.dims(), f32, owner);
  EXPECT_EQ(owner->strong_count(), 2u);
  EXPECT_EQ(t.data(), data);
  EXPECT_TRUE(t.read_only());
  t = Tensor();
  EXPECT_EQ(owner->strong_count(), 1u);
}

TEST(Tensor, ReshapesWithoutCopying) {
  Tensor t = iota({2, 6}), r = t.reshaped(Shape{3, 4}.dims());
  EXPECT_EQ(r.data(), t.data());
  EXPECT_EQ(r.strides()[0], 4);
  EXPECT_EQ(failure_of([&] { t.reshaped(Shape{5}.dims()); }),
            "error: a tensor can't be reshaped to [5]\n"
            "  found     tensor[2, 6; i32]\n"
            "  expected  a compact tensor of as many elements");
}

TEST(Tensor, AsReadOnlyLeavesTheOriginalWritable) {
  Tensor t = iota({2});
  EXPECT_TRUE(t.as_read_only().read_only());
  EXPECT_FALSE(t.read_only());
}

// A DLPack tensor such as another library makes: transposed, counting its deletions.
struct Foreign {
  int32_t data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {3, 2};
  int64_t strides[2] = {1, 3};
  int deleted = 0;
  DLManagedTensorVersioned versioned{};
  DLManagedTensor plain{};

  Foreign() {
    DLTensor t{data, kCpu, 2, i32, shape, strides, 0};
    versioned.version = {1, 0};
    versioned.manager_ctx = this;
    versioned.deleter = [](DLManagedTensorVersioned* m) {
      ++static_cast<Foreign*>(m->manager_ctx)->deleted;
    };
    versioned.dl_tensor = t;
    plain.manager_ctx = this;
    plain.deleter = [](DLManagedTensor* m) { ++static_cast<Foreign*>(m->manager_ctx)->deleted; };
    plain.dl_tensor = t;
  }
};

TEST(Dlpack, ComesInWithoutACopyAndIsDeletedOnce) {
  Foreign f;
  {
    Tensor t = Tensor::from_dlpack(&f.versioned);
    EXPECT_EQ(t.data(), f.data);
    EXPECT_FALSE(t.compact());
    Tensor copy = t;
    EXPECT_EQ(f.deleted, 0);
  }
  EXPECT_EQ(f.deleted, 1);
  {
    Tensor t = Tensor::from_dlpack(&f.plain, true);
    EXPECT_TRUE(t.read_only());
  }
  EXPECT_EQ(f.deleted, 2);
}

TEST(Dlpack, AStridedTensorIsMadeCompact) {
  Foreign f;
  Tensor t = Tensor::from_dlpack(&f.versioned).compacted();
  EXPECT_TRUE(t.compact());
  const int32_t* d = t.data_as<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(d, d + 6), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
}

struct CountPolls : Poller {
  int polls = 0;
  void poll() override { ++polls; }
};

TEST(Tensor, CopyingElementsPolls) {
  const int64_t n = int64_t{16} << 20;
  const Tensor to = Tensor::empty({n}, u8);
  uint8_t seven = 7;
  for (const int64_t inner : {n, n / 2, int64_t{1}}) {
    int64_t shape[2] = {n / inner, inner}, strides[2] = {0, 0};
    DLManagedTensor managed{};
    managed.dl_tensor = {&seven, kCpu, 2, u8, shape, strides, 0};
    CountPolls count;
    Poller::Scope scope(&count);
    Tensor::from_dlpack(&managed).copy_elements(to.data());
    EXPECT_GE(count.polls, 8) << inner;
    EXPECT_EQ(std::count(to.data_as<uint8_t>(), to.data_as<uint8_t>() + n, 7), n);
    std::fill_n(to.data_as<uint8_t>(), n, uint8_t{0});
  }
  CountPolls count;
  Poller::Scope scope(&count);
  const Tensor from = Tensor::empty({n}, u8);
  std::fill_n(from.data_as<uint8_t>(), n, uint8_t{5});
  from.copy_elements(to.data());
  EXPECT_GE(count.polls, 8);
  EXPECT_EQ(std::count(to.data_as<uint8_t>(), to.data_as<uint8_t>() + n, 5), n);
}

TEST(Dlpack, NegativeAndZeroStridesAreMadeCompact) {
  Foreign f;
  f.versioned.dl_tensor.data = f.data + 5;
  f.strides[0] = -2;
  f.strides[1] = 0;
  Tensor t = Tensor::from_dlpack(&f.versioned).compacted();
  const int32_t* d = t.data_as<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(d, d + 6), (std::vector<int32_t>{5, 5, 3, 3, 1, 1}));
}

TEST(Dlpack, MissingStridesMeanCompact) {
  Foreign f;
  f.versioned.dl_tensor.strides = nullptr;
  EXPECT_TRUE(Tensor::from_dlpack(&f.versioned).compact());
}

TEST(Dlpack, TheReadOnlyFlagIsKept) {
  Foreign f;
  f.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  EXPECT_TRUE(Tensor::from_dlpack(&f.versioned).read_only());
}

TEST(Dlpack, WhatCannotBeTakenIsDeletedAndSaid) {
  struct Case {
    void (*spoil)(Foreign&);
    const char* message;
  };
  const Case cases[] = {
      {[](Foreign& f) { f.versioned.dl_tensor.ndim = 33; }, "found     33 dimensions"},
      {[](Foreign& f) { f.versioned.dl_tensor.ndim = -1; }, "found     -1 dimensions"},
      {[](Foreign& f) { f.versioned.dl_tensor.shape = nullptr; }, "found     no shape"},
      {[](Foreign& f) { f.shape[0] = -3; }, "found     the shape [-3, 2]"},
      {[](Foreign& f) { f.shape[0] = INT64_MAX; }, "found     the shape [9223372036854775807, 2]"},
      {[](Foreign& f) { f.strides[0] = INT64_MAX; }, "found     strides [9223372036854775807, 3]"},
      {[](Foreign& f) { f.strides[0] = INT64_MIN; }, "found     strides [-9223372036854775808, 3]"},
      {[](Foreign& f) { f.versioned.dl_tensor.data = nullptr; }, "found     no data"},
      {[](Foreign& f) { f.versioned.dl_tensor.dtype.bits = 3; }, "elements of type i3"},
      {[](Foreign& f) { f.versioned.dl_tensor.dtype.lanes = 2; }, "elements of type i32x2"},
      {[](Foreign& f) { f.versioned.version.major = 2; }, "unsupported version"},
  };
  for (const Case& c : cases) {
    Foreign f;
    c.spoil(f);
    std::string text = failure_of([&] { Tensor::from_dlpack(&f.versioned); });
    EXPECT_NE(text.find(c.message), std::string::npos) << text;
    EXPECT_EQ(f.deleted, 1) << c.message;
  }
}

TEST(Dlpack, PackedElementsGetAByteEach) {
  Foreign f;
  uint8_t data[3] = {0x1f, 0x80, 0x97};
  f.versioned.dl_tensor.dtype = DataType(i4);
  f.versioned.dl_tensor.data = data;
  f.versioned.dl_tensor.strides = nullptr;
  Tensor t = Tensor::from_dlpack(&f.versioned);
  EXPECT_EQ(f.deleted, 1);
  const auto* d = t.data_as<int8_t>();
  EXPECT_EQ(std::vector<int8_t>(d, d + 6), (std::vector<int8_t>{-1, 1, 0, -8, 7, -7}));

  DLManagedTensorVersioned* out = t.to_dlpack_versioned();
  EXPECT_EQ(out->flags, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
  EXPECT_EQ(Tensor::from_dlpack(out).data(), t.data());
  EXPECT_NE(failure_of([&] { t.to_dlpack(true); }).find("a byte per element of i4"),
            std::string::npos);
}

TEST(Dlpack, PackedElementsWithStridesAreRefused) {
  Foreign f;
  f.versioned.dl_tensor.dtype = DataType(u2);
  EXPECT_NE(
      failure_of([&] { Tensor::from_dlpack(&f.versioned); }).find("packed elements with strides"),
      std::string::npos);
  EXPECT_EQ(f.deleted, 1);
}

TEST(PackedElements, ComeBack) {
  for (DataType t : {i2, u2, i4, u4, f4e2m1fn}) {
    for (int64_t n : {0, 1, 3, 4, 9}) {
      const Tensor whole = Tensor::empty({n}, t);
      for (int64_t i = 0; i < n; ++i) {
        const DataType number(t == i2 || t == i4 ? kDLInt : kDLUInt, t.bits);
        whole.data_as<int8_t>()[i] = static_cast<int8_t>(wrap_to(number, 5 * i + 3));
      }
      const std::string packed = pack_elements(whole);
      EXPECT_EQ(static_cast<int64_t>(packed.size()), packed_bytes(t, n));
      const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(packed.data()),
                                           packed.size());
      const Tensor back = unpack_elements(bytes, whole.shape(), t);
      EXPECT_EQ(std::memcmp(back.data(), whole.data(), static_cast<size_t>(n)), 0) << to_text(t);
    }
  }
}

TEST(Dlpack, GoesOutSharingTheData) {
  Tensor t = iota({2, 3});
  DLManagedTensorVersioned* m = t.to_dlpack_versioned();
  EXPECT_EQ(t->strong_count(), 2u);
  EXPECT_EQ(m->dl_tensor.data, t.data());
  EXPECT_EQ(m->flags, 0u);
  EXPECT_EQ(m->version.major, 1u);
  m->deleter(m);
  EXPECT_EQ(t->strong_count(), 1u);
  DLManagedTensor* u = t.to_dlpack();
  t = Tensor();
  EXPECT_EQ(static_cast<int32_t*>(u->dl_tensor.data)[5], 5);  // it keeps the data
  u->deleter(u);
}

TEST(Dlpack, AReadOnlyTensorGoesOutOnlyInTheFormThatSaysSo) {
  Tensor t = iota({2}).as_read_only();
  EXPECT_EQ(failure_of([&] { t.to_dlpack(); }),
            "error: unversioned DLPack can't express that a tensor is read-only\n"
            "  help: request a versioned DLPack tensor");
  DLManagedTensorVersioned* m = t.to_dlpack_versioned();
  EXPECT_EQ(m->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  m->deleter(m);
  DLManagedTensor* u = t.to_dlpack(true);
  u->deleter(u);
}

TEST(Dlpack, ARoundTripComesBackToTheSameData) {
  Tensor t = iota({2, 3}), back = Tensor::from_dlpack(t.to_dlpack_versioned());
  EXPECT_EQ(back.data(), t.data());
  EXPECT_TRUE(structural_equal(t, back));
}

// As tvm-ffi's own tensor object: only the published cell, and a deleter that isn't ours.
struct ForeignTensorObj {
  Object header;
  DLTensor dl;
};

TEST(Admit, RewrapsAForeignTensorAroundTheSameData) {
  static int deleted = 0;
  Foreign f;
  ForeignTensorObj object{{}, f.plain.dl_tensor};
  object.header.counts = Object::kCountsOfNew;
  object.header.type_index = TypeIndex::Tensor;
  object.header.deleter = [](void*, int flags) { deleted += flags == Object::kBoth; };
  {
    Any a = admit(AnyView::of_object(&object.header));
    Tensor t = a.as<Tensor>();
    EXPECT_TRUE(t->is_ours());
    EXPECT_EQ(t.data(), f.data);
    release(&object.header);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(Admit, TakesOurValuesAsTheyAre) {
  Tensor t = iota({1});
  EXPECT_EQ(admit(t).as<Tensor>().object(), t.object());
  EXPECT_EQ(admit(AnyView("a raw string")).as<String>(), "a raw string");
  EXPECT_EQ(admit(3).as<int64_t>(), 3);
}

TEST(Admit, MakesBooleansOneOrZero) {
  for (const int64_t payload : {0, 1, 2, -1}) {
    AnyView given(true);
    given.v.i = payload;
    EXPECT_EQ(admit(given).v.i, payload != 0) << payload;
  }
}

TEST(Admit, GivesNoneNoPayload) {
  AnyView given;
  given.v.i = 0x1234;
  EXPECT_EQ(admit(given).v.i, 0);
}

TEST(Admit, RefusesWhatWeDoNotKnow) {
  DLTensor dl{};
  AnyView bare;
  bare.type_index = TypeIndex::DLTensorPtr;
  bare.v.p = &dl;
  EXPECT_EQ(failure_of([&] { admit(bare); }),
            "error: a value of a type that Tenon doesn't accept\n"
            "  found     a bare DLTensor*\n"
            "  help: pass a managed DLPack tensor, which can be owned");
  Object foreign;
  foreign.counts = Object::kCountsOfNew;
  for (int32_t index : {71, 72, 73, 74, 128, 5000, 10, 13, -1}) {
    AnyView v;
    v.type_index = index;
    v.v.object = &foreign;
    EXPECT_THROW(admit(v), Error) << index;
  }
  AnyView long_small;
  long_small.type_index = TypeIndex::SmallStr;
  long_small.small_length = 9;
  EXPECT_THROW(admit(long_small), Error);
}

}  // namespace
}  // namespace tenon
