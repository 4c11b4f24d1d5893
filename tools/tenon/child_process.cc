#include "tools/tenon/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "codegen/llvm/memory_limit.h"
#include "support/error.h"
#include "support/poll.h"
#include "support/text.h"
#include "tools/tenon/error_report.h"

namespace tenon::tool {
namespace {

Error refused(const char* what) {
  return Error(ErrorKind::Runtime, "a child process can't be started")
      .found(cat(what, ": ", std::strerror(errno)))
      .help("a limit of the process or the user may be reached: ulimit -a");
}

// What this process has allocated: writable memory of its own.
size_t allocated() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/statm", "r"), &fclose);
  size_t pages[6] = {};  // in all, resident, shared, text, 0, data and stack
  for (size_t& count : pages) {
    if (!file || std::fscanf(file.get(), "%zu", &count) != 1) return 0;
  }
  return pages[5] * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// In the child.
[[noreturn]] void run_child(const std::function<int(int)>& body, int pipe, pid_t parent,
                            size_t memory) {
  // SIGTERM lets it remove temporary files (main.cc).
  struct sigaction on_term {};
  sigaction(SIGTERM, nullptr, &on_term);
  prctl(PR_SET_PDEATHSIG, on_term.sa_handler == SIG_IGN ? SIGKILL : SIGTERM);
  if (getppid() != parent) _exit(0);  // it ended before that
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  int code = 0;
  try {
    if (memory != 0) {
      // What is mapped from files, and shared, doesn't count.
      const rlim_t all = allocated() + memory;
      const rlimit most{all, all};
      if (setrlimit(RLIMIT_DATA, &most) != 0) throw refused("setrlimit");
    }
    code = body(pipe);
  } catch (...) {
    code = report_exception();
  }
  _exit(finish(code));
}

// Waits for the end of the pipe; false when the time comes first.
bool ends_before(int pipe, std::chrono::steady_clock::time_point end) {
  for (;;) {
    int timeout = -1;
    if (end != std::chrono::steady_clock::time_point::max()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
    }
    pollfd waiting{pipe, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, timeout);
    if (ready > 0) return true;
    if (ready == 0 && std::chrono::steady_clock::now() >= end) return false;
  }
}

}  // namespace

ChildProcess::ChildProcess(const std::function<int(int pipe)>& body, size_t memory) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw refused("pipe");
  std::fflush(nullptr);  // or both would write what waits
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) {
    const Error error = refused("fork");
    close(ends[0]);
    close(ends[1]);
    throw error;
  }
  if (pid_ == 0) {
    close(ends[0]);
    run_child(body, ends[1], parent, memory);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    end();
    wait();
  }
  close(pipe_);
}

// Gives it some time to remove its temporary files.
void ChildProcess::end() const {
  constexpr int kSteps = 50;
  constexpr std::chrono::milliseconds kStep(5);
  kill(pid_, SIGTERM);
  for (int i = 0; i < kSteps; ++i) {
    siginfo_t ended{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != 0) {
      return;
    }
    std::this_thread::sleep_for(kStep);
  }
  kill(pid_, SIGKILL);
}

ChildProcess::End ChildProcess::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

std::string crash_text(int signal) {
  switch (signal) {
    case SIGKILL:
      return "the process was killed, as the system does when memory runs out";
    case SIGBUS:
      return "the process crashed: a file became shorter while it was read, or a disk failed";
    case SIGABRT:
    case SIGFPE:
    case SIGILL:
    case SIGSEGV:
    case SIGSYS:
    case SIGTRAP:
      return cat("the process crashed: ", strsignal(signal));
    default:
      return cat("the process was ended: ", strsignal(signal));
  }
}

namespace {

// The exit code of a child that found no memory.
constexpr int kNoMemory = 75;

// Whether the exception that is being handled comes from a limit of the system: no memory, or no
// address space for a thread or a file.
bool is_exhausted_memory() {
  const auto is_limit = [](int code) { return code == ENOMEM || code == EAGAIN; };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const std::system_error& error) {
    return is_limit(error.code().value());
  } catch (const Error& error) {
    return is_limit(error.system_code());
  } catch (...) {
    return false;
  }
}

// The child's work under a limit of memory: where there is none, it ends with kNoMemory. Unwinding
// instead would pass through LLVM, which isn't prepared for exceptions.
int work_within_memory(const std::function<void()>& work) {
  std::set_new_handler([] { _exit(kNoMemory); });
  codegen::handle_exhausted_memory([] { _exit(kNoMemory); });
  try {
    work();
  } catch (...) {
    if (is_exhausted_memory()) return kNoMemory;
    throw;
  }
  return 0;
}

}  // namespace

int run_in_child(const WorkLimits& limits, const std::string& activity, const std::string& name,
                 const std::function<void()>& work) {
  // The child sees its deadline itself, wherever it polls; what doesn't poll is ended.
  constexpr auto kGrace = std::chrono::milliseconds(500);
  WorkBudget budget(limits, activity, name);
  constexpr auto kNever = std::chrono::nanoseconds::max();
  const auto end = deadline_from_now(std::min(limits.deadline, kNever - kGrace) + kGrace);
  ChildProcess child(
      [&](int) {
        if (limits.memory != 0) return work_within_memory(work);
        work();
        return 0;
      },
      limits.memory);
  if (!ends_before(child.pipe(), end)) budget.poll();  // throws: the deadline has passed
  const ChildProcess::End ended = child.wait();
  if (ended.signal == 0 && ended.exit_code == kNoMemory) budget.fail_memory(limits.memory);
  if (ended.signal == 0) return ended.exit_code;
  Error error(ErrorKind::Runtime,
              cat(activity, " ", printable(name), " failed, and nothing was written"));
  error.found(crash_text(ended.signal));
  // Libraries may crash where they find no memory.
  if (limits.memory != 0) {
    error.help(
        cat("its memory limit of ", bytes_text(limits.memory), " may be the reason: raise it"));
  } else if (ended.signal == SIGKILL) {
    error.help(cat("use a machine with more memory for ", activity));
  }
  throw error;
}

}  // namespace tenon::tool
