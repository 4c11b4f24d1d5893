// The frames of an error: repeating ones are counted, not listed.
#pragma once

#include <algorithm>
#include <cstddef>

#include "support/error.h"
#include "support/text.h"

namespace tenon {

// A run of frames that repeat: `length` frames, `times` after each other.
struct FrameCycle {
  size_t length = 1, times = 1;
  size_t frames() const { return length * times; }
};

// The cycle that covers the most of the `depth` frames from `first` on, where frame i is at
// place(i). One frame, once, if nothing repeats often enough to be worth counting.
template <class Place>
FrameCycle frame_cycle_from(size_t first, size_t depth, const Place& place) {
  constexpr size_t kLongest = 8, kFewestTimes = 3;
  FrameCycle best;
  for (size_t length = 1; length <= kLongest; ++length) {
    size_t i = first;
    while (i + length < depth && place(i) == place(i + length)) ++i;
    const FrameCycle found = {length, 1 + (i - first) / length};
    if (found.times >= kFewestTimes && found.frames() > best.frames()) best = found;
  }
  return best;
}

inline constexpr size_t kShownFrames = 24;

// Adds the `depth` frames to the error, innermost (0) first: text(place(i)) describes one.
template <class Place, class Text>
void add_frames(Error& error, size_t depth, const Place& place, const Text& text) {
  size_t i = 0, shown = 0;
  while (i < depth && shown < kShownFrames) {
    const FrameCycle cycle = frame_cycle_from(i, depth, place);
    for (size_t k = 0; k < cycle.length; ++k) error.frame(text(place(i + k)));
    if (cycle.times > 1) {
      error.frame(
          cat(cycle.length == 1 ? "the frame above" : cat("the ", cycle.length, " frames above"),
              ", repeated ", counted(cycle.times - 1, "time")));
    }
    shown += cycle.length + (cycle.times > 1 ? 1 : 0);
    i += cycle.frames();
  }
  if (i < depth) error.frame(counted(depth - i, "more frame"));
}

}  // namespace tenon
