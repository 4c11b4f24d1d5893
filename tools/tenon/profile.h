// Time in kernels and packed functions, by the call that it was spent in.
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

// What calls of one kernel took, of one place in the code or of several, without what the kernel
// called in its turn.
struct KernelTime {
  std::string name;
  int64_t calls = 0;
  double total_ms = 0;
  Span from;  // without a place where calls of several are counted
};

// See `Machine::set_instrument`; for one machine, whose program outlives it.
class Profile {
 public:
  explicit Profile(const vm::Program& program) : program_(program) {}

  vm::CallAction see(const vm::CallEvent& event);

  double inside_ms() const { return inside_ms_; }
  std::vector<KernelTime> by_site() const;    // a row for each call in the code; slowest first
  std::vector<KernelTime> by_kernel() const;  // the same, calls of one kernel together

 private:
  using Clock = std::chrono::steady_clock;
  using Site = std::pair<uint32_t, uint32_t>;  // function of the unit, offset in its code

  struct Running {
    Clock::time_point start;
    double callees_ms = 0;  // of what a packed function called back
  };

  const vm::Program& program_;
  std::map<Site, KernelTime> sites_;
  std::vector<Running> running_;
  double inside_ms_ = 0;
};

}  // namespace tenon::tool
