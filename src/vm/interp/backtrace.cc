#include "support/backtrace.h"

#include <algorithm>
#include <new>

#include "vm/interp/machine.h"

namespace tenon::vm {

void Machine::add_backtrace(Error& error, const Frame* entry) const try {
  const size_t depth = 1 + static_cast<size_t>(std::max<ptrdiff_t>(entry - frame_, 0));
  auto op = [&](size_t i) { return i == 0 ? pc_ : frame_[i - 1].pc; };
  for (size_t i = 0; i < std::min(depth, kShownFrames) && error.span().empty(); ++i) {
    error.at(running_->span_of(op(i)));
  }
  add_frames(error, depth, op, [&](const Op* place) { return running_->frame_text(place); });
} catch (const std::bad_alloc&) {  // the error stays, with the frames that there was memory for
}

}  // namespace tenon::vm
