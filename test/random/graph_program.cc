#include "graph_program.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include "graph/ir/builder.h"
#include "graph/op/rule.h"
#include "loop/scalar.h"
#include "object/tensor.h"

namespace tenon::random_programs {
namespace {

using namespace graph;  // NOLINT: this file speaks of graph IR only

struct Value {
  Operand x;
  // Computed without rounding, so that steps (floor, comparisons, arg...) may follow.
  bool exact = true;
  double bound = 5;  // of |x|, by and large
};

// A function that bodies may call: of a tensor, or of a count and a tensor where it calls itself,
// with a result of the tensor's type.
struct Helper {
  std::string name;
  TypeRef type;
  bool counts = false;
};

// Builds one function's body, and those of its blocks.
class BodyMaker {
 public:
  BodyMaker(Random& random, Builder& builder, const std::vector<Helper>& helpers)
      : r_(random), b_(builder), helpers_(helpers) {}

  void add(const Operand& x, bool exact, double bound) { values_.push_back({x, exact, bound}); }

  // Adds one operator or construct; does nothing where its choice does not fit.
  void step(int depth) {
    using Maker = void (BodyMaker::*)();
    static constexpr std::pair<int, Maker> kMakers[] = {
        {4, &BodyMaker::smooth},     {3, &BodyMaker::exact_function},
        {6, &BodyMaker::arithmetic}, {2, &BodyMaker::scale},
        {2, &BodyMaker::choose},     {4, &BodyMaker::reduce},
        {2, &BodyMaker::normalise},  {3, &BodyMaker::transpose},
        {2, &BodyMaker::flatten},    {2, &BodyMaker::join_axis},
        {3, &BodyMaker::cut},        {2, &BodyMaker::repeat},
        {2, &BodyMaker::pad},        {2, &BodyMaker::gather},
        {3, &BodyMaker::product},    {2, &BodyMaker::convolve},
        {1, &BodyMaker::scan},       {2, &BodyMaker::integers},
        {2, &BodyMaker::shape_data}, {1, &BodyMaker::search},
        {2, &BodyMaker::scalars}};
    static constexpr std::pair<int, Maker> kConstructs[] = {
        {3, &BodyMaker::branch}, {3, &BodyMaker::loop}, {4, &BodyMaker::call}};
    depth_ = depth;
    const bool nests = depth < 2 && r_.between(0, 4) == 0;
    const auto pick = [&](const auto& makers) {
      int64_t total = 0;
      for (const auto& [weight, maker] : makers) total += weight;
      int64_t at = r_.between(0, total - 1);
      for (const auto& [weight, maker] : makers) {
        if ((at -= weight) < 0) return (this->*maker)();
      }
    };
    nests ? pick(kConstructs) : pick(kMakers);
  }

  // The function's result: up to three of the last values.
  Operand result() {
    std::vector<Operand> fields;
    const int64_t count = r_.between(1, 3);
    for (size_t i = values_.size(); i > 0 && std::ssize(fields) < count; --i) {
      fields.push_back(values_[i - 1].x);
    }
    return fields.size() == 1 ? fields[0] : b_.tuple(fields);
  }

  // A float tensor changed by a few operators that keep its type.
  Operand changed(Operand x) {
    for (int64_t n = r_.between(1, 3); n > 0; --n) x = changed_once(x);
    return x;
  }

 private:
  // ---- choosing ----

  static const TensorType& tensor(const Value& v) { return *type_as<TensorType>(type_of(v.x)); }
  static std::vector<Dim> dims(const Value& v) { return tensor(v).dims.to_vector(); }
  static size_t rank(const Value& v) { return tensor(v).dims.size(); }

