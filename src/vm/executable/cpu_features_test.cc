#include "vm/executable/cpu_features.h"

#include <csignal>
#include <cstdlib>

#include <algorithm>

#include <gmock/gmock.h>

namespace tenon::vm {
namespace {

bool has(std::string_view name) {
  const auto names = cpu_feature_names(host_cpu_features());
  return std::ranges::find(names, name) != names.end();
}

TEST(CpuFeatures, HaveNumbersAndNames) {
  EXPECT_EQ(cpu_feature_bit("avx2"), 8);
  EXPECT_EQ(cpu_feature_bit("nothing"), -1);
  auto set = cpu_feature_set({"avx2", "sse3", "nothing"});
  EXPECT_THAT(cpu_feature_names(set), testing::ElementsAre("sse3", "avx2"));
  EXPECT_THAT(missing_cpu_features({"nothing"}), testing::ElementsAre("nothing"));
  EXPECT_TRUE(missing_cpu_features(cpu_feature_names(host_cpu_features())).empty());
}

// Ends the process with 0 if registers for matrices are missing, because a thread's stack for
// signals is too small for them.
[[noreturn]] void ask_with_a_small_signal_stack() {
  static char memory[8192];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  if (sigaltstack(&stack, nullptr) != 0) std::_Exit(2);
  std::_Exit(missing_cpu_features({"avx512f", "amx-tile"}) == std::vector<std::string>{"amx-tile"}
                 ? 0
                 : 1);
}

TEST(CpuFeatures, RegistersThatTheSystemRefusesAreMissing) {
  if (!has("amx-tile")) GTEST_SKIP() << "no registers for matrices";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that hasn't asked before
  EXPECT_EXIT(ask_with_a_small_signal_stack(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tenon::vm
