#include "body_maker.h"

#include <algorithm>
#include <span>

#include "object/tensor.h"
#include "weighted.h"

namespace tenon::random_programs {

using namespace graph;  // NOLINT: this file uses only graph IR

void BodyMaker::step(int depth) {
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
      {2, &BodyMaker::scalars},    {3, &BodyMaker::use_positions}};
  static constexpr std::pair<int, Maker> kConstructs[] = {
      {3, &BodyMaker::branch}, {3, &BodyMaker::loop}, {4, &BodyMaker::call}};
  depth_ = depth;
  const bool nests = depth < 2 && r_.between(0, 4) == 0;
  (this->*(nests ? pick_weighted(r_, kConstructs) : pick_weighted(r_, kMakers)))();
}

Operand BodyMaker::result() {
  std::vector<Operand> fields;
  const int64_t count = r_.between(1, 3);
  for (size_t i = values_.size(); i > 0 && std::ssize(fields) < count; --i) {
    fields.push_back(values_[i - 1].x);
  }
  return fields.size() == 1 ? fields[0] : b_.tuple(fields);
}

Operand BodyMaker::changed(Operand x) {
  for (int64_t n = r_.between(1, 3); n > 0; --n) x = changed_once(x);
  return x;
}

const Value* BodyMaker::pick(const std::function<bool(const Value&)>& fits) {
  std::vector<const Value*> found;
  for (const Value& v : values_) {
    if (fits(v)) found.push_back(&v);
  }
  if (found.empty()) return nullptr;
  const int64_t last = std::ssize(found) - 1;
  return found[static_cast<size_t>(std::max(r_.between(0, last), r_.between(0, last)))];
}

bool BodyMaker::is_float(const Value& v) {
  const auto* t = type_as<TensorType>(type_of(v.x));
  return t && t->dims_known && t->dtype == f32;
}

const Value* BodyMaker::pick_float(size_t least_rank, size_t greatest_rank) {
  return pick([&](const Value& v) {
    return is_float(v) && rank(v) >= least_rank && rank(v) <= greatest_rank;
  });
}

const Value* BodyMaker::pick_exact(size_t least_rank) {
  return pick([&](const Value& v) { return is_float(v) && v.exact && rank(v) >= least_rank; });
}

const Value* BodyMaker::pick_scalar() {
  return pick([&](const Value& v) {
    const auto* s = type_as<ScalarType>(type_of(v.x));
    return s && s->dtype == i64;
  });
}

size_t BodyMaker::axis_of(const Value& v) {
  return static_cast<size_t>(r_.between(0, static_cast<int64_t>(rank(v)) - 1));
}

void BodyMaker::put(Operand x, bool exact, double bound) {
  if (bound > 1000) {
    x = b_.op("tanh", {b_.op("mul", {x, number(1 / bound)})});
    exact = false;
    bound = 1;
  }
  values_.push_back({x, exact, bound});
}

Operand BodyMaker::number(double v) {
  const auto f = static_cast<float>(v);
  return constant(Tensor::copy_of<float>({}, f32, std::span(&f, 1)));
}

Operand BodyMaker::weights(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  std::vector<float> v(static_cast<size_t>(count));
  for (float& f : v) f = static_cast<float>(r_.between(-4, 4)) / 4;
  return constant(Tensor::copy_of<float>(shape, f32, v));
}

Operand BodyMaker::integer_list(const std::vector<int64_t>& v) {
  const int64_t count[] = {std::ssize(v)};
  return constant(Tensor::copy_of<int64_t>(count, i64, v));
}

Operand BodyMaker::changed_once(const Operand& x) {
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

Operand BodyMaker::in_block(const std::function<Operand()>& body) {
  const size_t count = values_.size();
  const Operand result = body();
  values_.resize(count);
  return result;
}

Operand BodyMaker::condition() {
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

void BodyMaker::branch() {
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

void BodyMaker::loop() {
  const Value* v = pick_float();
  if (!v) return;
  const Value x = *v;
  const int depth = depth_;
  const Value* n = r_.coin() ? pick_scalar() : nullptr;
  const Operand turns =
      n ? b_.op("clip", {n->x, constant_int(0), constant_int(3)}) : constant_int(r_.between(0, 3));
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

void BodyMaker::call() {
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

}  // namespace tenon::random_programs
