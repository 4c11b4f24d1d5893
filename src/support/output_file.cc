#include "support/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "support/error.h"
#include "support/poll.h"
#include "support/text.h"

namespace tenon {
namespace {

// The named temporaries, in memory that a signal handler can read at any time. A file that finds no
// free slot, or whose name is too long for one, is removed only by its OutputFile.
struct Slot {
  enum State : int { Free, Filling, Named };
  std::atomic<int> state{Free};
  char name[1024] = {};
};
constinit Slot slots[8];
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads it");

int take_slot(const std::string& name) {
  if (name.size() >= sizeof slots[0].name) return -1;
  for (int i = 0; Slot & slot : slots) {
    int expected = Slot::Free;
    if (slot.state.compare_exchange_strong(expected, Slot::Filling)) {
      std::memcpy(slot.name, name.c_str(), name.size() + 1);
      slot.state = Slot::Named;
      return i;
    }
    ++i;
  }
  return -1;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// /proc, whose entries describe processes and can't be replaced.
bool is_proc(const std::string& folder) {
  struct statfs status {};
  return statfs(folder.c_str(), &status) == 0 &&
         static_cast<unsigned long>(status.f_type) == PROC_SUPER_MAGIC;
}

// Follows symbolic links, up to the first entry of /proc. The file needn't exist.
std::string follow_links(std::string path) {
  constexpr int kMostLinks = 40;  // like the kernel
  for (int i = 0; i < kMostLinks && !is_proc(folder_of(path)); ++i) {
    char link[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), link, sizeof link);
    if (length < 0) break;
    const std::string to(link, static_cast<size_t>(length));
    path = to.starts_with('/') ? to : cat(folder_of(path), "/", to);
  }
  return path;
}

// An unguessable name beside `target`; empty if the system gives no random bytes.
std::string name_beside(const std::string& target) {
  unsigned char random[12];
  if (getrandom(random, sizeof random, 0) != sizeof random) return {};
  // As much of the target's name as fits.
  const size_t slash = target.rfind('/') + 1;
  std::string name = cat(target.substr(0, slash), ".", target.substr(slash, NAME_MAX - 40), ".");
  for (unsigned char byte : random) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name + ".tmp";
}

}  // namespace

void remove_temporary_files() noexcept {
  for (Slot& slot : slots) {
    if (slot.state == Slot::Named) unlink(slot.name);
  }
}

// Not Error::of_system, which nothing else in the runtime would need.
void OutputFile::fail(int code) const {
  throw Error(ErrorKind::Usage, cat("cannot write ", printable(path_), ": ", std::strerror(code)))
      .row(Error::kErrno, cat(code));
}

OutputFile::OutputFile(std::string path, std::string target)
    : path_(std::move(path)), target_(std::move(target)) {}

// Delegates, so that the destructor runs if this body throws.
OutputFile::OutputFile(const std::string& path, Temporary temporary)
    : OutputFile(path, path == "-" ? path : follow_links(path)) {
  if (path.find('\0') != std::string::npos) fail(EINVAL);
  if (!open_in_place()) open_beside(temporary);
}

OutputFile::~OutputFile() {
  if (!committed_ && !temporary_.empty()) unlink(temporary_.c_str());
  if (slot_ >= 0) slots[slot_].state = Slot::Free;
  if (fd_ >= 0) close(fd_);
}

bool OutputFile::open_in_place() {
  if (path_ == "-") {
    in_place_ = true;
    std::fflush(stdout);  // earlier output comes first
    fd_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd_ < 0) fail(errno);
    return true;
  }
  struct stat status {};
  if (stat(target_.c_str(), &status) != 0) {
    if (errno == ENOENT) return false;
    fail(errno);
  }
  if (S_ISREG(status.st_mode) && !is_proc(folder_of(target_))) {
    // A file that may not be written must not be replaced either.
    if (access(target_.c_str(), W_OK) != 0) fail(errno);
    return false;
  }
  in_place_ = true;
  fd_ = open(target_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
  if (fd_ < 0) fail(errno);
  return true;
}

void OutputFile::open_beside(Temporary temporary) {
  if (target_.empty() || target_.ends_with('/')) fail(target_.empty() ? ENOENT : EISDIR);
  // An unnamed file gets its name through /proc.
  if (temporary == Temporary::Any && access("/proc/self/fd", X_OK) == 0) {
    fd_ = open(folder_of(target_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  }
  if (fd_ < 0) open_named();
  struct stat status {};
  // Keep the old file's owner too, where permitted.
  if (stat(target_.c_str(), &status) == 0 &&
      ((fchown(fd_, status.st_uid, status.st_gid) != 0 && errno != EPERM && errno != EINVAL) ||
       fchmod(fd_, status.st_mode & 0777) != 0)) {
    fail(errno);
  }
}

// Opens a named temporary; if an unnamed file is open, gives it that name instead.
void OutputFile::open_named() {
  constexpr int kTries = 16;  // a try fails only if 96 random bits collide
  for (int i = 0; i < kTries; ++i) {
    std::string name = name_beside(target_);
    if (name.empty()) fail(EIO);
    slot_ = take_slot(name);
    int error = 0;
    if (fd_ < 0) {
      fd_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
      if (fd_ < 0) error = errno;
    } else if (linkat(AT_FDCWD, cat("/proc/self/fd/", fd_).c_str(), AT_FDCWD, name.c_str(),
                      AT_SYMLINK_FOLLOW) != 0) {
      error = errno;
    }
    if (error == 0) {
      temporary_ = std::move(name);
      return;
    }
    if (slot_ >= 0) slots[slot_].state = Slot::Free;
    slot_ = -1;
    if (error != EEXIST) fail(error);
  }
  fail(EEXIST);
}

void OutputFile::write(std::string_view bytes) {
  TENON_ASSERT(fd_ >= 0, path_, " is closed");
  while (!bytes.empty()) {
    poll();
    const ssize_t n = ::write(fd_, bytes.data(), std::min(kPollBytes, bytes.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void OutputFile::commit() {
  TENON_ASSERT(fd_ >= 0, path_, " is closed");
  if (!in_place_) {
    if (fsync(fd_) != 0) fail(errno);
    replace();
  }
  committed_ = true;
  if (close(std::exchange(fd_, -1)) != 0) fail(errno);
}

void OutputFile::replace() {
  if (temporary_.empty()) {
    // linkat never replaces: if the target exists, link to a temporary name and rename.
    if (linkat(AT_FDCWD, cat("/proc/self/fd/", fd_).c_str(), AT_FDCWD, target_.c_str(),
               AT_SYMLINK_FOLLOW) == 0) {
      return;
    }
    if (errno != EEXIST) fail(errno);
    open_named();
  }
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void write_file(const std::string& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace tenon
