// For the tests of this folder: runs one operator on random operands, by its lowering and the loop
// evaluator, and compares with an oracle that computes in doubles.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "graph/ir/builder.h"
#include "graph/op/index.h"
#include "graph/op/register.h"
#include "graph/op/rule.h"
#include "loop/evaluator.h"
#include "loop/scalar.h"

namespace tenon::graph {

// How the operand types express sizes.
enum class Sizes {
  kConstant,
  kSymbols,   // a symbol per size: equal sizes are known to be equal
  kDistinct,  // a symbol per axis of each operand: nothing can be proved
};

struct Run {
  std::vector<Tensor> results;
  Array<TypeRef> types;  // one per result
};

// The type of an operand with its sizes expressed as `sizes` says.
inline TypeRef operand_type(const Tensor& t, Sizes sizes, size_t operand) {
  std::vector<Dim> dims;
  for (size_t i = 0; i < t.shape().size(); ++i) {
    int64_t n = t.shape()[i];
    if (sizes == Sizes::kConstant) dims.push_back(n);
    if (sizes == Sizes::kSymbols) dims.push_back(Dim::symbol(cat("n", n)));
    if (sizes == Sizes::kDistinct) dims.push_back(Dim::symbol(cat("d", operand, "_", i)));
  }
  return tensor_type(t.dtype(), dims);
}

inline Ref<const Call> make_call(const std::string& name, const std::vector<TypeRef>& operands,
                                 const Attrs& given) {
  auto call = make<Call>();
  call->callee = String(name);
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto* unit = type_as<TupleType>(operands[i]);
    auto v = make<Var>();
    v->name = String(cat("x", i));
    v->type = operands[i];
    call->args.push_back(unit && unit->fields.empty() ? Operand() : Operand(v));
  }
  // Attributes as the builder makes them: sizes from integers.
  const Operator* op = OperatorTable::global().find(name);
  TENON_ASSERT(op, "no operator ", name);
  for (const AttrSpec& spec : op->attrs) {
    const Any* value = given.find(spec.name);
    if (value && spec.kind == AttrKind::kDim && value->type_index == TypeIndex::Int) {
      call->attrs.set(spec.name, Dim(value->as<int64_t>()));
    } else {
      call->attrs.set(spec.name, value ? *value : spec.default_value);
    }
  }
  return call;
}

inline TypeRef infer_call(const Ref<const Call>& call) {
  static const Signatures none;
  InferOptions options;
  options.signatures = &none;
  options.fresh = [n = 0](std::string_view hint) mutable {
    return Dim::symbol(cat(hint, "_", n++));
  };
  options.in_scope = [](std::string_view) { return true; };
  return infer_type(call, options).type;
}

// A null tensor is an absent operand.
inline Run run_operator(const std::string& name, const std::vector<Tensor>& operands,
                        const Attrs& given = {}, Sizes sizes = Sizes::kConstant) {
  register_operators();
  std::vector<TypeRef> types;
  std::vector<Tensor> present;
  for (size_t i = 0; i < operands.size(); ++i) {
    types.push_back(operands[i] ? operand_type(operands[i], sizes, i) : unit_type());
    if (operands[i]) present.push_back(operands[i]);
  }
  Ref<const Call> call = make_call(name, types, given);
  TypeRef type = infer_call(call);
  Run run;
  if (const auto* tuple = type_as<TupleType>(type)) {
    run.types = tuple->fields;
  } else {
    run.types = {type};
  }
  std::vector<BufferRef> inputs, outputs;
  for (const TypeRef& t : types) {
    const auto* x = type_as<TensorType>(t);
    inputs.push_back(x ? loop::buffer("x", x->dtype, dims_of(*x)) : nullptr);
  }
  for (const TypeRef& t : run.types) {
    const auto* y = type_as<TensorType>(t);
    outputs.push_back(loop::buffer("y", y->dtype, dims_of(*y)));
  }
  LowerContext cx(*call, inputs, outputs);
  loop::ComputeRef compute = OperatorTable::global().find(name)->lower(cx);
  loop::check(*compute);
  run.results = loop::evaluate(*compute, present);
  return run;
}

inline Tensor run(const std::string& name, const std::vector<Tensor>& operands,
                  const Attrs& given = {}) {
  return run_operator(name, operands, given).results[0];
}

