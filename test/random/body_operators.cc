// Functions that add one operator each, on values that fit it.
#include <algorithm>
#include <cmath>
#include <span>

#include "body_maker.h"
#include "object/tensor.h"

namespace tenon::random_programs {

using namespace graph;  // NOLINT: this file uses only graph IR

namespace {

constexpr int64_t kOneValue[] = {1};
constexpr std::span<const int64_t> kOne{kOneValue};

// Whether sizes `from` broadcast to `to` without a check.
bool broadcasts(const std::vector<Dim>& from, const std::vector<Dim>& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    const Dim& d = from[from.size() - 1 - i];
    if (!d.is_const(1) && d != to[to.size() - 1 - i]) return false;
  }
  return true;
}

}  // namespace

void BodyMaker::smooth() {
  const Value* v = pick_float();
  if (!v) return;
  static const std::vector<const char*> kBounded = {"tanh", "sigmoid", "erf", "sin", "cos", "atan"};
  if (v->bound <= 3 && r_.coin()) return put(b_.op("exp", {v->x}), false, std::exp(v->bound));
  put(b_.op(r_.pick(kBounded), {v->x}), false, 2);
}

void BodyMaker::exact_function() {
  static const std::vector<const char*> kAny = {"neg", "abs", "relu"};
  static const std::vector<const char*> kSteps = {"floor", "ceil", "round", "sign", "trunc"};
  if (const Value* v = r_.coin() ? pick_exact() : nullptr) {
    return put(b_.op(r_.pick(kSteps), {v->x}), true, v->bound + 1);
  }
  if (const Value* v = pick_float()) put(b_.op(r_.pick(kAny), {v->x}), *v);
}

void BodyMaker::arithmetic() {
  const Value* a = pick_float();
  if (!a) return;
  const Value* b =
      pick([&](const Value& v) { return is_float(v) && broadcasts(dims(v), dims(*a)); });
  if (!b) return;
  const Value x = *a, y = *b;
  const bool swap = r_.coin();
  auto op = [&](const char* name) {
    return swap ? b_.op(name, {y.x, x.x}) : b_.op(name, {x.x, y.x});
  };
  switch (r_.between(0, 5)) {
    case 0:
      return put(op("mul"), false, x.bound * y.bound);
    case 1:
      return put(op("sub"), false, x.bound + y.bound);
    case 2:
      return put(op("maximum"), x.exact && y.exact, std::max(x.bound, y.bound));
    case 3:
      return put(op("minimum"), x.exact && y.exact, std::max(x.bound, y.bound));
    case 4:  // a divisor that is at least 1
      return put(b_.op("div", {x.x, b_.op("add", {b_.op("abs", {y.x}), number(1)})}), false,
                 x.bound);
    default:
      return put(op("add"), false, x.bound + y.bound);
  }
}

void BodyMaker::scale() {
  const Value* v = pick_float();
  if (!v) return;
  const double by = static_cast<double>(r_.between(-6, 6)) / 4;
  if (r_.coin()) return put(b_.op("mul", {v->x, number(by)}), false, v->bound * 1.5);
  put(b_.op("add", {v->x, number(by)}), false, v->bound + 1.5);
}

void BodyMaker::choose() {
  const Value* x = pick_exact();
  if (!x) return;
  auto same = [&](const Value& v) { return is_float(v) && dims(v) == dims(*x); };
  const Value *y = pick([&](const Value&v) { return same(v) && v.exact; }), *a = pick(same),
              *b = pick(same);
  if (!y || !a || !b) return;
  static const std::vector<const char*> kTests = {"less", "less_equal", "greater", "equal"};
  const Value p = *a, q = *b;
  Operand test = b_.op(r_.pick(kTests), {x->x, y->x});
  if (r_.coin()) test = b_.op("logical_not", {test});
  put(b_.op("where", {test, p.x, q.x}), p.exact && q.exact, std::max(p.bound, q.bound));
}

