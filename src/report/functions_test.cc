#include "report/functions.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tenon::report {
namespace {

// TENON_BLESS=1 writes the file instead.
TEST(CompilerLibraryDocument, IsWhatTheTablesSay) {
  const char* path = "docs/compiler-library.md";
  if (std::getenv("TENON_BLESS") != nullptr) std::ofstream(path) << compiler_library_document();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), compiler_library_document()) << "run this test with TENON_BLESS=1";
}

}  // namespace
}  // namespace tenon::report
