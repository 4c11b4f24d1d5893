// Phases: the named parts of a long operation, with their times (`tenon compile --time-passes`).
// When nothing collects them, a phase costs two reads of a thread-local pointer. A recording
// (trace.h) has all phases, nested ones included.
//
//   PhaseTimes times;                  // from here on, on this thread
//   { Phase phase("import"); ... }
//   for (const auto& row : times.rows()) ...
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "support/trace.h"

namespace tenon {

class Phase;

// While it lives, collects the times of this thread's phases, instead of an outer one.
class PhaseTimes {
 public:
  PhaseTimes();
  ~PhaseTimes();
  PhaseTimes(const PhaseTimes&) = delete;
  PhaseTimes& operator=(const PhaseTimes&) = delete;

  // Of this thread; null if nothing collects.
  static PhaseTimes* current();
  // Makes another thread's, which doesn't use it meanwhile, this thread's current one.
  class Scope {
   public:
    explicit Scope(PhaseTimes* times);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimes* outer_;
  };

  struct Row {
    std::string name;
    double seconds = 0;  // excluding nested phases that have rows of their own
  };
  // One row per name, in order of first start.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  friend class Phase;

  PhaseTimes* outer_;
  Phase* innermost_ = nullptr;
  std::vector<Row> rows_;
};

class Phase {
 public:
  enum class Within : uint8_t {
    OwnRows,   // nested phases have rows of their own
    Included,  // nested phases count as part of this one
  };
  // Sets `seconds`, if given, to how long the phase took, whether or not something collects.
  explicit Phase(std::string_view name, Within within = Within::OwnRows, double* seconds = nullptr);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  trace::Scope recorded_;
  PhaseTimes* times_;  // null if nothing collects, or within a phase that includes this one
  Phase* outer_ = nullptr;
  size_t row_ = 0;
  Within within_;
  double* seconds_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::duration of_inner_{};
};

}  // namespace tenon
