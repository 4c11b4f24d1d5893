// inject OPTION... -- COMMAND ARGUMENT...: runs a command and lets some of its system calls fail,
// be cut short, or be the last thing that it does.
//
//   --report FILE  what happened, a line each:
//                    step KIND CALL WHAT   (with --steps) a call; WHAT is the file, if it names one
//                    hit KIND CALL WHAT    the first call that a fault applies to
//                    exit CODE, signal NUMBER or hang   how the command ended
//   --steps        report every step
//   --fault KIND,...@N=HOW
//                  what happens to call N, from 0, among those of these kinds:
//                    ERRNO, such as ENOSPC   it fails; a `close` closes nevertheless
//                    short                   it reads or writes half
//                    kill, term              its process is sent SIGKILL or SIGTERM
//                    kill-root, term-root    the command is, which may be its parent
//                  With N.. for N, it happens to all later ones, too. Kinds are those of the table
//                  below, `pipe` and `pipe_end`.
//   --no-tmpfile   O_TMPFILE isn't supported, as on some file systems
//   --seconds N    after which the command counts as hanging (120)
//
// A step is a call of the table below, by any thread or child of the command, from the moment on at
// which its `main` says how SIGXFSZ is handled: what the dynamic loader does before isn't counted.
// Nor is what is written to standard error. Exit code 77: the system doesn't permit tracing.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

// Where a call names a file: by the path or the descriptor in an argument, or not at all.
enum class Names : char { Nothing, Descriptor, Path };

struct Call {
  long number;
  const char* kind;
  const char* name;
  Names names;
  int argument;  // that names the file
};

#define CALL(kind, name, names, argument)           \
  Call {                                            \
    SYS_##name, kind, #name, Names::names, argument \
  }
constexpr Call kCalls[] = {
    CALL("open", open, Path, 0),
    CALL("open", openat, Path, 1),
    CALL("open", creat, Path, 0),
    CALL("read", read, Descriptor, 0),
    CALL("read", pread64, Descriptor, 0),
    CALL("write", write, Descriptor, 0),
    CALL("write", pwrite64, Descriptor, 0),
    CALL("write", writev, Descriptor, 0),
    CALL("close", close, Descriptor, 0),
    CALL("stat", stat, Path, 0),
    CALL("stat", fstat, Descriptor, 0),
    CALL("stat", newfstatat, Path, 1),
    CALL("stat", statfs, Path, 0),
    CALL("stat", access, Path, 0),
    CALL("stat", faccessat2, Path, 1),
    CALL("stat", readlink, Path, 0),
    CALL("stat", lseek, Descriptor, 0),
    CALL("folder", mkdir, Path, 0),
    CALL("folder", getdents64, Descriptor, 0),
    CALL("unlink", unlink, Path, 0),
    CALL("unlink", unlinkat, Path, 1),
    CALL("unlink", rmdir, Path, 0),
    CALL("link", linkat, Path, 3),
    CALL("rename", rename, Path, 1),
    CALL("rename", renameat, Path, 3),
    CALL("rename", renameat2, Path, 3),
    CALL("mode", fchmod, Descriptor, 0),
    CALL("mode", fchown, Descriptor, 0),
    CALL("sync", fsync, Descriptor, 0),
    CALL("sync", fdatasync, Descriptor, 0),
    CALL("truncate", ftruncate, Descriptor, 0),
    CALL("truncate", fallocate, Descriptor, 0),
    CALL("descriptor", fcntl, Descriptor, 0),
    CALL("descriptor", pipe2, Nothing, 0),
    CALL("memfd", memfd_create, Path, 0),
    CALL("map", mmap, Nothing, 0),
    CALL("map", mremap, Nothing, 0),
    CALL("map", mprotect, Nothing, 0),
    CALL("map", brk, Nothing, 0),
    CALL("random", getrandom, Nothing, 0),
    CALL("thread", clone, Nothing, 0),
    CALL("thread", clone3, Nothing, 0),
    CALL("process", fork, Nothing, 0),
    CALL("process", vfork, Nothing, 0),
    CALL("process", execve, Path, 0),
};
#undef CALL
// Of calls of kind "read" and "write", and of kind "close", for a pipe.
constexpr std::string_view kPipe = "pipe", kPipeEnd = "pipe_end";
// What happens to a call, unless it is an error.
constexpr std::string_view kHows[] = {"short", "kill", "term", "kill-root", "term-root"};