// ---- tensors ----

inline Tensor random_tensor(DataType dtype, const std::vector<int64_t>& shape, Random& random,
                            int64_t low = -20, int64_t high = 20) {
  Tensor t = Tensor::empty(shape, dtype);
  if (dtype.is_unsigned_int()) low = std::max<int64_t>(low, 0);
  for (int64_t i = 0; i < t.count(); ++i) {
    int64_t v = random.between(low, high);
    int64_t bits =
        dtype.is_float() ? loop::float_bits(static_cast<double>(v) / 4) : wrap_to(dtype, v);
    loop::scalar_store(dtype, static_cast<char*>(t.data()) + i * dtype.bytes(), bits);
  }
  return t;
}

inline std::vector<int64_t> shape_of_tensor(const Tensor& t) {
  return std::vector<int64_t>(t.shape().begin(), t.shape().end());
}

// An array of doubles: an oracle's operands and results.
struct Nd {
  std::vector<int64_t> shape;
  std::vector<double> data;

  explicit Nd(std::vector<int64_t> s, double fill = 0) : shape(std::move(s)) {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    data.assign(static_cast<size_t>(n), fill);
  }
  explicit Nd(const Tensor& t) : Nd(shape_of_tensor(t)) {
    for (size_t i = 0; i < data.size(); ++i) {
      int64_t bits = loop::scalar_load(
          t.dtype(), static_cast<char*>(t.data()) + static_cast<int64_t>(i) * t.dtype().bytes());
      data[i] = t.dtype().is_float() ? loop::as_float(bits) : static_cast<double>(bits);
    }
  }
  size_t offset(const std::vector<int64_t>& at) const {
    size_t o = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      TENON_ASSERT(at[i] >= 0 && at[i] < shape[i], "the oracle reads outside of its operand");
      o = o * static_cast<size_t>(shape[i]) + static_cast<size_t>(at[i]);
    }
    return o;
  }
  double& at(const std::vector<int64_t>& i) { return data[offset(i)]; }
  double at(const std::vector<int64_t>& i) const { return data[offset(i)]; }
  // The element at `i` of a larger space, broadcast.
  double broadcast(const std::vector<int64_t>& i) const {
    std::vector<int64_t> own(i.end() - static_cast<std::ptrdiff_t>(shape.size()), i.end());
    for (size_t k = 0; k < own.size(); ++k) {
      if (shape[k] == 1) own[k] = 0;
    }
    return at(own);
  }
};

// Calls `body` for every index in row-major order.
inline void for_each_index(const std::vector<int64_t>& shape,
                           const std::function<void(const std::vector<int64_t>&)>& body) {
  for (int64_t n : shape) {
    if (n == 0) return;
  }
  std::vector<int64_t> i(shape.size(), 0);
  for (;;) {
    body(i);
    size_t k = shape.size();
    while (k > 0 && ++i[k - 1] == shape[k - 1]) i[--k] = 0;
    if (k == 0) return;
  }
}

// Shapes are equal, integers agree after wrapping, and floats within a tolerance of the dtype.
inline void expect_equal(const Tensor& found, const Nd& expected, double factor = 1) {
  ASSERT_EQ(shape_of_tensor(found), expected.shape);
  Nd f(found);
  DataType t = found.dtype();
  double tolerance = factor * (t == f64 ? 1e-11 : 1e-5), greatest = INFINITY;
  if (t.is_narrow_float()) {
    const FloatFormat& format = format_of(t);
    tolerance = factor * std::ldexp(4, -format.fraction_bits);
    greatest = narrow_value(t, static_cast<uint16_t>(format.end_of_numbers() - 1));
  }
  for (size_t i = 0; i < f.data.size(); ++i) {
    double want = expected.data[i], have = f.data[i];
    if (!t.is_float()) {
      ASSERT_EQ(have, static_cast<double>(wrap_to(t, static_cast<int64_t>(want))))
          << "element " << i << " of " << to_text(found);
    } else if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(have)) << "element " << i << ": " << have;
    } else if (std::isinf(want) || std::fabs(want) > greatest) {
      const double far = round_to(t, want);  // infinity, or what the type has instead
      ASSERT_TRUE(std::isnan(far) ? std::isnan(have) || std::fabs(have) == greatest
                                  : have == far || have == std::copysign(greatest, want))
          << "element " << i << " of " << to_text(found) << ": " << have << ", not " << want;
    } else {
      ASSERT_LE(std::fabs(have - want), tolerance * (1 + std::fabs(want)))
          << "element " << i << " of " << to_text(found) << ": " << have << ", not " << want;
    }
  }
}

