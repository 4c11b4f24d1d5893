#include "support/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/error_testing.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class InputFileTest : public testing::Test {
 protected:
  InputFileTest() {
    folder_ = testing::TempDir() + "tenon-input-XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~InputFileTest() override { fs::remove_all(folder_); }

  std::string file(const std::string& text) const {
    std::ofstream(folder_ + "/file") << text;
    return folder_ + "/file";
  }

  std::string folder_;
};

std::string failure_to_open(const std::string& path) {
  return failure_of([&] { InputFile in(path); });
}

TEST_F(InputFileTest, MapsAndReadsTheBytes) {
  InputFile in(file("some bytes"));
  ASSERT_EQ(in.size(), 10u);
  auto* bytes = const_cast<void*>(in.map());
  EXPECT_EQ(std::string_view(static_cast<const char*>(bytes), 10), "some bytes");
  munmap(bytes, 10);
  char part[16] = {};
  EXPECT_EQ(in.read(part, 4), 4u);
  EXPECT_EQ(in.read(part + 4, 12), 6u);
  EXPECT_EQ(in.read(part, 1), 0u);
  EXPECT_STREQ(part, "some bytes");
}

TEST_F(InputFileTest, MapsNothingOfAnEmptyFile) {
  const InputFile in(file(""));
  EXPECT_EQ(in.size(), 0u);
  EXPECT_EQ(in.map(), nullptr);
}

TEST_F(InputFileTest, ReadsOnlyWhatATruncationLeft) {
  const std::string path = file("some bytes");
  InputFile in(path);
  fs::resize_file(path, 3);
  char part[16];
  EXPECT_EQ(in.read(part, sizeof part), 3u);
  EXPECT_EQ(in.read(part, sizeof part), 0u);
}

TEST_F(InputFileTest, RefusesWhatIsNotARegularFile) {
  EXPECT_EQ(failure_to_open("/nowhere/x"),
            "error: /nowhere/x: can't be opened: No such file or directory");
  EXPECT_THAT(failure_to_open("/nowhere/a\nb"), HasSubstr("/nowhere/a\\nb: can't"));
  EXPECT_EQ(failure_to_open(folder_), "error: " + folder_ + ": not a regular file");
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(failure_to_open(pipe), HasSubstr("not a regular file"));  // at once: nobody writes
}

}  // namespace
}  // namespace tenon
