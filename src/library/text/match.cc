// tenon.text.match: whether regular expressions match whole strings.
#include "device/device.h"
#include "library/argument/argument.h"
#include "library/text/expression.h"
#include "library/text/functions.h"
#include "support/poll.h"

namespace tenon::text {
namespace {

constexpr std::string_view kName = "tenon.text.match";

Tensor match(const Tensor& x, const Any& pattern) {
  const Strings strings = strings_of(kName, "x", x);
  poll();
  const Expression wanted(kName, string_of(kName, "pattern", pattern));
  poll();
  Tensor matches = allocate_tensor(x.shape(), boolean);
  Ticker ticker;
  for (int64_t i = 0; i < strings.size(); ++i) {
    wanted.require_length(i, strings[i]);
    ticker.tick(wanted.steps(strings[i].size()));
    matches.data_as<uint8_t>()[i] = wanted.matches_all(strings[i]) ? 1 : 0;
  }
  return matches;
}

}  // namespace

void register_match(Registration& functions) {
  library::add_typed(functions, library::signature(kName), match);
}

}  // namespace tenon::text
