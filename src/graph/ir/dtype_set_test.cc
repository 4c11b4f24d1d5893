#include "graph/ir/dtype_set.h"

#include <gtest/gtest.h>

#include <set>

#include "object/tensor.h"
#include "support/text.h"

namespace tenon::graph {
namespace {

std::set<std::string> names_of(DtypeSet set) {
  std::set<std::string> names;
  for (const DataType t : members(set)) names.insert(to_text(t));
  return names;
}

TEST(DtypeSet, AllAreTheElementTypesOfTensorsOfNumbers) {
  std::set<std::string> tensors;
  for (int code = 0; code < 32; ++code) {
    for (int bits = 1; bits <= 128; ++bits) {
      const DataType t(static_cast<DLDataTypeCode>(code), bits);
      if (is_tensor_dtype(t)) tensors.insert(to_text(t));
    }
  }
  EXPECT_EQ(names_of(kElements), tensors);
}

// "i2 to i64" are i2, i4, ... i64.
TEST(DtypeSet, TheSentenceOfTensorDtypesNamesAllOfThem) {
  std::set<std::string> named;
  std::string rest(kTensorDtypes);
  while (!rest.empty()) {
    const size_t comma = rest.find(", "), last = rest.find(" or ");
    const size_t end = std::min({comma, last, rest.size()});
    const std::string part = rest.substr(0, end);
    rest.erase(0, end == rest.size() ? end : end + (end == comma ? 2 : 4));
    const size_t to = part.find(" to ");
    if (to == std::string::npos) {
      named.insert(part);
    } else {
      const int least = std::stoi(part.substr(1)), most = std::stoi(part.substr(to + 5));
      for (int bits = least; bits <= most; bits *= 2) named.insert(cat(part[0], bits));
    }
  }
  EXPECT_EQ(named, names_of(kElements));
}

TEST(DtypeSet, TypesWithoutABitAreOnlyInAny) {
  const DataType wide(kDLInt, 128);
  EXPECT_EQ(only(wide), DtypeSet{});
  EXPECT_FALSE(contains(kData, wide));
  EXPECT_TRUE(contains(kAny, wide));
}

TEST(DtypeSet, IsDescribed) {
  EXPECT_EQ(describe(kIndices), "i32 or i64");
  EXPECT_EQ(describe(kFloats), "a float");
  EXPECT_EQ(describe(kBools | kNarrow),
            "bool, an integer of 2 or 4 bits or a float of 4 or 8 bits");
  EXPECT_EQ(describe(kAll), "any element type but c64, c128 and string");
  EXPECT_EQ(describe(kElements), "any element type but string");
  EXPECT_EQ(describe(kData), "any element type");
}

}  // namespace
}  // namespace tenon::graph
