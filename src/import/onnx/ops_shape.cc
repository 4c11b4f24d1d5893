// Operators on shapes and the arrangement of elements.

#include <algorithm>

#include "import/onnx/node_context.h"

namespace tenon::onnx {

namespace {

using graph::attr_dims;
using graph::attrs;
using graph::CheckKind;

Operands shape(NodeContext& cx) {
  int64_t rank = cx.rank(0);
  auto bound = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  int64_t start = bound(cx.attr_int("start", 0)), end = bound(cx.attr_int("end", rank));
  if (start >= end) return {cx.ints_tensor({})};
  return {cx.op("shape_of", {cx.in(0)}, attrs({{"start", start}, {"end", end}}))};
}

Operands size(NodeContext& cx) {
  return {cx.op("size_of", {cx.in(0)})};
}

// Resolves 0 (copy, unless `allowzero`) and -1 (the rest) in a shape that is known as expressions.
// A symbolic entry is taken as a size: it is checked not to be negative, and 0 at run time means 0.
Dims resolve(NodeContext& cx, const Dims& from, const Dims& wanted, bool allowzero) {
  Dims out;
  std::optional<size_t> rest;
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto c = wanted[i].as_const();
    if (c && *c == 0 && !allowzero) {
      if (i >= from.size()) {
        cx.invalid(cat("a 0 at ", i, " of the shape, to keep that size"),
                   cat("positions below ", from.size(), ", the operand's rank"));
      };
      out.push_back(from[i]);
    } else if (c && *c == -1) {
      if (rest) cx.invalid("two -1 in the shape", "one at most");
      rest = i;
      out.push_back(1);
    } else {
      if (c && *c < 0) cx.invalid(cat("a size of ", *c), "a size, or -1 for the rest");
      cx.b.check(CheckKind::kLessEqual, 0, wanted[i], "reshape: a size below 0");
      out.push_back(wanted[i]);
    }
  }
  if (rest) {
    Dims others = out;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(*rest));
    bool zero =
        std::any_of(others.begin(), others.end(), [](const Dim& d) { return d.is_const(0); });
    if (zero)
      cx.invalid("both -1 and 0 in the shape, with allowzero", "sizes that determine the rest");
    out[*rest] = divide(from, others);
  }
  return out;
}

Operands reshape(NodeContext& cx) {
  cx.ignore("consumed_inputs");
  bool allowzero = cx.attr_bool("allowzero", false);
  Operand x = cx.in(0);
  if (cx.version() < 5) {
    Ints stated = cx.attr_ints("shape");
    return {cx.reshape(x, resolve(cx, cx.dims(x), Dims(stated.begin(), stated.end()), false))};
  }
  Operand wanted = cx.in(1);
  std::optional<Dims> values = cx.values(wanted);
  if (!values) {
    Operand resolved =
        cx.op("reshape_dims", {wanted, cx.op("shape_of", {x})}, attrs({{"allowzero", allowzero}}));
    values = cx.elements(resolved);
    return {cx.reshape(x, *values)};
  }
  return {cx.reshape(x, resolve(cx, cx.dims(x), *values, allowzero))};
}

Operands flatten(NodeContext& cx) {
  Dims dims = cx.dims(0);
  int64_t rank = cx.rank(0), axis = cx.attr_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) cx.invalid(cat("axis ", axis), cat("0 to ", rank));
  Dims head(dims.begin(), dims.begin() + axis), tail(dims.begin() + axis, dims.end());
  return {cx.reshape(cx.in(0), {product(head), product(tail)})};
}

// The axes, which are an attribute before opset 13 and an operand since.
std::optional<Ints> axes_of(NodeContext& cx) {
  if (cx.has(1)) return cx.const_ints(1, "axes");
  if (cx.has_attr("axes")) return cx.attr_ints("axes");
  return std::nullopt;
}

// Whether the node has one axis that is computed at run time.
bool runtime_axis(NodeContext& cx) {
  if (!cx.has(1) || cx.ints(cx.in(1))) return false;
  Dims shape = cx.dims(1);
  return shape.empty() || (shape.size() == 1 && shape[0].is_const(1));
}

