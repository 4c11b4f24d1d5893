// Limits for mutants, and storage of findings. A program calls set_bounds once, begin_mutant before
// each mutant, may_run_forever() before anything that may not terminate, and end_mutants at the
// end. The file that TENON_FINDING names ("finding.bin") always has the current mutant, or its
// number if it is made from that alone, so that it is left behind whatever ends the program. A
// sanitizer's report and exceeding the limits also print its number. finding() keeps a mutant whose
// failure was caught, and continues.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

#include "support/error.h"

#if defined(__SANITIZE_ADDRESS__)
#define TENON_FUZZ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_FUZZ_ASAN 1
#endif
#endif

namespace tenon::fuzz {

constexpr int kLate = 30;  // the exit code of a process that ran forever where it may

struct Bounds {
  static inline std::string path;
  static inline int file = -1;
  static inline const std::string* mutant = nullptr;
  static inline std::string number;  // of a mutant that is made from it alone
  static inline unsigned seconds_of_mutant = 0;
  static inline unsigned seconds = 0;      // of what runs now
  static inline int waits = 0;             // how often they have passed
  static inline int64_t cpu_at_begin = 0;  // nanoseconds
  static inline bool endless = false;      // what runs may run forever
  static inline char name[40];             // the mutant's name for handlers: "mutant 17"
  static inline long findings = 0;
};

inline int64_t cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Async-signal-safe.
inline void say_finding(const char* what) {
  for (const char* text : {"finding: ", static_cast<const char*>(Bounds::name), what, "\n"}) {
    [[maybe_unused]] auto written = write(2, text, std::strlen(text));
  }
}

}  // namespace tenon::fuzz

#ifdef TENON_FUZZ_ASAN
extern "C" inline __attribute__((used, visibility("default"))) void __asan_on_error() {
  tenon::fuzz::say_finding(" makes a sanitizer report");
}
// The sanitizer's own limits. RLIMIT_AS can't be used, because it reserves address space.
extern "C" inline __attribute__((used, visibility("default"))) const char*
__asan_default_options() {
  return "max_allocation_size_mb=1024:hard_rss_limit_mb=3072:detect_leaks=1";
}
extern "C" inline __attribute__((used, visibility("default"))) const char*
__ubsan_default_options() {
  return "print_stacktrace=1";
}
#endif

namespace tenon::fuzz {

inline void set_bounds(unsigned seconds) {
  const char* given = std::getenv("TENON_FINDING");
  Bounds::path = given ? given : "finding.bin";
  Bounds::file = open(Bounds::path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (Bounds::file < 0) {
    std::perror(Bounds::path.c_str());
    std::exit(2);
  }
  Bounds::seconds_of_mutant = seconds;
  std::signal(SIGALRM, [](int) {
    // A busy machine or a stopped process is not a finding; waiting forever is.
    constexpr int kWaits = 10;
    const bool worked = cpu_time() - Bounds::cpu_at_begin > Bounds::seconds * int64_t{500'000'000};
    if (!worked && ++Bounds::waits < kWaits) {
      alarm(Bounds::seconds);
      return;
    }
    if (Bounds::endless) _exit(kLate);
    say_finding(" takes longer than it may");
    std::abort();
  });
#ifndef TENON_FUZZ_ASAN
  // Limits data, not address space, of which guarded_memory.cc reserves more than it uses.
  rlimit memory{rlim_t{4} << 30, rlim_t{4} << 30};
  setrlimit(RLIMIT_DATA, &memory);
#endif
}

inline void watch(unsigned seconds, bool endless) {
  Bounds::seconds = seconds;
  Bounds::endless = endless;
  Bounds::waits = 0;
  Bounds::cpu_at_begin = cpu_time();
  alarm(seconds);
}

// `bytes` must live until the next call.
inline void begin_mutant(uint64_t number, const std::string& bytes) {
  Bounds::mutant = &bytes;
  std::snprintf(Bounds::name, sizeof Bounds::name, "mutant %llu",
                static_cast<unsigned long long>(number));
  if (pwrite(Bounds::file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()) ||
      ftruncate(Bounds::file, static_cast<off_t>(bytes.size())) != 0) {
    std::perror(Bounds::path.c_str());
    std::exit(2);
  }
  watch(Bounds::seconds_of_mutant, false);
}

// The same for what is made from its number alone, which is all that the file has.
inline void begin_mutant(uint64_t number) {
  Bounds::number = cat(number, "\n");
  begin_mutant(number, Bounds::number);
}

// What this mutant does from now on may run forever. After these seconds the process exits with
// kLate, which is not a finding.
inline void may_run_forever(unsigned seconds) {
  watch(seconds, true);
}

inline void finding(const std::string& what) {
  const std::string path = cat(Bounds::path, ".", ++Bounds::findings);
  std::ofstream(path, std::ios::binary) << *Bounds::mutant;
  std::fprintf(stderr, "finding in %s: %s\n", path.c_str(), what.c_str());
}

inline void end_mutants() {
  alarm(0);
  close(Bounds::file);
  unlink(Bounds::path.c_str());
}

}  // namespace tenon::fuzz
