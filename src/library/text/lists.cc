// Lists of strings: taking, joining, ordering and finding them.
#include <algorithm>

#include "device/device.h"
#include "library/argument/argument.h"
#include "library/text/functions.h"
#include "support/poll.h"
#include "support/sort_numbers.h"
#include "support/utf8.h"

namespace tenon::text {

using namespace argument;

Strings strings_of(std::string_view function, std::string_view name, const Tensor& t) {
  if (!is_string_tensor(t)) {
    fail(function, cat("'", name, "' is ", to_text(t), ", expected a tensor of strings"));
  }
  return Strings(t, name);
}

std::string_view string_of(std::string_view function, std::string_view name, const Any& value) {
  if (!String::accepts(value)) {
    fail(function, cat("'", name, "' is ", type_name(value.type_index), ", expected a string"));
  }
  const auto text = value.as<std::string_view>();
  // Parts of it, or what it is taken from, become strings of tensors.
  if (!is_utf8(text)) fail(function, cat("'", name, "' is not valid UTF-8: ", quoted(text)));
  return text;
}

namespace {

constexpr std::string_view kTake = "tenon.text.take", kJoin = "tenon.text.join",
                           kRank = "tenon.text.rank", kConcat = "tenon.text.concat",
                           kFind = "tenon.text.find";

// Less than, equal to or greater than 0, as one string is than the other by its bytes.
int compare(std::string_view a, std::string_view b, Ticker& ticker) {
  for (; std::min(a.size(), b.size()) > kPollBytes; poll()) {
    const int order = a.substr(0, kPollBytes).compare(b.substr(0, kPollBytes));
    if (order != 0) return order;
    a.remove_prefix(kPollBytes);
    b.remove_prefix(kPollBytes);
  }
  ticker.tick(std::min(a.size(), b.size()));
  return a.compare(b);
}

Tensor take(const Tensor& x, const Tensor& indices) {
  const Strings from = strings_of(kTake, "x", x);
  require_host(kTake, "indices", indices);
  if (indices.dtype() != i64) fail(kTake, cat("'indices' is ", to_text(indices), ", expected i64"));
  StringTensorBuilder made(indices.shape());
  Ticker ticker;
  for (int64_t i = 0, n = indices.count(); i < n; ++i) {
    const int64_t at = integer_at(indices, i);  // once: the elements may change meanwhile
    if (at < 0 || at >= from.size())
      fail(kTake, cat("the index ", at, " of a list of ",
                      counted(static_cast<uint64_t>(from.size()), "string")));
    ticker.tick(from[at].size());
    made.append(from[at]);
  }
  return made.finish();
}

Tensor join(const Tensor& a, const Tensor& b) {
  const Strings first = strings_of(kJoin, "a", a), second = strings_of(kJoin, "b", b);
  const int64_t count = first.size() + second.size();
  StringTensorBuilder made(std::span(&count, 1),
                           static_cast<size_t>(first.text_bytes() + second.text_bytes()));
  Ticker ticker;
  for (const Strings* part : {&first, &second}) {
    for (int64_t i = 0; i < part->size(); ++i) {
      ticker.tick((*part)[i].size());
      made.append((*part)[i]);
    }
  }
  return made.finish();
}

// The places of the strings in the order of their code points, which is that of UTF-8's bytes;
// equal ones in the order of places.
Scratch<int64_t> sorted_places(const Strings& strings) {
  Scratch<int64_t> places(static_cast<size_t>(strings.size()));
  Ticker ticker;
  for (size_t i = 0; i < places.size(); ++i) {
    ticker.tick();
    places[i] = static_cast<int64_t>(i);
  }
  const auto before = [&](int64_t a, int64_t b) {
    const int order = compare(strings[a], strings[b], ticker);
    return order != 0 ? order < 0 : a < b;
  };
  // The importer sorts lists of keys, save where a change of case may reorder them.
  if (!std::is_sorted(places.begin(), places.end(), before)) sort_numbers(places, before);
  return places;
}

Tensor rank(const Tensor& x) {
  const Strings strings = strings_of(kRank, "x", x);
  if (x.rank() != 1) fail(kRank, cat("'x' is ", to_text(x), ", expected a list"));
  Tensor ranks = allocate_tensor(x.shape(), i64);
  const Scratch<int64_t> places = sorted_places(strings);
  int64_t now = 0;
  Ticker ticker;
  for (size_t i = 0; i < places.size(); ++i) {
    if (i > 0 && compare(strings[places[i]], strings[places[i - 1]], ticker) != 0) ++now;
    set_integer(ranks, places[i], now);
  }
  return ranks;
}

Tensor concat(const Tensor& a, const Tensor& b) {
  const Strings left = strings_of(kConcat, "a", a), right = strings_of(kConcat, "b", b);
  if (!std::ranges::equal(a.shape(), b.shape()))
    fail(kConcat, cat("'a' is ", to_text(a), " and 'b' ", to_text(b), ", expected one shape"));
  StringTensorBuilder made(a.shape(), static_cast<size_t>(left.text_bytes() + right.text_bytes()));
  Ticker ticker;
  for (int64_t i = 0; i < left.size(); ++i) {
    const std::string_view parts[] = {left[i], right[i]};
    ticker.tick(parts[0].size() + parts[1].size());
    made.append(parts);
  }
  return made.finish();
}

Tensor find(const Tensor& x, const Tensor& keys) {
  const Strings wanted = strings_of(kFind, "x", x), known = strings_of(kFind, "keys", keys);
  if (keys.rank() != 1) fail(kFind, cat("'keys' is ", to_text(keys), ", expected a list"));
  Tensor found = allocate_tensor(x.shape(), i64);
  const Scratch<int64_t> places = sorted_places(known);
  Ticker ticker;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    const std::string_view text = wanted[i];
    ticker.tick();
    const auto at = std::lower_bound(places.begin(), places.end(), text,
                                     [&](int64_t place, std::string_view key) {
                                       return compare(known[place], key, ticker) < 0;
                                     });
    const bool equal = at != places.end() && compare(known[*at], text, ticker) == 0;
    set_integer(found, i, equal ? *at : -1);
  }
  return found;
}

}  // namespace

void register_lists(Registration& functions) {
  using library::add_typed, library::signature;
  add_typed(functions, signature(kTake), take);
  add_typed(functions, signature(kJoin), join);
  add_typed(functions, signature(kRank), rank);
  add_typed(functions, signature(kConcat), concat);
  add_typed(functions, signature(kFind), find);
}

}  // namespace tenon::text