void BodyMaker::reduce() {
  const Value* v = pick_float(1);
  if (!v) return;
  const Value x = *v;
  std::vector<int64_t> axes = {static_cast<int64_t>(axis_of(x))};
  if (rank(x) > 1 && r_.coin()) {
    const int64_t other = (axes[0] + 1) % static_cast<int64_t>(rank(x));
    axes.push_back(other);
  }
  const Attrs how = attrs({{"axes", attr_ints(axes)}, {"keepdims", r_.coin()}});
  switch (r_.between(0, 3)) {
    case 0:
      return put(b_.op("reduce_mean", {x.x}, how), false, x.bound);
    case 1:  // of nothing it would be infinite
      return put(b_.op("clip", {b_.op("reduce_max", {x.x}, how), number(-1000), number(1000)}), x);
    case 2:
      return put(b_.op("reduce_sum", {x.x}, how), false, x.bound * 16);
    default:
      return put(b_.op("reduce_sum", {b_.op("mul", {x.x, x.x})}, how), false,
                 x.bound * x.bound * 16);
  }
}

void BodyMaker::normalise() {
  const Value* v = pick_float(1);
  if (!v) return;
  const auto axis = static_cast<int64_t>(axis_of(*v));
  if (r_.coin()) return put(b_.op("softmax", {v->x}, attrs({{"axis", axis}})), false, 1);
  // The epsilon is large, so that rounding errors in rows of equal elements are not amplified.
  put(b_.op("layer_norm", {v->x}, attrs({{"axis", axis}, {"epsilon", 0.5}})), false, 4);
}

void BodyMaker::transpose() {
  const Value* v = pick_float(2);
  if (!v) return;
  std::vector<int64_t> perm(rank(*v));
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  for (size_t i = perm.size(); i > 1; --i) {
    std::swap(perm[i - 1], perm[static_cast<size_t>(r_.between(0, static_cast<int64_t>(i) - 1))]);
  }
  put(b_.op("transpose", {v->x}, attrs({{"perm", attr_ints(perm)}})), *v);
}

void BodyMaker::flatten() {
  const Value* v = pick_float(1);
  if (!v) return;
  std::vector<Dim> shape = dims(*v);
  if (shape.size() > 1 && r_.coin()) {
    const auto at = static_cast<std::ptrdiff_t>(r_.between(0, std::ssize(shape) - 2));
    shape[static_cast<size_t>(at)] =
        shape[static_cast<size_t>(at)] * shape[static_cast<size_t>(at) + 1];
    shape.erase(shape.begin() + at + 1);
  } else if (shape.size() < 4) {
    shape.insert(shape.begin() + r_.between(0, std::ssize(shape)), Dim(1));
  }
  put(b_.op("reshape", {v->x}, attrs({{"shape", attr_dims(shape)}})), *v);
}

void BodyMaker::join_axis() {
  const Value* v = pick_float(1);
  if (!v) return;
  const Value x = *v;
  const size_t axis = axis_of(x);
  const Value* w = pick([&](const Value& other) {
    if (!is_float(other) || rank(other) != rank(x)) return false;
    for (size_t i = 0; i < rank(x); ++i) {
      if (i != axis && dims(other)[i] != dims(x)[i]) return false;
    }
    return true;
  });
  const Value y = *w;  // x itself fits
  std::vector<Operand> parts = {x.x, y.x};
  if (r_.between(0, 3) == 0) parts.push_back(x.x);
  put(b_.op("concat", parts, attrs({{"axis", static_cast<int64_t>(axis)}})), x.exact && y.exact,
      std::max(x.bound, y.bound));
}