struct Fault {
  std::string kinds;  // between commas
  std::string how;
  long at = 0;
  bool lasting = false;
  long seen = 0;          // calls of these kinds
  bool reported = false;  // that it applied
};

struct Options {
  std::string report = "/dev/null";
  std::vector<Fault> faults;
  bool steps = false, no_tmpfile = false;
  int seconds = 120;
  char** command = nullptr;
};

// 0 if it is unknown.
int error_number(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    int number;
  } kErrors[] = {{"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EEXIST", EEXIST}, {"EINTR", EINTR},
                 {"EIO", EIO},       {"EMFILE", EMFILE}, {"ENOENT", ENOENT}, {"ENOMEM", ENOMEM},
                 {"ENOSPC", ENOSPC}, {"ENOSYS", ENOSYS}, {"EPERM", EPERM},   {"EROFS", EROFS}};
  for (const auto& error : kErrors) {
    if (error.name == name) return error.number;
  }
  return 0;
}

// Traces the calls of the table, and rt_sigaction, which shows that `main` has begun.
void trace_calls() {
  std::vector<sock_filter> code = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  std::vector<long> numbers = {SYS_rt_sigaction};
  for (const Call& call : kCalls) numbers.push_back(call.number);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto over = static_cast<uint8_t>(numbers.size() - i);
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(numbers[i]), over, 0));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(126);
  }
}

std::string link_target(const std::string& path) {
  char target[4096];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length < 0 ? "" : std::string(target, static_cast<size_t>(length));
}

// How many seconds this process has waited; if the whole test is stopped meanwhile, that is one.
volatile std::sig_atomic_t seconds_waited = 0;

class Tracer {
 public:
  explicit Tracer(Options& options)
      : options_(options), report_(std::fopen(options.report.c_str(), "we")) {
    if (report_) return;
    std::perror(options.report.c_str());
    std::exit(2);
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  ~Tracer() { std::fclose(report_); }

  int run() {
    if (!start()) return 77;
    struct sigaction action {};
    // Without SA_RESTART: it ends a wait.
    action.sa_handler = [](int) { seconds_waited = seconds_waited + 1; };
    sigaction(SIGALRM, &action, nullptr);
    const itimerval each_second{{1, 0}, {1, 0}};
    setitimer(ITIMER_REAL, &each_second, nullptr);
    for (;;) {
      if (seconds_waited >= options_.seconds) return hang();
      int status = 0;
      const pid_t thread = waitpid(-1, &status, __WALL);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) return 0;  // nothing is left of the command
      if (WIFSTOPPED(status)) {
        stopped(thread, status);
      } else if (thread == root_) {
        ended(status);
      }
    }
  }

 private:
  bool start() {
    root_ = fork();
    if (root_ == 0) {
      if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(126);
      raise(SIGSTOP);
      trace_calls();
      execvp(options_.command[0], options_.command);
      _exit(127);
    }
    int status = 0;
    if (root_ < 0 || waitpid(root_, &status, 0) != root_ || !WIFSTOPPED(status)) return false;
    known_.insert(root_);
    constexpr long kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
                              PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
                              PTRACE_O_TRACESYSGOOD;
    return ptrace(PTRACE_SETOPTIONS, root_, 0, kOptions) == 0 && resume(root_, PTRACE_CONT, 0);
  }

  // What is traced ends with this process.
  int hang() {
    std::fputs("hang\n", report_);
    return 0;
  }

  void ended(int status) {
    if (WIFSIGNALED(status)) {
      std::fprintf(report_, "signal %d\n", WTERMSIG(status));
    } else {
      std::fprintf(report_, "exit %d\n", WEXITSTATUS(status));
    }
  }

  static bool resume(pid_t thread, __ptrace_request request, int signal) {
    return ptrace(request, thread, 0, signal) == 0;
  }