// Operands for a sample. `fill` makes those that must not be random, and returns null for others.
using Fill = std::function<Tensor(size_t operand, const Sample& sample, Random& random)>;
inline std::vector<Tensor> operands_for(const Sample& sample, Random& random,
                                        const Fill& fill = nullptr) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    const auto* t = type_as<TensorType>(sample.operands[i]);
    if (!t) {
      out.emplace_back();
      continue;
    }
    Tensor made = fill ? fill(i, sample, random) : Tensor();
    std::vector<int64_t> shape;
    for (const Dim& d : t->dims) shape.push_back(*d.as_const());
    out.push_back(made ? made : random_tensor(t->dtype, shape, random));
  }
  return out;
}

inline std::vector<int64_t> sample_shape(const Sample& s, size_t i) {
  std::vector<int64_t> shape;
  for (const Dim& d : type_as<TensorType>(s.operands[i])->dims) shape.push_back(*d.as_const());
  return shape;
}

// Runs `name` on `count` samples and passes each to `check` with its operands and results.
struct Trial {
  Attrs attrs;  // completed
  std::vector<Tensor> operands;
  std::vector<Tensor> results;
  std::vector<Tensor> with_constant_sizes;  // the results of the first of its three runs

  int64_t integer(const char* attr) const { return attrs.find(attr)->as<int64_t>(); }
  bool flag(const char* attr) const { return attrs.find(attr)->as<bool>(); }
  double real(const char* attr) const { return attrs.find(attr)->as<double>(); }
  std::string text(const char* attr) const { return attrs.find(attr)->as<String>().str(); }
  std::vector<int64_t> ints(const char* attr) const {
    return attrs.find(attr)->as<Array<int64_t>>().to_vector();
  }
  std::vector<int64_t> sizes(const char* attr) const {
    std::vector<int64_t> out;
    for (const Dim& d : attrs.find(attr)->as<Array<Dim>>()) out.push_back(*d.as_const());
    return out;
  }
  int64_t size(const char* attr) const { return *attrs.find(attr)->as<Dim>().as_const(); }
  int64_t axis(const char* attr, int64_t rank) const {
    int64_t a = integer(attr);
    return a < 0 ? a + rank : a;
  }
};

inline void try_samples(const std::string& name, int count,
                        const std::function<void(const Trial&)>& check,
                        const Fill& fill = nullptr) {
  register_operators();
  const Operator* op = OperatorTable::global().find(name);
  ASSERT_NE(op, nullptr);
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(count); ++seed) {
    Random random(seed * 7 + 3);
    Sample sample = op->sample(*op, seed);
    Trial trial;
    trial.operands = operands_for(sample, random, fill);
    trial.attrs = make_call(name, sample.operands, sample.attrs)->attrs;
    for (Sizes sizes : {Sizes::kConstant, Sizes::kSymbols, Sizes::kDistinct}) {
      try {
        trial.results = run_operator(name, trial.operands, sample.attrs, sizes).results;
      } catch (const Error& e) {
        // Some operators need constant sizes.
        bool excused =
            sizes != Sizes::kConstant && e.message().find("must be a number") != std::string::npos;
        ASSERT_TRUE(excused) << name << " on sample " << seed << ", sizes "
                             << static_cast<int>(sizes) << ": " << e.what();
        continue;
      }
      if (sizes == Sizes::kConstant) trial.with_constant_sizes = trial.results;
      SCOPED_TRACE(cat(name, " on sample ", seed, ", sizes ", static_cast<int>(sizes)));
      check(trial);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// The message of the type rule's error for operands of these types.
inline std::string type_error(const std::string& name, const std::vector<TypeRef>& operands,
                              const Attrs& given = {}) {
  register_operators();
  try {
    infer_call(make_call(name, operands, given));
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

}  // namespace tenon::graph