void BodyMaker::cut() {
  const Value* v = pick_float(1);
  if (!v) return;
  const Value x = *v;
  const size_t axis = axis_of(x);
  std::vector<Dim> starts(rank(x), Dim(0)), sizes = dims(x);
  if (sizes[axis].is_const(0)) return;
  if (r_.between(0, 2) == 0) {
    const auto parts = b_.ops("split", {x.x},
                              attrs({{"axis", static_cast<int64_t>(axis)},
                                     {"sizes", attr_dims({Dim(1), dims(x)[axis] - 1})}}));
    for (const Operand& part : parts) put(part, x);
    return;
  }
  std::vector<int64_t> steps(rank(x), 1);
  if (r_.coin()) {
    sizes[axis] = Dim(1);
  } else {  // in reverse
    starts[axis] = sizes[axis] - 1;
    steps[axis] = -1;
  }
  put(b_.op("slice", {x.x},
            attrs({{"starts", attr_dims(starts)},
                   {"sizes", attr_dims(sizes)},
                   {"steps", attr_ints(steps)}})),
      x);
}

void BodyMaker::repeat() {
  const Value* v = pick_float(1, 3);
  if (!v) return;
  std::vector<Dim> sizes = dims(*v);
  if (r_.coin()) {
    sizes.insert(sizes.begin(), Dim(2));
    return put(b_.op("expand", {v->x}, attrs({{"shape", attr_dims(sizes)}})), *v);
  }
  std::vector<Dim> repeats(rank(*v), Dim(1));
  repeats[axis_of(*v)] = Dim(2);
  put(b_.op("tile", {v->x}, attrs({{"repeats", attr_dims(repeats)}})), *v);
}

void BodyMaker::pad() {
  const Value* v = pick_float(1);
  if (!v) return;
  std::vector<Dim> before(rank(*v), Dim(0)), after = before;
  before[axis_of(*v)] = Dim(1);
  after[axis_of(*v)] = Dim(r_.between(0, 2));
  const char* mode = r_.coin() ? "constant" : "edge";
  put(b_.op("pad", {v->x},
            attrs({{"before", attr_dims(before)},
                   {"after", attr_dims(after)},
                   {"mode", String(mode)}})),
      *v);
}

void BodyMaker::gather() {
  const Value* v = pick_float(1);
  if (!v) return;
  const Operand indices =
      integer_list(r_.coin() ? std::vector<int64_t>{0, -1, 0} : std::vector<int64_t>{-1});
  put(b_.op("gather", {v->x, indices}, attrs({{"axis", static_cast<int64_t>(axis_of(*v))}})), *v);
}

void BodyMaker::product() {
  const Value* v = pick_float(2, 3);
  if (!v) return;
  const Value x = *v;
  const Dim inner = dims(x).back();
  if (inner.is_const() && r_.coin()) {
    return put(b_.op("matmul", {x.x, weights({*inner.as_const(), r_.between(1, 5)})}), false,
               x.bound * 8);
  }
  std::vector<int64_t> perm;
  for (size_t i = 0; i < rank(x); ++i) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const Operand t = b_.op("transpose", {x.x}, attrs({{"perm", attr_ints(perm)}}));
  put(b_.op("matmul", {x.x, t}), false, x.bound * x.bound * 8);
}

void BodyMaker::convolve() {
  const Value* v = pick([&](const Value& value) {
    return is_float(value) && rank(value) == 3 && dims(value)[0].is_const() &&
           *dims(value)[0].as_const() > 0;
  });
  if (!v) return;
  const Value x = *v;
  std::vector<Dim> shape = dims(x);
  const int64_t channels = *shape[0].as_const();
  shape.insert(shape.begin(), Dim(1));
  const Operand image = b_.op("reshape", {x.x}, attrs({{"shape", attr_dims(shape)}}));
  const Any pads = attr_dims({1, 1, 1, 1});
  if (r_.between(0, 2) == 0) {
    const char* name = r_.coin() ? "max_pool" : "avg_pool";
    return put(b_.op(name, {image}, attrs({{"kernel", attr_ints({3, 3})}, {"pads", pads}})),
               name[0] == 'm' && x.exact, x.bound);
  }
  const int64_t out = r_.between(1, 3);
  const bool wide = r_.coin();
  Operand y = wide ? b_.op("conv", {image, weights({out, channels, 3, 3}), weights({out})},
                           attrs({{"pads", pads}}))
                   : b_.op("conv", {image, weights({out, channels, 1, 1}), Operand()});
  if (r_.coin()) {
    y = b_.op("batch_norm",
              {y, weights({out}), weights({out}), weights({out}), b_.op("abs", {weights({out})})},
              attrs({{"epsilon", 1.0}}));
  }
  if (r_.coin()) y = b_.op("relu", {y});
  put(y, false, x.bound * static_cast<double>(wide ? 9 * channels : channels) + 2);
}

