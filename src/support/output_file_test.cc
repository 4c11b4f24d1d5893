#include "support/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "support/error_testing.h"
#include "support/text.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class OutputFileTest : public testing::TestWithParam<OutputFile::Temporary> {
 protected:
  OutputFileTest() {
    folder_ = testing::TempDir() + "tenon-output-XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string get(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      out.push_back(entry.path().filename());
    }
    return out;
  }
  void write(const std::string& path, std::string_view bytes) const {
    OutputFile file(path, GetParam());
    file.write(bytes);
    file.commit();
  }

  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(Temporaries, OutputFileTest,
                         testing::Values(OutputFile::Temporary::Any, OutputFile::Temporary::Named));

TEST_P(OutputFileTest, HasItsBytesOnceItIsCommittedAndNothingElseIsLeft) {
  {
    OutputFile file(path("new"), GetParam());
    file.write("one ");
    file.write("two");
    EXPECT_FALSE(fs::exists(path("new")));
    file.commit();
  }
  EXPECT_EQ(get(path("new")), "one two");
  write(path("new"), "three");
  EXPECT_EQ(get(path("new")), "three");
  EXPECT_THAT(names(), ElementsAre("new"));
}

TEST_P(OutputFileTest, IsAsItWasWithoutACommit) {
  put(path("kept"), "old");
  {
    OutputFile file(path("kept"), GetParam());
    file.write("new");
    EXPECT_EQ(get(path("kept")), "old");
  }
  EXPECT_EQ(get(path("kept")), "old");
  EXPECT_THAT(names(), ElementsAre("kept"));
}

TEST_P(OutputFileTest, IsAsItWasWhenTheDiskIsFull) {
  put(path("kept"), "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = failure_of([&] { write(path("kept"), std::string(10000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, HasSubstr(cat("cannot write ", path("kept"), ": File too large")));
  EXPECT_EQ(get(path("kept")), "old");
  EXPECT_THAT(names(), ElementsAre("kept"));
}

TEST_P(OutputFileTest, KeepsTheModeOfWhatItReplaces) {
  put(path("private"), "old");
  ASSERT_EQ(chmod(path("private").c_str(), 0640), 0);
  write(path("private"), "new");
  struct stat status {};
  ASSERT_EQ(stat(path("private").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);

  const mode_t umask_before = umask(027);
  write(path("new"), "");
  umask(umask_before);
  ASSERT_EQ(stat(path("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST_P(OutputFileTest, ReplacesWhatALinkLeadsTo) {
  put(path("file"), "old");
  fs::create_symlink("file", path("link"));
  fs::create_symlink("later", path("dangling"));
  write(path("link"), "new");
  write(path("dangling"), "there");
  EXPECT_EQ(get(path("file")), "new");
  EXPECT_EQ(get(path("later")), "there");
  EXPECT_TRUE(fs::is_symlink(path("link")) && fs::is_symlink(path("dangling")));
  EXPECT_THAT(names(), UnorderedElementsAre("file", "link", "later", "dangling"));
}

TEST_P(OutputFileTest, RefusesWhatCannotBeWritten) {
  EXPECT_THAT(failure_of([&] { write(folder_, ""); }), HasSubstr("Is a directory"));
  EXPECT_THAT(failure_of([&] { write(path("new/"), ""); }), HasSubstr("Is a directory"));
  EXPECT_THAT(failure_of([&] { write(path("none/file"), ""); }), HasSubstr("No such file"));
  EXPECT_THAT(failure_of([&] { write("", ""); }), HasSubstr("No such file"));
  EXPECT_THAT(failure_of([&] { write("/dev/full", "x"); }), HasSubstr("No space left"));
  fs::create_symlink("loop", path("loop"));
  EXPECT_THAT(failure_of([&] { write(path("loop"), ""); }), HasSubstr("symbolic links"));
  put(path("read_only"), "old");
  ASSERT_EQ(chmod(path("read_only").c_str(), 0444), 0);
  if (geteuid() != 0) {
    EXPECT_THAT(failure_of([&] { write(path("read_only"), ""); }), HasSubstr("Permission denied"));
  }
}

TEST_P(OutputFileTest, DevicesAreWrittenInto) {
  write("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = get(path("pipe")); });
  write(path("pipe"), "through");
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_P(OutputFileTest, WhatAPathThroughProcNamesIsWrittenInto) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  write(cat("/proc/self/fd/", ends[1]), "pipe");
  char bytes[8];
  EXPECT_EQ(read(ends[0], bytes, sizeof bytes), 4);
  close(ends[0]);
  close(ends[1]);

  put(path("file"), "longer than the new");
  fs::create_hard_link(path("file"), path("same"));
  const int fd = open(path("file").c_str(), O_WRONLY);
  fs::create_symlink(cat("/proc/self/fd/", fd), path("link"));
  write(path("link"), "new");
  close(fd);
  EXPECT_EQ(get(path("same")), "new");  // it wasn't replaced
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

// An attacker's link at the temporary's name must not redirect the write.
TEST_P(OutputFileTest, HasATemporaryThatNobodyElseCanName) {
  OutputFile one(path("file"), GetParam()), two(path("file"), GetParam());
  const std::vector<std::string> found = names();
  if (GetParam() == OutputFile::Temporary::Any && found.empty()) return;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0], found[1]);
  EXPECT_THAT(found[0], testing::MatchesRegex("\\.file\\.[0-9a-f]{24}\\.tmp"));
}

TEST_P(OutputFileTest, LeavesNothingWhenASignalEndsTheProcess) {
  put(path("kept"), "old");
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGTERM, [](int signal) {
      remove_temporary_files();
      std::signal(signal, SIG_DFL);
      std::raise(signal);
    });
    OutputFile file(path("kept"), GetParam());
    file.write("new");
    std::raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_EQ(get(path("kept")), "old");
  EXPECT_THAT(names(), ElementsAre("kept"));
}

TEST(WriteFile, OfADashIsStandardOutput) {
  testing::internal::CaptureStdout();
  std::fputs("printed, ", stdout);
  write_file("-", "written");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "printed, written");
}

TEST(WriteFile, WritesManyFilesAtOnce) {
  // More than remove_temporary_files can remove.
  std::vector<std::unique_ptr<OutputFile>> files;
  const std::string base = testing::TempDir() + "tenon-many-";
  for (int i = 0; i < 20; ++i) {
    files.push_back(std::make_unique<OutputFile>(cat(base, i), OutputFile::Temporary::Named));
    files.back()->write("x");
  }
  for (auto& file : files) file->commit();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(fs::remove(cat(base, i)));
}

}  // namespace
}  // namespace tenon
