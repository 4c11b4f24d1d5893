// Recordings: all threads' events from `start` to `stop`. `tenon trace` and `tenon.profile()` turn
// them into pictures (src/report).
//
//   trace::start();
//   ...
//   const trace::Recording recording = trace::stop();
//
// Each thread appends to a buffer of its own. The runtime's library doesn't contain this: it only
// knows the sink.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "support/trace.h"

namespace tenon::trace {

struct Recording {
  struct Thread {
    std::vector<uint64_t> words;  // events
    uint64_t dropped = 0;         // events that were not recorded, for lack of memory
  };
  struct Kept {
    uint64_t key;
    std::shared_ptr<const void> object;
  };
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<Thread> threads;  // that recorded something
  std::vector<Kept> kept;
};

// Starts a recording; with `calls`, of calls of functions and closures, too. Throws Usage if one is
// in progress: there is one per process.
void start(bool calls = false);
// Ends it. Throws Usage if there is none. Intervals that are still open have no end in it.
Recording stop();

// An event in a recording.
struct Event {
  Kind kind;
  bool ends;
  uint32_t number;
  int64_t ns;
  uint64_t key;
  std::span<const uint64_t> payload;
};
// Calls `f(event)` for each event of a thread, in the order of time.
template <class F>
void for_each_event(const std::vector<uint64_t>& words, const F& f) {
  for (size_t at = 0; at + 3 <= words.size();) {
    const uint64_t head = words[at];
    const size_t payload = head >> 48;
    f(Event{static_cast<Kind>(head >> 32 & 0xff), (head >> 40 & 0xff) != 0,
            static_cast<uint32_t>(head), static_cast<int64_t>(words[at + 1]), words[at + 2],
            std::span(words).subspan(at + 3, payload)});
    at += 3 + payload;
  }
}

}  // namespace tenon::trace
