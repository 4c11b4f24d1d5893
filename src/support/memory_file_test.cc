#include "support/memory_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "support/error_testing.h"

namespace tenon {
namespace {

TEST(MemoryFile, HoldsItsBytesBehindItsPath) {
  const MemoryFile one("test", "first"), two("test", std::string(100000, 'x'));
  std::ifstream first(one.path()), second(two.path());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(first), {}), "first");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(second), {}).size(), 100000u);
}

TEST(MemoryFile, ThatDoesNotFitIsAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = failure_of([] { MemoryFile("tenon-test", "more than ten bytes"); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, testing::StartsWith("error: cannot place a file in memory: File too large"));
  EXPECT_THAT(error, testing::HasSubstr("tenon-test"));
}

}  // namespace
}  // namespace tenon
