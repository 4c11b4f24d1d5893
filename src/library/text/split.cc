// tenon.text.split: the parts of strings between delimiters, as Python's str.split gives them.
#include "device/scratch.h"
#include "library/argument/argument.h"
#include "library/text/functions.h"
#include "library/text/parts.h"
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

// Finds a string that is not empty in others, in time linear in both: Knuth, Morris and Pratt,
// "Fast pattern matching in strings", 1977.
class Finder {
 public:
  Finder(std::string_view wanted, Ticker& ticker) : wanted_(wanted), borders_(wanted.size()) {
    size_t matched = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      ticker.tick();
      if (i > 0) matched = after(matched, wanted[i]);
      borders_[i] = matched;
    }
  }

  // The place of the first occurrence, or npos.
  size_t find(std::string_view text, Ticker& ticker) const {
    size_t matched = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      ticker.tick();
      matched = after(matched, text[i]);
      if (matched == wanted_.size()) return i + 1 - matched;
    }
    return std::string_view::npos;
  }

 private:
  // How much of the beginning of `wanted_` precedes the next byte, given how much precedes this.
  size_t after(size_t matched, char byte) const {
    while (matched > 0 && wanted_[matched] != byte) matched = borders_[matched - 1];
    return wanted_[matched] == byte ? matched + 1 : 0;
  }

  std::string_view wanted_;
  // Of each prefix, the longest shorter prefix that is also its end.
  Scratch<size_t> borders_;
};

// Splits one string after the other.
class Splitter {
 public:
  Splitter(std::string_view delimiter, int64_t most)
      : delimiter_(delimiter), finder_(delimiter, ticker_), most_(most) {}

  // Calls `each` with the parts of `text`.
  template <class Each>
  void split(std::string_view text, const Each& each) {
    if (delimiter_.empty()) return split_at_spaces(text, each);
    for (int64_t splits = 0; splits < most_; ++splits) {
      const size_t at = finder_.find(text, ticker_);
      if (at == std::string_view::npos) break;
      each(text.substr(0, at));
      text.remove_prefix(at + delimiter_.size());
    }
    each(text);
  }

 private:
  template <class Each>
  void split_at_spaces(std::string_view text, const Each& each) {
    for (int64_t splits = 0;; ++splits) {
      text = text.substr(run(text, true));
      if (text.empty()) return;
      const size_t end = splits == most_ ? text.size() : run(text, false);
      each(text.substr(0, end));
      text.remove_prefix(end);
    }
  }

  // The length of the text's first run of spaces, or of others.
  size_t run(std::string_view text, bool spaces) {
    std::string_view rest = text;
    while (!rest.empty()) {
      ticker_.tick();
      std::string_view next = rest;
      if (is_space(take_code_point(next)) != spaces) break;
      rest = next;
    }
    return text.size() - rest.size();
  }

  std::string_view delimiter_;
  Ticker ticker_;
  Finder finder_;
  int64_t most_;
};

Array<Any> split(const Tensor& x, const Any& delimiter, int64_t most) {
  const Strings strings = strings_of(kName, "x", x);
  if (most < 0) fail(kName, cat("'most' is ", most, ", expected 0 or more"));
  Parts parts(kName, x);
  Splitter splitter(string_of(kName, "delimiter", delimiter), most);
  Ticker ticker;
  for (int64_t i = 0; i < strings.size(); ++i) {
    ticker.tick();
    splitter.split(strings[i], [&](std::string_view part) { parts.add(part); });
    parts.finish_string();
  }
  return parts.finish(static_cast<size_t>(strings.text_bytes()));
}

}  // namespace

void register_split(Registration& functions) {
  library::add_typed(functions, library::signature(kName), split);
}

}  // namespace tenon::text