  void stopped(pid_t thread, int status) {
    const int event = status >> 16, signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_SECCOMP) return called(thread);
    if (signal == (SIGTRAP | 0x80)) return returned(thread);
    // New threads and children begin with a stop of their own.
    const bool begins = known_.insert(thread).second;
    resume(thread, PTRACE_CONT, event != 0 || begins ? 0 : signal);
  }

  // The end of a call that was performed, and that fails nevertheless.
  void returned(pid_t thread) {
    set_result(thread, closing_[thread]);
    closing_.erase(thread);
    resume(thread, PTRACE_CONT, 0);
  }

  static void set_result(pid_t thread, int error) {
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers) != 0) return;
    registers.rax = static_cast<unsigned long long>(-error);
    ptrace(PTRACE_SETREGS, thread, 0, &registers);
  }

  void called(pid_t thread) {
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers) != 0) return;  // it was killed meanwhile
    const auto number = static_cast<long>(registers.orig_rax);
    const std::array<uint64_t, 4> arguments = {registers.rdi, registers.rsi, registers.rdx,
                                               registers.r10};
    if (number == SYS_rt_sigaction) {
      counting_ = counting_ || arguments[0] == SIGXFSZ;
      resume(thread, PTRACE_CONT, 0);
      return;
    }
    const Call& call = *std::ranges::find(kCalls, number, &Call::number);
    if (options_.no_tmpfile && makes_unnamed(call, arguments))
      return skip(thread, registers, EOPNOTSUPP);
    const bool to_stderr = call.names == Names::Descriptor && arguments[0] == STDERR_FILENO;
    const Fault* fault = counting_ && !to_stderr ? step(thread, call, arguments) : nullptr;
    if (fault) return apply(thread, call, registers, fault->how);
    resume(thread, PTRACE_CONT, 0);
  }

  static bool makes_unnamed(const Call& call, const std::array<uint64_t, 4>& arguments) {
    const uint64_t flags = call.number == SYS_openat ? arguments[2] : 0;
    return (flags & O_TMPFILE) == O_TMPFILE;
  }

  // Counts a call; returns what is to happen to it, if anything.
  const Fault* step(pid_t thread, const Call& call, const std::array<uint64_t, 4>& arguments) {
    const std::string kind = kind_of(thread, call, arguments);
    Fault* hit = nullptr;
    for (Fault& fault : options_.faults) {
      if (("," + fault.kinds + ",").find("," + kind + ",") == std::string::npos) continue;
      const long n = fault.seen++;
      if (!hit && (fault.lasting ? n >= fault.at : n == fault.at)) hit = &fault;
    }
    const bool is_first = hit && !std::exchange(hit->reported, true);
    if (options_.steps || is_first) {
      std::fprintf(report_, "%s %s %s %s\n", is_first ? "hit" : "step", kind.c_str(), call.name,
                   what(thread, call, arguments).c_str());
    }
    return hit;
  }

  // Of the table, except that threads and processes are told apart, and pipes of the command's own
  // from files: what may happen to these can't happen to a pipe.
  static std::string kind_of(pid_t thread, const Call& call,
                             const std::array<uint64_t, 4>& arguments) {
    const std::string kind = call.kind;
    if (kind == "thread") {
      uint64_t flags = arguments[0];
      if (call.number == SYS_clone3) {
        flags = static_cast<uint64_t>(ptrace(PTRACE_PEEKDATA, thread, arguments[0], 0));
      }
      return flags & CLONE_THREAD ? kind : "process";
    }
    const bool is_of_file = kind == "read" || kind == "write" || kind == "close";
    if (!is_of_file || arguments[0] <= STDERR_FILENO ||
        !file_of(thread, arguments[0]).starts_with("pipe:")) {
      return kind;
    }
    return std::string(kind == "close" ? kPipeEnd : kPipe);
  }

  static std::string file_of(pid_t thread, uint64_t descriptor) {
    return link_target("/proc/" + std::to_string(thread) + "/fd/" +
                       std::to_string(static_cast<int>(descriptor)));
  }

  static std::string what(pid_t thread, const Call& call,
                          const std::array<uint64_t, 4>& arguments) {
    const uint64_t argument = arguments[static_cast<size_t>(call.argument)];
    std::ostringstream text;
    if (call.names == Names::Descriptor) {
      text << file_of(thread, argument);
    } else if (call.names == Names::Path) {
      char path[4096] = {};
      iovec here{path, sizeof path - 1}, there{reinterpret_cast<void*>(argument), sizeof path - 1};
      // Up to the end of a page, since the next one may not be mapped: a longer path is cut there.
      here.iov_len = there.iov_len = std::min<size_t>(sizeof path - 1, 4096 - argument % 4096);
      const ssize_t got = process_vm_readv(thread, &here, 1, &there, 1, 0);
      text << (got > 0 ? path : "?");
      if (makes_unnamed(call, arguments)) text << " (unnamed)";
      if (call.number == SYS_openat && arguments[2] & O_CREAT) text << " (new)";
    }
    return text.str();
  }

  void apply(pid_t thread, const Call& call, user_regs_struct& registers, std::string_view how) {
    if (how == "kill" || how == "term" || how == "kill-root" || how == "term-root") {
      const pid_t process = how.ends_with("-root") ? root_ : process_of(thread);
      kill(process, how.starts_with("kill") ? SIGKILL : SIGTERM);
      resume(thread, PTRACE_CONT, 0);
      return;
    }
    if (how == "short") {
      if (registers.rdx > 1) registers.rdx /= 2;
      ptrace(PTRACE_SETREGS, thread, 0, &registers);
      resume(thread, PTRACE_CONT, 0);
      return;
    }
    if (call.number == SYS_close) {
      closing_[thread] = error_number(how);
      resume(thread, PTRACE_SYSCALL, 0);  // and `returned` follows
      return;
    }
    // A heap that can't grow stays where it is.
    if (call.number == SYS_brk) return skip_with(thread, registers, 0);
    skip(thread, registers, error_number(how));
  }

  static pid_t process_of(pid_t thread) {
    const std::string path = "/proc/" + std::to_string(thread) + "/status";
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (!file) return thread;
    char line[256];
    int process = thread;
    while (std::fgets(line, sizeof line, file)) {
      if (std::sscanf(line, "Tgid: %d", &process) == 1) break;
    }
    std::fclose(file);
    return process;
  }

  static void skip(pid_t thread, user_regs_struct& registers, int error) {
    skip_with(thread, registers, static_cast<uint64_t>(-error));
  }
  static void skip_with(pid_t thread, user_regs_struct& registers, uint64_t result) {
    registers.orig_rax = static_cast<unsigned long long>(-1);
    registers.rax = result;
    ptrace(PTRACE_SETREGS, thread, 0, &registers);
    resume(thread, PTRACE_CONT, 0);
  }

  Options& options_;
  std::FILE* report_;
  pid_t root_ = 0;
  std::set<pid_t> known_;
  std::map<pid_t, int> closing_;  // threads in a close that is to fail, and how
  bool counting_ = false;
};

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "inject: %s\n", what.c_str());
  std::exit(2);
}

