// README.md lists the exit codes of src/support/error_kinds.def.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/text.h"

namespace tenon {
namespace {

// The words of a file, separated by single spaces.
std::string words_of(const char* path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::string words;
  for (std::string word; in >> word;) words += cat(words.empty() ? "" : " ", word);
  return words;
}

TEST(Readme, ListsTheExitCodes) {
  std::string codes = "Exit codes: 0 success, 1 results differ";
#define TENON_ERROR_KIND(identifier, c, code, meaning) codes += cat(", ", code, " ", meaning);
#include "support/error_kinds.def"
  EXPECT_THAT(words_of("README.md"), testing::HasSubstr(codes + "."));
}

}  // namespace
}  // namespace tenon
