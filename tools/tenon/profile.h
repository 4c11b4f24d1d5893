// Time spent in kernels and packed functions, by call. Unlike a recording (src/report), it needs no
// memory for each call: `tenon bench` also reports the process's peak memory, and runs programs
// with any number of calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/error.h"
#include "vm/interp/machine.h"

namespace tenon::tool {

inline double milliseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

// The time of calls of one kernel, from one place in the code or several, without the functions
// that it calls.
struct KernelTime {
  std::string name;
  int64_t calls = 0;
  double total_ms = 0;
  Span from;  // empty if calls from several places are counted
};

// See `Machine::set_instrument`. For one machine; its program must outlive the profile.
class Profile {
 public:
  explicit Profile(const vm::Program& program) : program_(program) {}

  vm::CallAction see(const vm::CallEvent& event);

  double inside_ms() const { return inside_ms_; }
  // What the profile itself took, which isn't part of the program's time.
  double own_ms() const { return own_ms_; }
  std::vector<KernelTime> by_site() const;    // a row per call in the code; slowest first
  std::vector<KernelTime> by_kernel() const;  // a row per kernel; slowest first

 private:
  using Clock = std::chrono::steady_clock;
  using Site = std::pair<uint32_t, uint32_t>;  // function of the unit, offset in its code

  struct Running {
    Clock::time_point start;
    double own_ms = 0;      // of the profile until then
    double callees_ms = 0;  // of calls that the packed function made
  };

  const vm::Program& program_;
  std::map<Site, KernelTime> sites_;
  std::vector<Running> running_;
  double inside_ms_ = 0, own_ms_ = 0;
};

}  // namespace tenon::tool
