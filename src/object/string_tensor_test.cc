#include "object/string_tensor.h"

#include <gtest/gtest.h>

#include <cstring>

#include "object/object_budget.h"
#include "object/reflect.h"

namespace tenon {
namespace {

Tensor pair(std::string_view a, std::string_view b) {
  const std::string_view both[] = {a, b};
  return string_tensor(Shape{2}.dims(), both);
}

std::string content_of(const Tensor& t) {
  return {t.data_as<char>(), content_bytes(t)};
}

TEST(StringTensor, HoldsItsElements) {
  const Tensor t = pair("", "caf\xc3\xa9");
  EXPECT_EQ(to_text(t), "tensor[2; string]");
  EXPECT_TRUE(t.read_only());
  const Strings strings(t);
  ASSERT_EQ(strings.size(), 2);
  EXPECT_EQ(strings[0], "");
  EXPECT_EQ(strings[1], "caf\xc3\xa9");
  EXPECT_EQ(strings.text_bytes(), 5);
}

TEST(StringTensor, IsReshapedLikeAnyTensor) {
  const Strings strings(pair("a", "b").reshaped(Shape{1, 2, 1}.dims()));
  EXPECT_EQ(strings[1], "b");
}

TEST(StringTensor, IsEqualByContent) {
  EXPECT_TRUE(structural_equal(Any(pair("a", "bc")), Any(pair("a", "bc"))));
  EXPECT_FALSE(structural_equal(Any(pair("a", "bc")), Any(pair("a", "bd"))));
  EXPECT_FALSE(structural_equal(Any(pair("a", "bc")), Any(pair("ab", "c"))));
  EXPECT_EQ(structural_hash(Any(pair("a", "bc"))), structural_hash(Any(pair("a", "bc"))));
}

TEST(StringTensor, GrowsAsElementsAreAdded) {
  StringTensorBuilder made(Shape{1000}.dims());
  for (int i = 0; i < 1000; ++i) made.append(cat("element ", i));
  const Strings strings(made.finish());
  EXPECT_EQ(strings[0], "element 0");
  EXPECT_EQ(strings[999], "element 999");
}

TEST(StringTensor, TakesAnElementInParts) {
  StringTensorBuilder made(Shape{2}.dims());
  for (int i = 0; i < 1000; ++i) made.extend("ab");
  made.append("c");
  const std::string_view parts[] = {"d", "", "e"};
  made.append(parts);
  const Strings strings(made.finish());
  EXPECT_EQ(strings[0].size(), 2001u);
  EXPECT_EQ(strings[0].substr(1998), "abc");
  EXPECT_EQ(strings[1], "de");
}

TEST(StringTensor, CountsForTheMemoryLimit) {
  struct Account final : MemoryAccount {
    size_t counted = 0;
    bool count_memory(size_t bytes) override {
      if (counted + bytes > size_t{1} << 20) return false;
      counted += bytes;
      return true;
    }
    void discount_memory(size_t bytes) override { counted -= bytes; }
    void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
  } account;
  const ObjectBudget budget(&account);
  EXPECT_EQ(Strings(pair("a", "b")).size(), 2);
  StringTensorBuilder made(Shape{1}.dims());
  EXPECT_THROW(made.append(std::string(2 << 20, 'a')), Error);
}

TEST(StringTensor, IsReadBackFromItsContent) {
  const Tensor t = pair("a", "bc");
  const Tensor back = string_tensor_of_content(Shape{2}.dims(), content_of(t));
  EXPECT_TRUE(structural_equal(Any(t), Any(back)));
  EXPECT_TRUE(string_tensor_of_content(Shape{0, 5}.dims(), ""));
}

TEST(StringTensor, RefusesContentThatIsNone) {
  const std::string content = content_of(pair("a", "bc"));
  const Shape two = {2};
  const auto with_end = [&](size_t i, int64_t end) {
    std::string changed = content;
    std::memcpy(changed.data() + 8 * i, &end, sizeof end);
    return changed;
  };
  EXPECT_FALSE(string_tensor_of_content(two.dims(), content.substr(0, 12)));
  EXPECT_FALSE(string_tensor_of_content(two.dims(), content.substr(0, 18)));
  EXPECT_FALSE(string_tensor_of_content(two.dims(), content + "d"));
  EXPECT_FALSE(string_tensor_of_content(two.dims(), with_end(0, 4)));
  EXPECT_FALSE(string_tensor_of_content(two.dims(), with_end(0, -1)));
  EXPECT_FALSE(string_tensor_of_content(two.dims(), with_end(1, 0)));
  EXPECT_FALSE(string_tensor_of_content(two.dims(), content_of(pair("a", "\xc3"))));
  EXPECT_FALSE(string_tensor_of_content(Shape{INT64_MAX, 3}.dims(), content));
}

TEST(StringTensor, HasNoOtherMaker) {
  const Tensor t = pair("a", "b");
  EXPECT_THROW(t.to_dlpack_versioned(), Error);
  EXPECT_THROW(t.to_dlpack(true), Error);
  // Of the type, but without a builder's mark.
  EXPECT_THROW(Strings(Tensor::empty({2}, string_elements)), Error);
  EXPECT_THROW(Strings(Tensor::empty({2}, i64)), Error);
  EXPECT_THROW(Strings{Tensor()}, Error);
  EXPECT_THROW(StringTensorBuilder(Shape{INT64_MAX, 3}.dims()), Error);
  EXPECT_THROW(StringTensorBuilder(Shape{-1}.dims()), Error);
}

TEST(StringTensor, NamesWhatIsNotUtf8) {
  require_utf8("a", 0, "x");
  try {
    require_utf8("\xff", 3, "x");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "element 3 of x is not valid UTF-8");
  }
}

}  // namespace
}  // namespace tenon
