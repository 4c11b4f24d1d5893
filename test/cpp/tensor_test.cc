// Tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tenon/tenon.h"

namespace {

using namespace tenon;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
std::string text_of(F&& f) {
  try {
    f();
  } catch (const UsageError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(CppTensor, CopiesValues) {
  const std::array<float, 6> values{0, 1, 2, 3, 4, 5};
  const Tensor t = Tensor::copy(values, {2, 3});
  EXPECT_THAT(t.shape(), ElementsAre(2, 3));
  EXPECT_EQ(t.rank(), 2u);
  EXPECT_EQ(t.size(), 6u);
  EXPECT_EQ(t.byte_size(), 24u);
  EXPECT_THAT(t.view<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_NE(static_cast<const void*>(t.view<float>().data()), values.data());
  EXPECT_EQ(t.at<float>({1, 2}), 5);
  EXPECT_EQ(Tensor::copy({int64_t{7}}, {}).rank(), 0u);
  EXPECT_THAT(Tensor::copy({true, false}, {2}).to_vector<bool>(), ElementsAre(true, false));
}

TEST(CppTensor, FillsMemoryOfItsOwn) {
  EXPECT_THAT(Tensor::zeros({2, 2}, dtype_of<int32_t>).to_vector<int32_t>(), Each(0));
  EXPECT_THAT(Tensor::full({3}, 1.5).to_vector<double>(), ElementsAre(1.5, 1.5, 1.5));
  EXPECT_EQ(Tensor::empty({0, 4}, dtype_of<float>).size(), 0u);
}

TEST(CppTensor, HoldsComplexNumbers) {
  using Complex = std::complex<float>;
  const Tensor t = Tensor::copy({Complex(1, -2), Complex(0, 3)}, {2});
  EXPECT_EQ(t.dtype().code, kDLComplex);
  EXPECT_EQ(t.byte_size(), 16u);
  EXPECT_THAT(t.view<Complex>(), ElementsAre(Complex(1, -2), Complex(0, 3)));
  EXPECT_EQ(Tensor::zeros({2}, dtype_of<std::complex<double>>).byte_size(), 32u);
  EXPECT_THAT(text_of([&] { t.view<std::complex<double>>(); }), HasSubstr("c64"));
}

TEST(CppTensor, TakesAVectorsMemory) {
  std::vector<double> values{1, 2};
  const double* memory = values.data();
  const Tensor t = Tensor::take(std::move(values), {2, 1});
  EXPECT_EQ(t.view<double>().data(), memory);
}

TEST(CppTensor, HoldsStrings) {
  const std::vector<std::string> texts{"cat", "", "caf\xc3\xa9"};
  const Tensor t = Tensor::strings(texts, {3, 1});
  EXPECT_TRUE(t.is_strings());
  EXPECT_TRUE(t.is_read_only());
  EXPECT_THAT(t.shape(), ElementsAre(3, 1));
  EXPECT_EQ(t.text(0), "cat");
  EXPECT_EQ(t.text(1), "");
  EXPECT_EQ(t.text(2), "caf\xc3\xa9");
  EXPECT_EQ(Tensor::strings({"a", "b"}, {2}).size(), 2u);
  EXPECT_THAT(text_of([&] { (void)t.text(3); }), HasSubstr("there is no such string"));
  EXPECT_THAT(text_of([&] { (void)Tensor::strings({"a"}, {2}); }), HasSubstr("shape"));
  EXPECT_FALSE(Tensor::zeros({1}, dtype_of<float>).is_strings());
}

TEST(CppTensor, BorrowsMemory) {
  std::array<int32_t, 2> values{1, 2};
  Tensor t = Tensor::borrow(values, {2});
  t.mutable_view<int32_t>()[0] = 5;
  EXPECT_EQ(values[0], 5);
  EXPECT_FALSE(t.is_read_only());
}

TEST(CppTensor, BorrowedConstantsAreReadOnly) {
  const std::array<int32_t, 2> values{1, 2};
  Tensor t = Tensor::borrow(values, {2});
  EXPECT_TRUE(t.is_read_only());
  EXPECT_FALSE(t.is_constant());
  EXPECT_EQ(t.view<int32_t>().data(), values.data());
  EXPECT_THAT(text_of([&] { t.mutable_view<int32_t>(); }), HasSubstr("read-only"));
}

TEST(CppTensor, RefusesAShapeThatTheValuesDoNotFill) {
  const std::string text = text_of([] { Tensor::copy({1.0f, 2.0f}, {3}); });
  EXPECT_THAT(text, HasSubstr("2 values"));
  EXPECT_THAT(text, HasSubstr("shape[3]"));
}

TEST(CppTensor, RefusesAnotherDtype) {
  const std::string text = text_of([] {
    const Tensor t = Tensor::copy({1.0f}, {1});
    t.view<double>();
  });
  EXPECT_THAT(text, HasSubstr("a tensor has another dtype"));
  EXPECT_THAT(text, HasSubstr("32"));
  EXPECT_THAT(text, HasSubstr("64"));
}

TEST(CppTensor, RefusesAnIndexOutside) {
  const Tensor t = Tensor::copy({1.0f, 2.0f}, {1, 2});
  EXPECT_EQ(t.at<float>({0, 1}), 2);
  EXPECT_THAT(text_of([&] { t.at<float>({0, 2}); }), HasSubstr("outside the tensor"));
  EXPECT_THAT(text_of([&] { t.at<float>({0}); }), HasSubstr("outside the tensor"));
  EXPECT_THAT(text_of([&] { t.at<float>({0, -1}); }), HasSubstr("outside the tensor"));
}

TEST(CppTensor, WhatIsNoTensorSaysSo) {
  EXPECT_THAT(text_of([] { Tensor().rank(); }), HasSubstr("holds no tensor"));
}

// A transposed view of six floats, which counts its deletions.
DLPack transposed(std::vector<float>& values, int& deleted) {
  struct Owner {
    DLManagedTensor managed{};
    int64_t shape[2] = {3, 2}, strides[2] = {1, 3};
    int* deleted = nullptr;
  };
  auto* owner = new Owner;
  owner->deleted = &deleted;
  owner->managed.dl_tensor = {values.data(),  cpu, 2, dtype_of<float>, owner->shape,
                              owner->strides, 0};
  owner->managed.manager_ctx = owner;
  owner->managed.deleter = [](DLManagedTensor* self) {
    auto* o = static_cast<Owner*>(self->manager_ctx);
    ++*o->deleted;
    delete o;
  };
  return DLPack(&owner->managed);
}

TEST(CppTensor, ReadsStridedElements) {
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  int deleted = 0;
  {
    const Tensor t = Tensor::from_dlpack(transposed(values, deleted));
    EXPECT_FALSE(t.is_compact());
    EXPECT_THAT(t.to_vector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_EQ(t.at<float>({2, 0}), 2);
    EXPECT_THAT(text_of([&] { t.view<float>(); }), HasSubstr("aren't contiguous"));
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(CppTensor, GoesThroughDLPackWithoutACopy) {
  const Tensor t = Tensor::copy({1.0f, 2.0f}, {2});
  const Tensor same = Tensor::from_dlpack(t.to_dlpack());
  EXPECT_EQ(same.view<float>().data(), t.view<float>().data());
  const Tensor versioned = Tensor::from_dlpack(t.to_dlpack_versioned());
  EXPECT_EQ(versioned.view<float>().data(), t.view<float>().data());
}

TEST(CppTensor, AnUnversionedDLPackCannotBeReadOnly) {
  const std::array<float, 1> values{1};
  const Tensor t = Tensor::borrow(values, {1});
  EXPECT_THROW(t.to_dlpack(), UsageError);
  EXPECT_TRUE(Tensor::from_dlpack(t.to_dlpack_versioned()).is_read_only());
}

TEST(CppTensor, TheBytesOfAnyDtypeAreReadable) {
  const Tensor t = Tensor::zeros({2}, {kDLFloat, 16, 1});
  EXPECT_EQ(t.bytes().size(), 4u);
}

}  // namespace
