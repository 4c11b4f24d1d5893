// The parts of the strings of a tensor, along a new last axis.
#pragma once

#include <cstdint>
#include <list>
#include <string_view>

#include "device/scratch.h"
#include "object/array.h"
#include "object/string_tensor.h"
#include "support/poll.h"

namespace tenon::text {

class Parts {
 public:
  // Of strings of the shape of x; throws if no axis can be added to it.
  Parts(std::string_view function, const Tensor& x);

  // Adds a part of the current string, whose memory must outlive this.
  void add(std::string_view part);
  // Goes on to the next string.
  void finish_string();
  // Once all strings are finished: (parts, filled up with empty strings; how many each string has).
  Array<Any> finish(size_t text_bytes);

 private:
  std::string_view take();  // the next part that was added and not yet taken

  static constexpr size_t kBlock = 4096;
  std::list<Scratch<std::string_view>> blocks_;  // so that growing doesn't copy
  Tensor counts_;                                // i64, of x's shape
  int64_t strings_ = 0, count_ = 0, longest_ = 0;
  size_t taken_ = 0;  // of the first block
};

}  // namespace tenon::text
