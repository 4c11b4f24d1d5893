#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "graph/op/register.h"

namespace tenon::graph {
namespace {

// With TENON_BLESS=1, writes the file instead.
TEST(Document, IsWhatTheTableSays) {
  register_operators();
  const char* path = "docs/operators.md";
  if (std::getenv("TENON_BLESS") != nullptr) std::ofstream(path) << operators_document();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), operators_document()) << "run this test with TENON_BLESS=1";
}

}  // namespace
}  // namespace tenon::graph