  // One of the values that fit, a late one more often; null if none does.
  const Value* pick(const std::function<bool(const Value&)>& fits) {
    std::vector<const Value*> found;
    for (const Value& v : values_) {
      if (fits(v)) found.push_back(&v);
    }
    if (found.empty()) return nullptr;
    const int64_t last = std::ssize(found) - 1;
    return found[static_cast<size_t>(std::max(r_.between(0, last), r_.between(0, last)))];
  }
  static bool is_float(const Value& v) {
    const auto* t = type_as<TensorType>(type_of(v.x));
    return t && t->dims_known && t->dtype == f32;
  }
  const Value* pick_float(size_t least_rank = 0, size_t greatest_rank = 4) {
    return pick([&](const Value& v) {
      return is_float(v) && rank(v) >= least_rank && rank(v) <= greatest_rank;
    });
  }
  const Value* pick_exact(size_t least_rank = 0) {
    return pick([&](const Value& v) { return is_float(v) && v.exact && rank(v) >= least_rank; });
  }
  const Value* pick_scalar() {
    return pick([&](const Value& v) {
      const auto* s = type_as<ScalarType>(type_of(v.x));
      return s && s->dtype == i64;
    });
  }
  size_t axis_of(const Value& v) {
    return static_cast<size_t>(r_.between(0, static_cast<int64_t>(rank(v)) - 1));
  }

  // ---- adding ----

  // Values that have grown are bent back.
  void put(Operand x, bool exact, double bound) {
    if (bound > 1000) {
      x = b_.op("tanh", {b_.op("mul", {x, number(1 / bound)})});
      exact = false;
      bound = 1;
    }
    values_.push_back({x, exact, bound});
  }
  void put(const Operand& x, const Value& like) { put(x, like.exact, like.bound); }

  static Operand number(double v) {
    const auto f = static_cast<float>(v);
    return constant(Tensor::copy_of<float>({}, f32, std::span(&f, 1)));
  }
  Operand weights(const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    std::vector<float> v(static_cast<size_t>(count));
    for (float& f : v) f = static_cast<float>(r_.between(-4, 4)) / 4;
    return constant(Tensor::copy_of<float>(shape, f32, v));
  }
  static Operand integer_list(const std::vector<int64_t>& v) {
    const int64_t count[] = {std::ssize(v)};
    return constant(Tensor::copy_of<int64_t>(count, i64, v));
  }

  // ---- operators ----

  void smooth() {
    const Value* v = pick_float();
    if (!v) return;
    static const std::vector<const char*> kBounded = {"tanh", "sigmoid", "erf",
                                                      "sin",  "cos",     "atan"};
    if (v->bound <= 3 && r_.coin()) return put(b_.op("exp", {v->x}), false, std::exp(v->bound));
    put(b_.op(r_.pick(kBounded), {v->x}), false, 2);
  }

  void exact_function() {
    static const std::vector<const char*> kAny = {"neg", "abs", "relu"};
    static const std::vector<const char*> kSteps = {"floor", "ceil", "round", "sign", "trunc"};
    if (const Value* v = r_.coin() ? pick_exact() : nullptr) {
      return put(b_.op(r_.pick(kSteps), {v->x}), true, v->bound + 1);
    }
    if (const Value* v = pick_float()) put(b_.op(r_.pick(kAny), {v->x}), *v);
  }

