// tenon.text.case: upper and lower case by the simple mappings of Unicode's character database,
// which don't depend on a locale of the system. case_table.def is generated
// (generate_case_table.py).
#include <algorithm>
#include <iterator>

#include "library/argument/argument.h"
#include "library/text/functions.h"
#include "support/poll.h"
#include "support/utf8.h"

namespace tenon::text {

namespace {

constexpr std::string_view kName = "tenon.text.case";

// The code points first, first + step, ... last map to themselves plus `shift`.
struct Mapping {
  uint32_t first, last, step;
  int32_t shift;
};

constexpr Mapping kLower[] = {
#define TENON_LOWER_CASE(first, last, step, shift) {first, last, step, shift},
#include "library/text/case_table.def"
};
constexpr Mapping kUpper[] = {
#define TENON_UPPER_CASE(first, last, step, shift) {first, last, step, shift},
#include "library/text/case_table.def"
};

uint32_t mapped(std::span<const Mapping> table, uint32_t c) {
  const auto after = std::ranges::upper_bound(table, c, {}, &Mapping::first);
  if (after == table.begin()) return c;
  const Mapping& row = *std::prev(after);
  if (c <= row.last && (c - row.first) % row.step == 0)
    return static_cast<uint32_t>(static_cast<int64_t>(c) + row.shift);
  return c;
}

Tensor with_case(const Tensor& x, int64_t upper) {
  const Strings strings = strings_of(kName, "x", x);
  StringTensorBuilder made(x.shape(), static_cast<size_t>(strings.text_bytes()));
  std::string text;  // not yet in `made`
  constexpr size_t kRoom = 1024;
  Ticker ticker;
  for (int64_t i = 0; i < strings.size(); ++i) {
    std::string_view rest = strings[i];
    for (text.clear(); !rest.empty(); ticker.tick()) {
      const uint32_t c = take_code_point(rest);
      append_utf8(text, upper ? upper_case(c) : lower_case(c));
      if (text.size() < kRoom) continue;
      made.extend(text);
      text.clear();
    }
    ticker.tick();
    made.append(text);
  }
  return made.finish();
}

}  // namespace

uint32_t lower_case(uint32_t code_point) {
  return mapped(kLower, code_point);
}
uint32_t upper_case(uint32_t code_point) {
  return mapped(kUpper, code_point);
}

void register_letter_case(Registration& functions) {
  library::add_typed(functions, library::signature(kName), with_case);
}

}  // namespace tenon::text
