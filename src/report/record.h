// A recording that ends with its scope.
#pragma once

#include "support/trace_recording.h"

namespace tenon::report {

// Records everything that the process does while it lives (support/trace.h).
class Record {
 public:
  explicit Record(bool calls) { trace::start(calls); }
  ~Record() {
    if (is_open_) trace::stop();
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // Call it once.
  trace::Recording end() {
    is_open_ = false;
    return trace::stop();
  }

 private:
  bool is_open_ = true;
};

}  // namespace tenon::report