// A number from 0 to 999999999.
int parse_number(const std::string& text) {
  const bool is_number = !text.empty() && text.size() <= 9 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) refuse("'" + text + "' is not a number");
  return std::stoi(text);
}

bool is_kind(const std::string& name) {
  return name == kPipe || name == kPipeEnd ||
         std::ranges::any_of(kCalls, [&](const Call& call) { return name == call.kind; });
}

Fault parse_fault(const std::string& text) {
  const size_t at = text.find('@'), equals = text.find('=', at);
  if (equals == std::string::npos) refuse("'" + text + "' is not KIND@N=HOW");
  Fault fault;
  fault.kinds = text.substr(0, at);
  std::string number = text.substr(at + 1, equals - at - 1);
  fault.lasting = number.ends_with("..");
  if (fault.lasting) number.resize(number.size() - 2);
  fault.at = parse_number(number);
  fault.how = text.substr(equals + 1);
  std::istringstream kinds(fault.kinds + ",");
  for (std::string kind; std::getline(kinds, kind, ',');) {
    if (!is_kind(kind)) refuse("unknown kind '" + kind + "'");
  }
  if (std::ranges::find(kHows, fault.how) == std::end(kHows) && !error_number(fault.how)) {
    refuse("unknown error '" + fault.how + "'");
  }
  return fault;
}

Options parse(int argc, char** argv) {
  Options options;
  int i = 1;
  const auto next = [&]() -> const char* {
    if (++i < argc) return argv[i];
    refuse(std::string(argv[i - 1]) + " takes a value");
  };
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view option = argv[i];
    if (option == "--report") {
      options.report = next();
    } else if (option == "--fault") {
      options.faults.push_back(parse_fault(next()));
    } else if (option == "--seconds") {
      options.seconds = parse_number(next());
    } else if (option == "--steps") {
      options.steps = true;
    } else if (option == "--no-tmpfile") {
      options.no_tmpfile = true;
    } else {
      refuse("unknown option " + std::string(option));
    }
  }
  if (i + 1 >= argc) refuse("no command after --");
  options.command = argv + i + 1;
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  return Tracer(options).run();
}