  // Two values, one of which is broadcast to the other without a check.
  void arithmetic() {
    const Value* a = pick_float();
    if (!a) return;
    const Value* b = pick([&](const Value& v) { return is_float(v) && fits(dims(v), dims(*a)); });
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
  static bool fits(const std::vector<Dim>& from, const std::vector<Dim>& to) {
    if (from.size() > to.size()) return false;
    for (size_t i = 0; i < from.size(); ++i) {
      const Dim& d = from[from.size() - 1 - i];
      if (!d.is_const(1) && d != to[to.size() - 1 - i]) return false;
    }
    return true;
  }

  void scale() {
    const Value* v = pick_float();
    if (!v) return;
    const double by = static_cast<double>(r_.between(-6, 6)) / 4;
    if (r_.coin()) return put(b_.op("mul", {v->x, number(by)}), false, v->bound * 1.5);
    put(b_.op("add", {v->x, number(by)}), false, v->bound + 1.5);
  }

  // where(x < y, a, b): a comparison of exact values.
  void choose() {
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

  void reduce() {
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
        return put(b_.op("clip", {b_.op("reduce_max", {x.x}, how), number(-1000), number(1000)}),
                   x);
      case 2:
        return put(b_.op("reduce_sum", {x.x}, how), false, x.bound * 16);
      default:
        return put(b_.op("reduce_sum", {b_.op("mul", {x.x, x.x})}, how), false,
                   x.bound * x.bound * 16);
    }
  }

  void normalise() {
    const Value* v = pick_float(1);
    if (!v) return;
    const auto axis = static_cast<int64_t>(axis_of(*v));
    if (r_.coin()) return put(b_.op("softmax", {v->x}, attrs({{"axis", axis}})), false, 1);
    // An epsilon that keeps rows of equal elements from blowing up what rounding left.
    put(b_.op("layer_norm", {v->x}, attrs({{"axis", axis}, {"epsilon", 0.5}})), false, 4);
  }

  void transpose() {
    const Value* v = pick_float(2);
    if (!v) return;
    std::vector<int64_t> perm(rank(*v));
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    for (size_t i = perm.size(); i > 1; --i) {
      std::swap(perm[i - 1], perm[static_cast<size_t>(r_.between(0, static_cast<int64_t>(i) - 1))]);
    }
    put(b_.op("transpose", {v->x}, attrs({{"perm", attr_ints(perm)}})), *v);
  }

  // Two axes become one, or an axis of 1 comes.
  void flatten() {
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

  void join_axis() {
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

  void cut() {
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

  void repeat() {
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

  void pad() {
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

  void gather() {
    const Value* v = pick_float(1);
    if (!v) return;
    const Operand indices =
        integer_list(r_.coin() ? std::vector<int64_t>{0, -1, 0} : std::vector<int64_t>{-1});
    put(b_.op("gather", {v->x, indices}, attrs({{"axis", static_cast<int64_t>(axis_of(*v))}})), *v);
  }

  void product() {
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

  // A convolution or a pooling of one image.
  void convolve() {
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

  void scan() {
    const Value* v = pick_float(1);
    if (!v) return;
    put(b_.op("cumsum", {v->x},
              attrs({{"axis", static_cast<int64_t>(axis_of(*v))},
                     {"exclusive", r_.coin()},
                     {"reverse", r_.coin()}})),
        false, v->bound * 8);
  }

  // Floats to integers and back.
  void integers() {
    const Value* v = pick_exact();
    if (!v) return;
    const Value x = *v;
    const DataType dtype = r_.pick<DataType>({i32, i64, i8, u8});
    Operand q = b_.op("cast", {x.x}, attrs({{"dtype", dtype}}));
    static const std::vector<const char*> kOps = {"add", "mul", "sub", "bitwise_xor", "maximum"};
    q = b_.op(r_.pick(kOps), {q, q});
    put(b_.op("cast", {q}, attrs({{"dtype", f32}})), true, 256);
  }

  // What exporters make of shapes: sizes as data.
  void shape_data() {
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

  // Packed functions whose results' sizes depend on data.
  void search() {
    const Value* v = pick_exact(1);
    if (!v) return;
    const Value x = *v;
    const Operand found = b_.op("nonzero", {x.x});  // [rank, n]
    const Operand sum = b_.op("reduce_sum", {found}, attrs({{"axes", attr_ints({1})}}));
    put(b_.op("cast", {sum}, attrs({{"dtype", f32}})), true, 500);
  }

  void scalars() {
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
    // Beside a tensor a scalar is one of rank 0.
    const Value* x = pick_float();
    if (!x) return;
    const Operand as_float =
        b_.op("cast", {b_.op("add", {y, constant(Tensor::copy_of<int64_t>({}, i64, kOne))})},
              attrs({{"dtype", f32}}));
    put(b_.op("mul", {x->x, as_float}), false, x->bound * 10);
  }
  static constexpr int64_t kOneValue[] = {1};
  static constexpr std::span<const int64_t> kOne{kOneValue};

  // ---- constructs ----

  Operand changed_once(const Operand& x) {
    switch (r_.between(0, 4)) {
      case 0:
        return b_.op("tanh", {x});
      case 1:
        return b_.op("mul", {x, number(static_cast<double>(r_.between(-3, 3)) / 4)});
      case 2: {
        const TypeRef type = without_known_values(type_of(x));
        const Value* w = pick([&](const Value& v) {
          return is_float(v) && v.bound < 10 && same_type(without_known_values(type_of(v.x)), type);
        });
        return b_.op("add", {b_.op("mul", {x, number(0.5)}), w ? w->x : number(0.25)});
      }
      case 3:
        return b_.op("relu", {x});
      default:
        return b_.op("sigmoid", {x});
    }
  }

  // Values made meanwhile are those of a nested block.
  Operand in_block(const std::function<Operand()>& body) {
    const size_t count = values_.size();
    const Operand result = body();
    values_.resize(count);
    return result;
  }

  Operand condition() {
    if (const Value* n = r_.coin() ? pick_scalar() : nullptr) {
      return b_.op("less", {n->x, constant_int(r_.between(-1, 2))});
    }
    const Value* v = pick_exact();
    if (!v) return constant_bool(r_.coin());
    std::vector<int64_t> axes;
    for (size_t i = 0; i < rank(*v); ++i) axes.push_back(static_cast<int64_t>(i));
    const Operand greatest = b_.op("reduce_max", {v->x}, attrs({{"axes", attr_ints(axes)}}));
    return b_.op("less", {number(1), greatest});
  }

  void branch() {
    const Value* v = pick_float();
    if (!v) return;
    const Value x = *v;
    const int depth = depth_;
    const Operand test = condition();
    auto arm = [&] {
      return in_block([&] {
        if (r_.between(0, 3) == 0) return x.x;
        for (int64_t n = r_.between(0, 2); n > 0; --n) step(depth + 1);
        return changed(x.x);
      });
    };
    put(b_.if_(test, arm, arm), false, x.bound + 3);
  }

  void loop() {
    const Value* v = pick_float();
    if (!v) return;
    const Value x = *v;
    const int depth = depth_;
    const Value* n = r_.coin() ? pick_scalar() : nullptr;
    const Operand turns = n ? b_.op("clip", {n->x, constant_int(0), constant_int(3)})
                            : constant_int(r_.between(0, 3));
    const TypeRef type = without_known_values(type_of(x.x));
    const Operand both = b_.loop(
        {"i", "x"}, {scalar_type(i64), type}, {constant_int(0), x.x},
        [&](const std::vector<Operand>& vars) {
          return b_.op("less", {vars[0], turns});
        },
        [&](const std::vector<Operand>& vars) {
          return in_block([&] {
            for (int64_t k = r_.between(0, 1); k > 0; --k) step(depth + 1);
            const Operand next = changed(vars[1]);
            return b_.tuple({b_.op("add", {vars[0], constant_int(1)}), next});
          });
        });
    put(b_.field(both, 1), false, x.bound + 9);
  }

  void call() {
    if (helpers_.empty()) return;
    const Helper& helper = r_.pick(helpers_);
    const Value* v = pick([&](const Value& value) {
      return is_float(value) && same_type(without_known_values(type_of(value.x)), helper.type);
    });
    if (!v) return;
    const Value x = *v;
    const auto call_with = [&](const Operand& argument) {
      if (!helper.counts) return b_.call_global(helper.name, {argument});
      return b_.call_global(helper.name, {constant_int(r_.between(0, 3)), argument});
    };
    Operand y = call_with(x.x);
    if (r_.coin()) y = call_with(b_.op("tanh", {y}));
    put(y, false, x.bound + 4);
  }

  Random& r_;
  Builder& b_;
  const std::vector<Helper>& helpers_;
  std::vector<Value> values_;
  int depth_ = 0;
};

// ---- functions ----

FunctionRef make_helper(Random& random, const Helper& helper, const std::vector<Helper>& before,
                        const GlobalTypes& types) {
  Builder b(types);
  b.at(Span::node(helper.name));
  BodyMaker maker(random, b, before);
  if (!helper.counts) {
    const Operand x = b.param("x", helper.type);
    maker.add(x, true, 5);
    for (int64_t n = random.between(1, 3); n > 0; --n) maker.step(1);
    return b.finish_as(helper.name, maker.changed(x), helper.type);
  }
  // Calls itself, in tail position or not.
  const Operand n = b.param("n", scalar_type(i64)), x = b.param("x", helper.type);
  const bool tail = random.coin();
  const Operand result = b.if_(
      b.op("less", {constant_int(0), n}),
      [&] {
        const Operand less = b.op("sub", {n, constant_int(1)});
        if (tail) return b.call_global(helper.name, {less, maker.changed(x)});
        return b.op("tanh", {b.call_global(helper.name, {less, x})});
      },
      [&] { return x; });
  return b.finish_as(helper.name, result, helper.type);
}

TypeRef signature_of(const Helper& helper) {
  auto type = make<FunctionType>();
  if (helper.counts) type->params.push_back(scalar_type(i64));
  type->params.push_back(helper.type);
  type->result = helper.type;
  return type;
}

graph::Module make_program(Random& random, bool symbolic) {
  std::vector<Dim> sizes;
  for (const char* name : {"n", "m", "k"}) {
    sizes.push_back(symbolic ? Dim::symbol(name)
                             : Dim(random.between(0, 20) == 0 ? 0 : random.between(1, 4)));
  }
  auto shape = [&] {
    std::vector<Dim> dims;
    for (int64_t rank = random.between(1, 3); rank > 0; --rank) {
      dims.push_back(random.between(0, 3) == 0 ? Dim(random.between(1, 3)) : random.pick(sizes));
    }
    return dims;
  };
  std::vector<TypeRef> inputs;
  for (int64_t count = random.between(1, 3); count > 0; --count) {
    inputs.push_back(tensor_type(f32, shape()));
  }
  std::vector<Helper> helpers;
  GlobalTypes types;
  Map<String, FunctionRef> functions;
  for (int64_t count = random.between(0, 2); count > 0; --count) {
    const Helper helper{cat("helper_", helpers.size()), random.pick(inputs), random.coin()};
    types.set(helper.name, signature_of(helper));
    functions.set(helper.name, make_helper(random, helper, helpers, types));
    helpers.push_back(helper);
  }
  Builder b(types);
  b.at(Span::node("main"));
  BodyMaker maker(random, b, helpers);
  for (size_t i = 0; i < inputs.size(); ++i) maker.add(b.param(cat("x", i), inputs[i]), true, 3);
  maker.add(b.param("i", scalar_type(i64)), true, 3);
  for (int64_t count = random.between(5, 20); count > 0; --count) maker.step(0);
  functions.set("main", b.finish("main", maker.result()));
  return make_module(functions);
}

}  // namespace

graph::Module graph_program(uint64_t seed, bool symbolic) {
  Random random(seed * 2 + (symbolic ? 1 : 0));
  for (;;) {
    try {
      return make_program(random, symbolic);
    } catch (const Error& error) {
      // Sizes that are 0, or smaller than a window, are refused by some operators: another try.
      if (error.kind() != ErrorKind::Usage) throw;
    }
  }
}

std::vector<Any> random_inputs(const graph::FunctionExpr& function, uint64_t seed, bool special) {
  Random random(seed * 7 + 5);
  std::map<std::string, int64_t> sizes;
  std::vector<Any> inputs;
  for (const VarRef& param : function.params) {
    if (const auto* scalar = type_as<ScalarType>(param->type)) {
      if (scalar->dtype.is_float())
        inputs.emplace_back(static_cast<double>(random.between(-12, 12)) / 4);
      if (scalar->dtype.is_bool()) inputs.emplace_back(random.coin());
      if (scalar->dtype.is_int()) inputs.emplace_back(random.between(-3, 3));
      continue;
    }
    const auto* type = type_as<TensorType>(param->type);
    TENON_ASSERT(type && type->dims_known, "no random value of type ", to_text(param->type));
    std::vector<int64_t> shape;
    for (const Dim& d : type->dims) {
      if (d.is_const()) {
        shape.push_back(*d.as_const());
        continue;
      }
      auto [it, fresh] = sizes.try_emplace(to_text(d));
      if (fresh) it->second = random.between(0, 20) == 0 ? 0 : random.between(1, 4);
      shape.push_back(it->second);
    }
    Tensor t = Tensor::empty(shape, type->dtype);
    for (int64_t k = 0; k < t.count(); ++k) {
      double v = static_cast<double>(random.between(-12, 12)) / 4;
      if (special && random.between(0, 5) == 0) v = random.coin() ? std::nan("") : -0.0;
      const bool is_float = type->dtype.is_float();
      loop::scalar_store(
          type->dtype, t.data_as<char>() + k * type->dtype.bytes(),
          is_float ? loop::float_bits(v) : wrap_to(type->dtype, random.between(-3, 3)));
    }
    inputs.emplace_back(t);
  }
  return inputs;
}

}  // namespace tenon::random_programs
