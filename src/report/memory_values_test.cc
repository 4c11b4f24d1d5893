#include "report/memory_values.h"

#include <gtest/gtest.h>

#include "support/text.h"

namespace tenon::report::memory {
namespace {

// No proof compares sums of so many symbols.
Dim long_sum(const char* prefix, Unknowns* unknowns) {
  Dim sum = 0;
  for (int i = 0; i < 12; ++i) sum = sum + unknowns->size(cat(prefix, i));
  return sum;
}

TEST(MemoryValues, AJoinThatHoldsBothSidesChangesNothingMore) {
  StorageTable storages;
  Unknowns unknowns;
  const StorageId a = storages.add({.bytes = long_sum("a", &unknowns)}),
                  b = storages.add({.bytes = long_sum("b", &unknowns)});
  ASSERT_FALSE(proves_less_equal(storages[a].bytes, max(storages[a].bytes, storages[b].bytes)));
  const JoinContext context{&storages, &unknowns, 8, "@f.L8", "turns(@f.L8)", "turns"};
  State state{made_storage(a)};
  EXPECT_TRUE(join(context, &state, State{made_storage(b)}));
  const int growths = storages.growths();
  EXPECT_FALSE(join(context, &state, State{made_storage(b)}));
  EXPECT_FALSE(join(context, &state, State{made_storage(a)}));
  EXPECT_EQ(storages.growths(), growths);
}

TEST(MemoryValues, APlaceWhoseSizeChangesHasGrown) {
  StorageTable storages;
  const StorageId place = storages.at(4, 0, Dim(8));
  EXPECT_EQ(storages.at(4, 0, Dim(8)), place);
  EXPECT_EQ(storages.growths(), 0);
  EXPECT_EQ(storages.at(4, 0, Dim::symbol("n")), place);
  EXPECT_EQ(storages.growths(), 1);
}

}  // namespace
}  // namespace tenon::report::memory
