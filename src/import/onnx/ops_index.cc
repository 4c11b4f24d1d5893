// Gathering, scattering, scanning and searching.

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

Operands gather(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", 0), cx.rank(0));
  return {cx.op("gather", {cx.in(0), cx.in(1)}, attrs({{"axis", axis}}))};
}

Operands gather_elements(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", 0), cx.rank(0));
  return {cx.op("gather_elements", {cx.in(0), cx.in(1)}, attrs({{"axis", axis}}))};
}

Operands gather_nd(NodeContext& cx) {
  return {cx.op("gather_nd", {cx.in(0), cx.in(1)},
                attrs({{"batch_dims", cx.attr_int("batch_dims", 0)}}))};
}

String reduction_of(NodeContext& cx) {
  std::string how = cx.attr_string("reduction", "none");
  if (how != "none" && how != "add" && how != "mul" && how != "max" && how != "min") {
    cx.invalid(cat("reduction=", how), "none, add, mul, max or min");
  }
  return how;
}

Operands scatter_elements(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", 0), cx.rank(0));
  return {cx.op("scatter_elements", {cx.in(0), cx.in(1), cx.in(2)},
                attrs({{"axis", axis}, {"reduction", reduction_of(cx)}}))};
}

Operands scatter_nd(NodeContext& cx) {
  return {cx.op("scatter_nd", {cx.in(0), cx.in(1), cx.in(2)},
                attrs({{"reduction", reduction_of(cx)}}))};
}

Operand flattened(NodeContext& cx, const Operand& x) {
  return cx.reshape(x, {product(cx.dims(x))});
}

Operands compress(NodeContext& cx) {
  bool flat = !cx.has_attr("axis");
  int64_t axis = flat ? (cx.ignore("axis"), 0) : cx.axis(cx.attr_int("axis", 0), cx.rank(0));
  Operand x = flat ? flattened(cx, cx.in(0)) : cx.in(0);
  if (cx.dtype(x) != string_elements)
    return {cx.op("compress", {x, cx.in(1)}, attrs({{"axis", axis}}))};
  const Operand places = cx.op("range", {cx.integer(0), cx.integer(1)},
                               attrs({{"count", cx.dims(x)[static_cast<size_t>(axis)]}}));
  return {cx.op("gather", {x, cx.op("compress", {places, cx.in(1)}, attrs({{"axis", 0}}))},
                attrs({{"axis", axis}}))};
}

Operands unique(NodeContext& cx) {
  bool flat = !cx.has_attr("axis");
  int64_t axis = flat ? (cx.ignore("axis"), 0) : cx.axis(cx.attr_int("axis", 0), cx.rank(0));
  const graph::Attrs how =
      attrs({{"axis", axis}, {"flatten", flat}, {"sorted", cx.attr_bool("sorted", true)}});
  if (cx.dtype(0) != string_elements) return cx.b.ops("unique", {cx.in(0)}, how);
  // Of strings, by their ranks; the first of equal ones gives the value.
  const Operand list = flattened(cx, cx.in(0));
  Operands found = cx.b.ops("unique", {cx.reshape(cx.op("text_rank", {list}), cx.dims(0))}, how);
  found[0] = cx.op("gather", {flat ? list : cx.in(0), found[1]}, attrs({{"axis", axis}}));
  return found;
}

Operands nonzero(NodeContext& cx) {
  return {cx.op("nonzero", {cx.in(0)})};
}

Operands topk(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(0));
  Dim k = 0;
  if (cx.version() < 10) {
    k = cx.attr_int("k");
  } else {
    Dims given = cx.elements(cx.in(1), 1);
    if (given.size() != 1) cx.invalid(cat("k of ", given.size(), " elements"), "one");
    k = given[0];
  }
  bool largest = cx.attr_bool("largest", true), sorted = cx.attr_bool("sorted", true);
  return cx.b.ops("topk", {cx.in(0)},
                  attrs({{"k", k}, {"axis", axis}, {"largest", largest}, {"sorted", sorted}}));
}

