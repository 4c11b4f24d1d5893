#include "library/text/parts.h"

#include <algorithm>

#include "device/device.h"
#include "library/argument/argument.h"

namespace tenon::text {

Parts::Parts(std::string_view function, const Tensor& x) {
  if (x.rank() == kMaxRank) argument::fail(function, "'x' has no room for an axis of parts");
  counts_ = allocate_tensor(x.shape(), i64);
}

void Parts::add(std::string_view part) {
  if (blocks_.empty() || blocks_.back().size() == kBlock) blocks_.emplace_back().reserve(kBlock);
  blocks_.back().push_back(part);
  ++count_;
}

void Parts::finish_string() {
  argument::set_integer(counts_, strings_++, count_);
  longest_ = std::max(longest_, count_);
  count_ = 0;
}

std::string_view Parts::take() {
  if (taken_ == kBlock) {
    blocks_.pop_front();
    taken_ = 0;
  }
  return blocks_.front()[taken_++];
}

Array<Any> Parts::finish(size_t text_bytes) {
  std::vector<int64_t> shape(counts_.shape().begin(), counts_.shape().end());
  shape.push_back(longest_);
  StringTensorBuilder made(shape, text_bytes);
  Ticker ticker;
  for (int64_t i = 0; i < strings_; ++i) {
    const int64_t count = argument::integer_at(counts_, i);
    for (int64_t k = 0; k < longest_; ++k) {
      const std::string_view next = k < count ? take() : std::string_view();
      ticker.tick(next.size());
      made.append(next);
    }
  }
  return Array<Any>({Any(made.finish()), Any(counts_)});
}

}  // namespace tenon::text
