#include "import/onnx/key_table.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tenon::onnx {

using graph::attrs;

Operand List::constant(NodeContext& cx, const std::vector<size_t>& places) const {
  const Ints shape = {static_cast<int64_t>(places.size())};
  if (dtype == string_elements) {
    std::vector<std::string> picked;
    for (size_t i : places) picked.push_back(texts[i]);
    return cx.strings_tensor(picked);
  }
  if (dtype.is_float()) {
    Numbers picked;
    for (size_t i : places) picked.push_back(floats[i]);
    return graph::constant(make_tensor(dtype, shape, picked));
  }
  Ints picked;
  for (size_t i : places) picked.push_back(ints[i]);
  return cx.cast(cx.ints_tensor(picked), dtype);
}

namespace {

// The places of keys in increasing order, without NaN; of each key once.
template <class T>
std::vector<size_t> sorted_keys(NodeContext& cx, const std::vector<T>& keys, const List& values) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return keys[i] != keys[i]; });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return keys[i] < keys[j]; });
  auto same_value = [&](size_t i, size_t j) {
    if (values.dtype == string_elements) return values.texts[i] == values.texts[j];
    return values.dtype.is_float() ? values.floats[i] == values.floats[j]
                                   : values.ints[i] == values.ints[j];
  };
  const auto again = std::unique(order.begin(), order.end(), [&](size_t i, size_t j) {
    if (keys[i] != keys[j]) return false;
    // ONNX takes the last value, ONNX Runtime the first.
    if (!same_value(i, j))
      cx.unsupported(cat("two values for the key ", keys[i], " not implemented"));
    return true;
  });
  order.erase(again, order.end());
  return order;
}

// The values of a sorted table of keys, found by halving it, `otherwise` for other elements.
Operand looked_up(NodeContext& cx, const Operand& x, const List& keys, const List& values,
                  std::vector<size_t> order, const Operand& otherwise) {
  if (order.empty()) return cx.expand(otherwise, cx.dims(x));
  order.resize(std::bit_ceil(order.size()), order.back());
  const Operand key = keys.constant(cx, order), value = values.constant(cx, order);
  auto at = [&](const Operand& list, const Operand& place) {
    return cx.op("gather", {list, place}, attrs({{"axis", 0}}));
  };
  Operand place = cx.full(i64, 0, cx.dims(x));
  for (size_t half = order.size() / 2; half > 0; half /= 2) {
    const Operand next = cx.add(place, cx.integer(static_cast<int64_t>(half)));
    place = cx.op("where", {cx.op("less_equal", {at(key, next), x}), next, place});
  }
  return cx.op("where", {cx.op("equal", {at(key, place), x}), at(value, place), otherwise});
}

// The same for keys that are strings.
Operand looked_up_text(NodeContext& cx, const Operand& x, const List& keys, const List& values,
                       const Operand& otherwise) {
  const std::vector<size_t> order = sorted_keys(cx, keys.texts, values);
  if (order.empty()) return cx.expand(otherwise, cx.dims(x));
  const Operand place = cx.op("text_find", {x, keys.constant(cx, order)});
  const Operand known = cx.op("less_equal", {cx.integer(0), place});
  const Operand index = cx.op("maximum", {place, cx.integer(0)});
  const Operand value = cx.op("gather", {values.constant(cx, order), index}, attrs({{"axis", 0}}));
  return cx.op("where", {known, value, otherwise});
}

}  // namespace

Operand encoded(NodeContext& cx, const Operand& x, const List& keys, const List& values,
                const Operand& otherwise) {
  if (cx.dtype(x) != keys.dtype)
    cx.invalid(cat("X of ", to_text(cx.dtype(x)), " and keys of ", to_text(keys.dtype)),
               "the same type");
  if (keys.dtype == string_elements) return looked_up_text(cx, x, keys, values, otherwise);
  if (keys.dtype.is_float())
    return looked_up(cx, x, keys, values, sorted_keys(cx, keys.floats, values), otherwise);
  return looked_up(cx, x, keys, values, sorted_keys(cx, keys.ints, values), otherwise);
}

}  // namespace tenon::onnx