void BodyMaker::scan() {
  const Value* v = pick_float(1);
  if (!v) return;
  put(b_.op("cumsum", {v->x},
            attrs({{"axis", static_cast<int64_t>(axis_of(*v))},
                   {"exclusive", r_.coin()},
                   {"reverse", r_.coin()}})),
      false, v->bound * 8);
}

void BodyMaker::integers() {
  const Value* v = pick_exact();
  if (!v) return;
  const Value x = *v;
  const DataType dtype = r_.pick<DataType>({i32, i64, i8, u8});
  Operand q = b_.op("cast", {x.x}, attrs({{"dtype", dtype}}));
  static const std::vector<const char*> kOps = {"add", "mul", "sub", "bitwise_xor", "maximum"};
  q = b_.op(r_.pick(kOps), {q, q});
  put(b_.op("cast", {q}, attrs({{"dtype", f32}})), true, 256);
}

void BodyMaker::shape_data() {
  const Value* v = pick_float(1);
  if (!v) return;
  const Value x = *v;
  const Operand shape = b_.op("shape_of", {x.x});
  Operand size = b_.op("gather", {shape, integer_list({static_cast<int64_t>(axis_of(x))})});
  if (r_.coin()) size = b_.op("mul", {size, integer_list({2})});
  const Operand share = b_.op("cast", {size}, attrs({{"dtype", f32}}));
  put(b_.op("add", {x.x, b_.op("reduce_sum", {share}, attrs({{"axes", attr_ints({0})}}))}), false,
      x.bound + 16);
}

void BodyMaker::search() {
  const Value* v = pick_exact(1);
  if (!v) return;
  const Value x = *v;
  const Operand found = b_.op("nonzero", {x.x});  // [rank, n]
  const Operand sum = b_.op("reduce_sum", {found}, attrs({{"axes", attr_ints({1})}}));
  put(b_.op("cast", {sum}, attrs({{"dtype", f32}})), true, 500);
}

void BodyMaker::scalars() {
  const Value* v = pick_scalar();
  if (!v) return;
  const Value n = *v;
  static const std::vector<const char*> kOps = {"add",     "sub",         "mul",        "minimum",
                                                "maximum", "bitwise_and", "shift_right"};
  const Value* w = pick_scalar();
  const Operand by = r_.coin() ? w->x : constant_int(r_.between(-3, 3));
  Operand y = b_.op(r_.pick(kOps), {n.x, by});
  if (r_.between(0, 2) == 0) y = b_.op("abs", {y});
  y = b_.op("clip", {y, constant_int(-9), constant_int(9)});
  values_.push_back({y, true, 9});
  if (r_.coin()) return;
  // With a tensor operand, a scalar counts as a tensor of rank 0.
  const Value* x = pick_float();
  if (!x) return;
  const Operand as_float =
      b_.op("cast", {b_.op("add", {y, constant(Tensor::copy_of<int64_t>({}, i64, kOne))})},
            attrs({{"dtype", f32}}));
  put(b_.op("mul", {x->x, as_float}), false, x->bound * 10);
}

}  // namespace tenon::random_programs
