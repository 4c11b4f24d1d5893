// The frames of an error: repeating ones are counted, not listed.
#include <algorithm>
#include <new>

#include "support/text.h"
#include "vm/interp/machine.h"

namespace tenon::vm {

namespace {

// A run of frames that repeat: `length` frames, `times` after each other.
struct Cycle {
  size_t length = 1, times = 1;
  size_t frames() const { return length * times; }
};

// The cycle that covers the most of the `depth` frames from `first` on, where frame i is at op(i).
// One frame, once, if nothing repeats often enough to be worth counting.
template <class F>
Cycle cycle_from(size_t first, size_t depth, const F& op) {
  constexpr size_t kLongest = 8, kFewestTimes = 3;
  Cycle best;
  for (size_t length = 1; length <= kLongest; ++length) {
    size_t i = first;
    while (i + length < depth && op(i) == op(i + length)) ++i;
    const Cycle found = {length, 1 + (i - first) / length};
    if (found.times >= kFewestTimes && found.frames() > best.frames()) best = found;
  }
  return best;
}

}  // namespace

void Machine::add_backtrace(Error& error, const Frame* entry) const try {
  constexpr size_t kShown = 24;
  const size_t depth = 1 + static_cast<size_t>(std::max<ptrdiff_t>(entry - frame_, 0));
  auto op = [&](size_t i) { return i == 0 ? pc_ : frame_[i - 1].pc; };
  for (size_t i = 0; i < std::min(depth, kShown) && error.span().empty(); ++i) {
    error.at(running_->span_of(op(i)));
  }
  size_t i = 0, shown = 0;
  while (i < depth && shown < kShown) {
    const Cycle cycle = cycle_from(i, depth, op);
    for (size_t k = 0; k < cycle.length; ++k) error.frame(running_->frame_text(op(i + k)));
    if (cycle.times > 1) {
      error.frame(
          cat(cycle.length == 1 ? "the frame above" : cat("the ", cycle.length, " frames above"),
              ", repeated ", counted(cycle.times - 1, "time")));
    }
    shown += cycle.length + (cycle.times > 1 ? 1 : 0);
    i += cycle.frames();
  }
  if (i < depth) error.frame(counted(depth - i, "more frame"));
} catch (const std::bad_alloc&) {  // the error stays, with the frames that there was memory for
}

}  // namespace tenon::vm