Operands one_hot(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", -1), cx.rank(0) + 1);
  Dim depth = 0;
  if (auto whole = cx.ints(cx.in(1)); whole && whole->size() == 1) {
    depth = (*whole)[0];
  } else if (auto constant = cx.number(cx.in(1))) {
    depth = cx.to_integer(*constant, "a depth");
  } else {
    Operand size = cx.in(1);
    Dims given = cx.elements(cx.rank(size) == 0 ? size : cx.reshape(size, {}));
    depth = given.at(0);
  }
  Operand indices = cx.cast(cx.in(0), i64);
  return {cx.op("one_hot", {indices, cx.in(2)}, attrs({{"depth", depth}, {"axis", axis}}))};
}

template <const char* Name>
Operands scan_along(NodeContext& cx) {
  bool exclusive = cx.attr_bool("exclusive", false), reverse = cx.attr_bool("reverse", false);
  auto along = [&](int64_t axis) {
    return cx.op(Name, {cx.in(0)},
                 attrs({{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}}));
  };
  auto axis = cx.ints(cx.in(1));
  if (!axis) return {cx.for_axis(cx.in(1), cx.rank(0), cx.axes_below(cx.rank(0)), along)};
  if (axis->size() != 1) cx.invalid(cat("an axis of ", axis->size(), " elements"), "one");
  return {along(cx.axis((*axis)[0], cx.rank(0)))};
}

Operands trilu(NodeContext& cx) {
  Operand k = cx.has(1) ? cx.reshape(cx.in(1), {}) : Operand();
  return {cx.op("trilu", {cx.in(0), k}, attrs({{"upper", cx.attr_bool("upper", true)}}))};
}

Operands reverse_sequence(NodeContext& cx) {
  return {cx.op("reverse_sequence", {cx.in(0), cx.in(1)},
                attrs({{"batch_axis", cx.attr_int("batch_axis", 1)},
                       {"time_axis", cx.attr_int("time_axis", 0)}}))};
}

Operands non_max_suppression(NodeContext& cx) {
  auto scalar = [&](size_t i) { return cx.has(i) ? cx.reshape(cx.in(i), {}) : Operand(); };
  return {cx.op("non_max_suppression", {cx.in(0), cx.in(1), scalar(2), scalar(3), scalar(4)},
                attrs({{"center_point_box", cx.attr_bool("center_point_box", false)}}))};
}

// Writes `update` into a cache along an axis, at one position per batch element.
Operands tensor_scatter(NodeContext& cx) {
  std::string mode = cx.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") cx.invalid(cat("mode=", mode), "linear or circular");
  int64_t rank = cx.rank(0), axis = cx.axis(cx.attr_int("axis", -2), rank);
  if (axis == 0) cx.invalid("axis 0, the batch", "another axis");
  Dims cache = cx.dims(0), update = cx.dims(1);
  Dim length = update[static_cast<size_t>(axis)];
  Operand place = cx.op("range", {cx.integer(0), cx.integer(1)}, attrs({{"count", length}}));
  Dims row(static_cast<size_t>(rank), Dim(1)), column = row;
  row[static_cast<size_t>(axis)] = length;
  column[0] = update[0];
  place = cx.reshape(place, row);
  if (cx.has(2)) place = cx.add(place, cx.reshape(cx.cast(cx.in(2), i64), column));
  if (mode == "circular") {
    place = cx.op("mod", {place, cx.dim_scalar(cache[static_cast<size_t>(axis)])});
  }
  return {cx.op("scatter_elements", {cx.in(0), cx.expand(place, update), cx.in(1)},
                attrs({{"axis", axis}}))};
}

}  // namespace

void register_index(OpTable& t) {
  static constexpr char cumsum[] = "cumsum", cumprod[] = "cumprod";
  t.add("Gather", 1, gather);
  t.add("GatherElements", 11, gather_elements);
  t.add("GatherND", 11, gather_nd);
  t.add("Scatter", 9, scatter_elements);
  t.add("ScatterElements", 11, scatter_elements);
  t.add("ScatterND", 11, scatter_nd);
  t.add("TensorScatter", 24, tensor_scatter);
  t.add("Compress", 9, compress);
  t.add("Unique", 11, unique);
  t.add("NonZero", 9, nonzero);
  t.add("TopK", 1, topk);
  t.add("OneHot", 9, one_hot);
  t.add("CumSum", 11, scan_along<cumsum>);
  t.add("CumProd", 26, scan_along<cumprod>);
  t.add("Trilu", 14, trilu);
  t.add("ReverseSequence", 10, reverse_sequence);
  t.add("NonMaxSuppression", 10, non_max_suppression);
}

}  // namespace tenon::onnx
