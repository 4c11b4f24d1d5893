// Integers that are made of positions: masks, position ids, and what a program hashes them to.
// Kernels see them as expressions of loop variables, which must wrap as stored integers do.
#include <span>

#include "body_maker.h"
#include "object/tensor.h"

namespace tenon::random_programs {

using namespace graph;  // NOLINT: this file uses only graph IR

namespace {

Operand scalar(int64_t v) {
  return constant(Tensor::copy_of<int64_t>({}, i64, std::span(&v, 1)));
}

}  // namespace

int64_t BodyMaker::any_integer() {
  static const std::vector<int64_t> kLarge = {
      INT64_MIN,        INT64_MIN + 1,       INT64_MAX,        INT64_MAX - 1,
      int64_t{1} << 62, -(int64_t{1} << 62), int64_t{1} << 40, 6364136223846793005};
  return r_.between(0, 2) == 0 ? r_.pick(kLarge) : r_.between(-8, 8);
}

Operand BodyMaker::positions(const Dim& count) {
  const bool counts_up = r_.between(0, 2) > 0;
  Operand p =
      b_.op("range", {scalar(counts_up ? 0 : any_integer()), scalar(counts_up ? 1 : any_integer())},
            attrs({{"count", Any(count)}}));
  static const std::vector<const char*> kOps = {"add",       "sub",     "mul",    "mod",
                                                "floor_div", "minimum", "maximum"};
  for (int64_t n = r_.between(0, 3); n > 0; --n) {
    const std::string_view op = r_.pick(kOps);
    if (r_.between(0, 5) == 0) {
      p = b_.op(r_.coin() ? "mul" : "add", {p, positions(count)});
      continue;
    }
    if (r_.between(0, 7) == 0) {
      const Operand narrow = b_.op("cast", {p}, attrs({{"dtype", Any(i32)}}));
      p = b_.op("cast", {narrow}, attrs({{"dtype", Any(i64)}}));
    }
    int64_t by = any_integer();
    if (by == 0 && (op == "mod" || op == "floor_div")) by = -4;
    p = b_.op(op, {p, scalar(by)});
  }
  return p;
}

void BodyMaker::use_positions() {
  const Value* v = pick_float(1);
  if (!v) return;
  const Value x = *v;
  const std::vector<Dim> size = dims(x);
  const size_t axis = axis_of(x);
  Operand p = positions(size[axis]);
  // Broadcasts along the axes after it.
  const auto along = [&](const Operand& y) {
    std::vector<Dim> shape(size.size() - axis, Dim(1));
    shape[0] = size[axis];
    return b_.op("reshape", {y}, attrs({{"shape", attr_dims(shape)}}));
  };
  switch (r_.between(0, 2)) {
    case 0: {
      static const std::vector<const char*> kTests = {"less", "less_equal", "equal"};
      Operand by = scalar(any_integer());
      if (r_.coin()) std::swap(p, by);
      Operand mask = b_.op(r_.pick(kTests), {p, by});
      const Operand y = b_.op("where", {along(mask), x.x, number(0)});
      put(y, x);
      const Attrs all = attrs({{"axes", attr_ints({static_cast<int64_t>(axis)})}});
      if (r_.coin()) put(b_.op("reduce_sum", {y}, all), false, x.bound * 8);
      return;
    }
    case 1: {
      const int64_t by = r_.pick<int64_t>({2, 5, 8, -4});
      const Operand small = b_.op("cast", {b_.op("mod", {p, scalar(by)})}, attrs({{"dtype", f32}}));
      return put(b_.op("add", {x.x, along(small)}), x.exact, x.bound + 8);
    }
    default: {
      if (!size[axis].is_const()) return;
      const Operand at = b_.op("mod", {p, scalar(*size[axis].as_const())});
      put(b_.op("gather", {x.x, at}, attrs({{"axis", static_cast<int64_t>(axis)}})), x);
    }
  }
}

}  // namespace tenon::random_programs