// How many axes are computed at run time, which the rank of the result depends on.
std::optional<size_t> runtime_axes(NodeContext& cx) {
  if (!cx.has(1) || cx.constant_of(cx.in(1)) || cx.ints(cx.in(1))) return std::nullopt;
  Dims shape = cx.dims(1);
  if (shape.size() != 1) cx.invalid(cat("axes of rank ", shape.size()), "a list");
  auto count = shape[0].as_const();
  if (!count) cx.unsupported("a number of axes known only at run time not implemented");
  return static_cast<size_t>(*count);
}

// The axes of size 1. Sizes that are only known at run time are checked not to be 1, because the
// rank depends on them.
Ints axes_of_size_one(NodeContext& cx) {
  Ints out;
  Dims sizes = cx.dims(0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Dim& n = sizes[i];
    if (n.is_const(1)) {
      out.push_back(static_cast<int64_t>(i));
    } else if (!proves_differ(n, 1)) {
      cx.b.check(
          CheckKind::kLessEqual, 1, max(n - 1, 1 - n),
          cat("squeeze without axes keeps axis ", i, " of size ", to_text(n),
              ", which is 1 here; compile with fixed sizes (--dim or --shape) to remove it"));
    }
  }
  return out;
}

Operands squeeze(NodeContext& cx) {
  if (runtime_axis(cx)) {
    Ints ones;
    Dims sizes = cx.dims(0);
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!proves_differ(sizes[i], 1)) ones.push_back(static_cast<int64_t>(i));
    }
    return {cx.for_axis(cx.in(1), cx.rank(0), ones,
                        [&](int64_t a) { return cx.squeeze(cx.in(0), {a}); })};
  }
  if (auto count = runtime_axes(cx)) {
    return {cx.remove_masked(cx.in(0), cx.axes_mask(cx.in(1), cx.rank(0)), *count)};
  }
  auto stated = axes_of(cx);
  return {cx.squeeze(cx.in(0), stated ? cx.axes(*stated, cx.rank(0)) : axes_of_size_one(cx))};
}

Operands unsqueeze(NodeContext& cx) {
  if (runtime_axis(cx)) {
    return {cx.for_axis(cx.in(1), cx.rank(0) + 1, cx.axes_below(cx.rank(0) + 1),
                        [&](int64_t a) { return cx.unsqueeze(cx.in(0), {a}); })};
  }
  if (auto count = runtime_axes(cx)) {
    const int64_t rank = cx.rank(0) + static_cast<int64_t>(*count);
    if (rank > kMaxRank) cx.invalid(cat("a result of rank ", rank), cat("at most ", kMaxRank));
    return {cx.insert_masked(cx.in(0), cx.axes_mask(cx.in(1), rank), *count)};
  }
  auto stated = axes_of(cx);
  if (!stated) cx.invalid("no axes", "the axes to insert");
  int64_t rank = cx.rank(0) + static_cast<int64_t>(stated->size());
  if (rank > kMaxRank) cx.invalid(cat("a result of rank ", rank), cat("at most ", kMaxRank));
  return {cx.unsqueeze(cx.in(0), cx.axes(*stated, rank))};
}

Operands transpose(NodeContext& cx) {
  int64_t rank = cx.rank(0);
  Ints perm = cx.attr_ints("perm");
  if (!cx.has_attr("perm")) {
    for (int64_t i = rank - 1; i >= 0; --i) perm.push_back(i);
  }
  perm = cx.axes(perm, rank);
  if (static_cast<int64_t>(perm.size()) != rank)
    cx.invalid(cat("perm has ", perm.size(), " entries"), cat(rank, ", one for each axis"));
  return {cx.transpose(cx.in(0), perm)};
}

Operands concat(NodeContext& cx) {
  if (cx.count() == 0) cx.invalid("no operands", "one or more");
  int64_t axis = cx.version() >= 4 ? cx.attr_int("axis") : cx.attr_int("axis", 1);
  Operands parts;
  for (size_t i = 0; i < cx.count(); ++i) parts.push_back(cx.in(i));
  return {cx.concat(parts, cx.axis(axis, cx.rank(0)))};
}

