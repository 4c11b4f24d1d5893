// Phases: the named parts of a long operation, timed for whoever asks (`tenon compile
// --time-passes`). Where nobody does, a phase costs two reads of a thread-local pointer.
//
//   PhaseTimes times;                  // from here on, on this thread
//   { Phase phase("import"); ... }
//   for (const auto& row : times.rows()) ...
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class Phase;

// Collects the times of this thread's phases while it lives, in the place of an outer one.
class PhaseTimes {
 public:
  PhaseTimes();
  ~PhaseTimes();
  PhaseTimes(const PhaseTimes&) = delete;
  PhaseTimes& operator=(const PhaseTimes&) = delete;

  struct Row {
    std::string name;
    double seconds = 0;  // without the phases within it that have rows of their own
  };
  // One for each name, in the order in which they first began.
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
    OwnRows,   // phases within it have rows of their own
    Included,  // they count as part of it
  };
  explicit Phase(std::string_view name, Within within = Within::OwnRows);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  PhaseTimes* times_;  // null where nobody asks, or within a phase that includes it
  Phase* outer_ = nullptr;
  size_t row_ = 0;
  Within within_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::duration of_inner_{};
};

}  // namespace tenon
