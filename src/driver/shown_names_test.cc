#include "driver/shown_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::driver {
namespace {

TEST(ShownNames, CutsALongNameBetweenCharacters) {
  EXPECT_EQ(shown_name(std::string(kLongestName, 'a')), std::string(kLongestName, 'a'));
  EXPECT_EQ(shortened("aaaaaaaa", 6), "aaa…");
  EXPECT_EQ(shortened("ééééé", 6), "é…");
}

TEST(ShownNames, SaysHowManyOfAListAreLeftOut) {
  const std::vector<std::string> names(kMostNames + 4, "x");
  const std::vector<std::string> shown = shown_names(names);
  ASSERT_EQ(shown.size(), kMostNames);
  EXPECT_EQ(shown.back(), "5 more");
  // What a file has of them is cut no further when it is read.
  EXPECT_EQ(shown_names(shown), shown);
  EXPECT_EQ(shown_name(shown_name(std::string(300, 'a'))), shown_name(std::string(300, 'a')));
}

}  // namespace
}  // namespace tenon::driver