Operands split(NodeContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis", 0), cx.rank(0));
  Dim whole = cx.dims(0)[static_cast<size_t>(axis)];
  Dims sizes;
  if (cx.has(1)) {
    sizes = cx.elements(cx.in(1), cx.outputs());
  } else if (cx.has_attr("split")) {
    Ints stated = cx.attr_ints("split");
    sizes.assign(stated.begin(), stated.end());
  } else {
    int64_t parts = cx.attr_int("num_outputs", static_cast<int64_t>(cx.outputs()));
    if (parts <= 0 || parts > 100000) cx.invalid(cat("num_outputs=", parts), "1 to 100000");
    // Parts of equal size, except that the last may be smaller.
    Dim each = cx.version() >= 18 ? ceildiv(whole, parts) : floordiv(whole, parts);
    sizes.assign(static_cast<size_t>(parts - 1), each);
    sizes.push_back(whole - each * (parts - 1));
  }
  if (sizes.size() < cx.outputs())
    cx.invalid(cat(sizes.size(), " sizes"), cat(cx.outputs(), ", one for each output"));
  return cx.b.ops("split", {cx.in(0)}, attrs({{"axis", axis}, {"sizes", attr_dims(sizes)}}));
}

Operands expand(NodeContext& cx) {
  return {cx.op("expand", {cx.in(0)}, attrs({{"shape", attr_dims(cx.elements(cx.in(1)))}}))};
}

Operands tile(NodeContext& cx) {
  Dims repeats;
  if (cx.version() < 6) {  // one axis, given as an operand
    Ints axis = cx.const_ints(2, "axis");
    repeats.assign(static_cast<size_t>(cx.rank(0)), Dim(1));
    if (axis.size() != 1) cx.invalid(cat("an axis of ", axis.size(), " elements"), "one");
    repeats[static_cast<size_t>(cx.axis(axis[0], cx.rank(0)))] = cx.elements(cx.in(1)).at(0);
  } else {
    repeats = cx.elements(cx.in(1), static_cast<size_t>(cx.rank(0)));
  }
  return {cx.op("tile", {cx.in(0)}, attrs({{"repeats", attr_dims(repeats)}}))};
}

int64_t block_of(NodeContext& cx) {
  int64_t block = cx.attr_int("blocksize");
  if (block <= 0 || block > INT32_MAX) cx.invalid(cat("blocksize=", block), "1 or more");
  if (cx.rank(0) != 4) cx.invalid(cat("an operand of rank ", cx.rank(0)), "4");
  return block;
}

Operands depth_to_space(NodeContext& cx) {
  int64_t s = block_of(cx);
  std::string mode = cx.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") cx.invalid(cat("mode=", mode), "DCR or CRD");
  Dims d = cx.dims(0);
  Dim c = divide({d[1]}, {s, s});
  bool dcr = mode == "DCR";
  Operand x = dcr ? cx.reshape(cx.in(0), {d[0], s, s, c, d[2], d[3]})
                  : cx.reshape(cx.in(0), {d[0], c, s, s, d[2], d[3]});
  x = cx.transpose(x, dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  return {cx.reshape(x, {d[0], c, d[2] * s, d[3] * s})};
}

Operands space_to_depth(NodeContext& cx) {
  int64_t s = block_of(cx);
  std::string mode = cx.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") cx.invalid(cat("mode=", mode), "DCR or CRD");
  Dims d = cx.dims(0);
  Dim h = divide({d[2]}, {s}), w = divide({d[3]}, {s});
  Operand x = cx.reshape(cx.in(0), {d[0], d[1], h, s, w, s});
  x = cx.transpose(x, mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  return {cx.reshape(x, {d[0], d[1] * s * s, h, w})};
}

}  // namespace

void register_shape(OpTable& t) {
  t.add("Shape", 1, shape);
  t.add("Size", 1, size);
  t.add("Reshape", 1, reshape);
  t.add("Flatten", 1, flatten);
  t.add("Squeeze", 1, squeeze);
  t.add("Unsqueeze", 1, unsqueeze);
  t.add("Transpose", 1, transpose);
  t.add("Concat", 1, concat);
  t.add("Split", 1, split);
  t.add("Expand", 8, expand);
  t.add("Tile", 1, tile);
  t.add("DepthToSpace", 1, depth_to_space);
  t.add("SpaceToDepth", 1, space_to_depth);
}

}  // namespace tenon::onnx
