// tenon.text.split: the parts of strings between delimiters, as Python's str.split gives them.
#include <algorithm>
#include <cstring>

#include "device/device.h"
#include "library/argument/argument.h"
#include "library/text/functions.h"
#include "object/array.h"
#include "support/poll.h"
#include "support/utf8.h"

namespace tenon::text {
namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.text.split";

// What separates words: Unicode's white space and the four separators of ASCII.
bool is_space(uint32_t c) {
  if (c <= 0x20) return c == 0x20 || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

// Splits one string after the other.
class Splitter {
 public:
  Splitter(std::string_view delimiter, int64_t most) : delimiter_(delimiter), most_(most) {}

  // Calls `each` with the parts of `text`.
  template <class Each>
  void split(std::string_view text, const Each& each) {
    ticker_.tick(text.size());
    if (delimiter_.empty()) return split_at_spaces(text, each);
    for (int64_t splits = 0; splits < most_; ++splits) {
      const size_t at = text.find(delimiter_);
      if (at == std::string_view::npos) break;
      each(text.substr(0, at));
      text.remove_prefix(at + delimiter_.size());
    }
    each(text);
  }

 private:
  template <class Each>
  static void split_at_spaces(std::string_view text, int64_t most, const Each& each) {
    for (int64_t splits = 0;; ++splits) {
      text = text.substr(run(text, true));
      if (text.empty()) return;
      const size_t end = splits == most ? text.size() : run(text, false);
      each(text.substr(0, end));
      text.remove_prefix(end);
    }
  }
  template <class Each>
  void split_at_spaces(std::string_view text, const Each& each) const {
    split_at_spaces(text, most_, each);
  }

  // The length of the text's first run of spaces, or of others.
  static size_t run(std::string_view text, bool spaces) {
    std::string_view rest = text;
    while (!rest.empty()) {
      std::string_view next = rest;
      if (is_space(take_code_point(next)) != spaces) break;
      rest = next;
    }
    return text.size() - rest.size();
  }

  std::string_view delimiter_;
  int64_t most_;
  Ticker ticker_;
};

Array<Any> split(const Tensor& x, const Any& delimiter, int64_t most) {
  const Strings strings = strings_of(kName, "x", x);
  if (most < 0) fail(kName, cat("'most' is ", most, ", expected 0 or more"));
  if (x.rank() == kMaxRank) fail(kName, "'x' has no room for an axis of parts");
  Splitter splitter(string_of(kName, "delimiter", delimiter), most);
  Tensor counts = allocate_tensor(x.shape(), i64);
  int64_t longest = 0;
  for (int64_t i = 0; i < strings.size(); ++i) {
    int64_t count = 0;
    splitter.split(strings[i], [&](std::string_view) { ++count; });
    longest = std::max(longest, count);
    std::memcpy(counts.data_as<char>() + i * int64_t{sizeof count}, &count, sizeof count);
  }
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.push_back(longest);
  StringTensorBuilder parts(shape, static_cast<size_t>(strings.text_bytes()));
  for (int64_t i = 0; i < strings.size(); ++i) {
    int64_t count = 0;
    splitter.split(strings[i], [&](std::string_view part) {
      parts.append(part);
      ++count;
    });
    Ticker ticker;
    for (; count < longest; ++count) {
      ticker.tick();
      parts.append(std::string_view());
    }
  }
  return Array<Any>({Any(parts.finish()), Any(counts)});
}

}  // namespace

void register_split(Registration& functions) {
  library::add_typed(functions, library::signature(kName), split);
}

}  // namespace tenon::text
