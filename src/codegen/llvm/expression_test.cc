// Every scalar operator on every element type, one element at a time and in vector lanes, compared
// with the evaluator's arithmetic (loop/scalar.h).
#include <gtest/gtest.h>

#include "codegen/llvm/jit_testing.h"
#include "loop/kernel.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below

constexpr int64_t kCount = 256;
// Those of tensors of numbers but complex ones, which are only moved.
const std::vector<DataType> kDataTypes = [] {
  std::vector<DataType> types = {
#define TENON_DTYPE(identifier, ...) identifier,
#include "tenon/dtypes.def"
  };
  std::erase_if(types, [](DataType t) { return t.is_complex() || t == string_elements; });
  return types;
}();

// Types that are converted and compared but not computed with.
bool is_stored(DataType t) {
  return t.bits < 8 || (t.is_float() && t.bits == 8);
}

// Difficult numbers, then random ones.
Tensor awkward(DataType t, uint32_t seed) {
  std::mt19937_64 rng(seed);
  Tensor x = Tensor::empty({kCount}, t);
  const double special[] = {0.0,    -0.0,  INFINITY, -INFINITY, NAN,    1,      -1,     0.5,
                            -0.5,   1.5,   2.5,      -2.5,      5e-324, 1e-310, 1e-40,  6e-8,
                            6e-5,   65504, 65520,    -70000,    1e10,   3e9,    -3e9,   9.3e18,
                            1.9e19, 1e30,  3.4e38,   1e300,     127.5,  255.5,  -128.5, 32767.9};
  for (int64_t i = 0; i < kCount; ++i) {
    int64_t bits;
    const auto pick = static_cast<size_t>(rng() % 64);
    if (t.is_float()) {
      double v = pick < std::size(special) ? special[pick]
                                           : (static_cast<double>(rng() % 20001) - 10000) / 700;
      bits = float_bits(round_to(t, v));
    } else {
      bits = pick < 8    ? 0
             : pick < 16 ? -1
             : pick < 20 ? static_cast<int64_t>(uint64_t{1} << (t.bits - 1))
             : pick < 24 ? static_cast<int64_t>((uint64_t{1} << (t.bits - 1)) - 1)
             : pick < 40 ? static_cast<int64_t>(rng() % 70)
                         : static_cast<int64_t>(rng());
      if (t.is_bool()) bits &= 1;
      bits = wrap_to(t, bits);
    }
    scalar_store(t, static_cast<char*>(x.data()) + i * t.bytes(), bits);
  }
  return x;
}

int64_t element(const Tensor& x, int64_t i) {
  return scalar_load(x.dtype(), static_cast<char*>(x.data()) + i * x.dtype().bytes());
}

using Body = std::function<ExprRef(const Indices&)>;

// out[i] = body(i): scalar, or in vector loops of `lanes`.
KernelRef elementwise(const std::string& name, const std::vector<Ref<const Buffer>>& inputs,
                      const Ref<const Buffer>& out, int64_t lanes, const Body& body) {
  auto i = var("i", i64);
  auto k = make<Kernel>();
  k->name = name;
  k->inputs = Array<Ref<const Buffer>>(inputs);
  k->outputs = {out};
  auto nest = [&](const Ref<const Var>& v, int64_t extent, ForKind kind, const StmtRef& inner) {
    auto f = make<For>();
    f->var = v;
    f->begin = index(0);
    f->extent = index(extent);
    f->loop = kind;
    f->body = inner;
    return StmtRef(f);
  };
  auto lane = var("lane", i64);
  ExprRef at_i = lanes > 1 ? binary(BinaryOp::kAdd, binary(BinaryOp::kMul, i, index(lanes)), lane)
                           : ExprRef(i);
  auto s = make<Store>();
  s->buffer = out;
  s->indices = {at_i};
  s->value = body({at_i});
  StmtRef inner = s;
  if (lanes > 1) inner = nest(lane, lanes, ForKind::kVector, inner);
  k->body = nest(i, kCount / lanes, ForKind::kSerial, inner);
  return k;
}

struct Case {
  std::string name;
  std::vector<Tensor> inputs;
  DataType result;
  std::function<ExprRef(const std::vector<ExprRef>&)> expression;
  std::function<std::optional<int64_t>(const std::vector<int64_t>&)> expected;
  int units = 0;  // allowed difference in units in the last place
};

// Floats within `units` of the type's last place, all NaNs equal, zeros compared with their sign.
bool agree(DataType t, int64_t found, int64_t expected, int units) {
  if (!t.is_float()) return found == expected;
  double a = as_float(found), b = as_float(expected);
  if (std::isnan(b)) return std::isnan(a);
  if (a == b) return true;
  if (units == 0 || std::isinf(b) || std::isinf(a)) return false;
  const FloatFormat* format = t.is_narrow_float() ? &format_of(t) : nullptr;
  const int digits = t == f64 ? 52 : t == f32 ? 23 : format->fraction_bits;
  const int least = t == f64 ? -1022 : t == f32 ? -126 : 1 - format->bias;
  double unit = std::ldexp(1.0, std::max(b == 0 ? least : std::ilogb(b), least) - digits);
  return std::fabs(a - b) <= units * unit;
}

void run(const std::vector<Case>& cases, const Target& target = host_target()) {
  std::vector<KernelRef> kernels;
  std::vector<std::vector<Ref<const Buffer>>> buffers;
  for (const Case& c : cases) {
    std::vector<Ref<const Buffer>> inputs;
    for (size_t i = 0; i < c.inputs.size(); ++i)
      inputs.push_back(buffer(cat("x", i), c.inputs[i].dtype(), {Dim(kCount)}));
    auto out = buffer("out", c.result, {Dim(kCount)});
    for (int64_t lanes : {1, 16})
      kernels.push_back(
          elementwise(cat(c.name, ".", lanes), inputs, out, lanes, [&](const Indices& i) {
            std::vector<ExprRef> loads;
            for (const auto& b : inputs) loads.push_back(at(b, i));
            return c.expression(loads);
          }));
  }
  EmitOptions options;
  options.threads = 2;
  OpenedKernels opened(compile_kernels(kernels, target, options));
  for (const Case& c : cases) {
    for (int64_t lanes : {1, 16}) {
      std::string name = cat(c.name, ".", lanes);
      Tensor out = Tensor::empty({kCount}, c.result);
      std::vector<Any> arguments(c.inputs.begin(), c.inputs.end());
      arguments.push_back(out);
      ASSERT_EQ(opened.call(name, arguments), 0) << name;
      for (int64_t i = 0; i < kCount; ++i) {
        std::vector<int64_t> values;
        for (const Tensor& x : c.inputs) values.push_back(element(x, i));
        auto expected = c.expected(values);
        ASSERT_TRUE(expected.has_value()) << name;
        std::string operands;
        for (size_t k = 0; k < values.size(); ++k)
          operands +=
              c.inputs[k].dtype().is_float() ? cat(" ", as_float(values[k])) : cat(" ", values[k]);
        int64_t found = element(out, i);
        bool is_float = c.result.is_float();
        ASSERT_TRUE(agree(c.result, found, *expected, c.units))
            << name << " of" << operands << " is " << (is_float ? cat(as_float(found)) : cat(found))
            << ", not " << (is_float ? cat(as_float(*expected)) : cat(*expected));
      }
    }
  }
}

std::vector<Case> unary_cases() {
  std::vector<Case> cases;
  for (DataType t : kDataTypes) {
    for (size_t o = 0; o < loop::unary_ops().size(); ++o) {
      const auto op = static_cast<UnaryOp>(o);
      if (!takes(info(op), t) || (is_stored(t) && !info(op).tests)) continue;
      const bool inexact = cost_of(info(op), t) == loop::ScalarCost::kTranscendental;
      cases.push_back({cat("unary", o, ".", t),
                       {awkward(t, 7)},
                       info(op).tests ? boolean : t,
                       [op](auto& x) { return unary(op, x[0]); },
                       [op, t](auto& x) { return scalar_unary(op, t, x[0]); },
                       inexact ? 4 : 0});
    }
  }
  return cases;
}

std::vector<Case> binary_cases() {
  std::vector<Case> cases;
  for (DataType t : kDataTypes) {
    for (size_t o = 0; o < loop::binary_ops().size(); ++o) {
      const auto op = static_cast<BinaryOp>(o);
      if (!takes(info(op), t) || (is_stored(t) && !info(op).tests)) continue;
      const bool divides = loop::can_fail(op, t);
      Tensor y = awkward(t, 11);
      for (int64_t i = 0; divides && i < kCount; ++i)
        if (element(y, i) == 0)
          scalar_store(t, static_cast<char*>(y.data()) + i * t.bytes(), wrap_to(t, -1));
      const bool inexact = op == BinaryOp::kPow || op == BinaryOp::kAtan2;
      cases.push_back({cat("binary", o, ".", t),
                       {awkward(t, 10), y},
                       info(op).tests ? boolean : t,
                       [op](auto& x) { return binary(op, x[0], x[1]); },
                       [op, t](auto& x) { return scalar_binary(op, t, x[0], x[1]); },
                       inexact && t.is_float() ? 4 : 0});
    }
  }
  return cases;
}

std::vector<Case> cast_cases() {
  std::vector<Case> cases;
  for (DataType from : kDataTypes)
    for (DataType to : kDataTypes)
      cases.push_back({cat("cast.", from, ".", to),
                       {awkward(from, 3)},
                       to,
                       [to](auto& x) { return cast(to, x[0]); },
                       [to, from](auto& x) { return scalar_cast(to, from, x[0]); }});
  return cases;
}

// Without 16-bit floats, whose NaNs may differ in their bits.
std::vector<Case> bit_cast_cases() {
  std::vector<Case> cases;
  for (auto [from, to] :
       {std::pair(f32, i32), {i32, f32}, {f64, u64}, {i64, f64}, {u8, i8}, {i16, f16}, {u32, i32}})
    cases.push_back({cat("bit_cast.", from, ".", to),
                     {awkward(from, 3)},
                     to,
                     [to = to](auto& x) { return bit_cast(to, x[0]); },
                     [to = to, from = from](auto& x) { return scalar_bit_cast(to, from, x[0]); }});
  return cases;
}

TEST(Expression, UnaryOperatorsAgreeWithTheEvaluator) {
  run(unary_cases());
}
TEST(Expression, BinaryOperatorsAgreeWithTheEvaluator) {
  run(binary_cases());
}
TEST(Expression, CastsAgreeWithTheEvaluator) {
  run(cast_cases());
}

TEST(Expression, BitCastsAgreeWithTheEvaluator) {
  run(bit_cast_cases());
}

TEST(Expression, PowersToCommonConstants) {
  std::vector<Case> cases;
  for (DataType t : {f16, f32, f64})
    for (double exponent : {2.0, 3.0, -1.0, 0.5, 4.0})
      cases.push_back(
          {cat("power.", t, ".", exponent),
           {awkward(t, 5)},
           t,
           [=](auto& x) { return binary(BinaryOp::kPow, x[0], literal(t, exponent)); },
           [=](auto& x) { return scalar_binary(BinaryOp::kPow, t, x[0], float_bits(exponent)); },
           2});
  run(cases);
}

// Without FMA, AVX, 16-bit float instructions and rounding instructions.
TEST(Expression, AgreesOnTheOldestProcessors) {
  for (const char* level : {"x86-64"}) {
    std::vector<Case> cases;
    auto floats = [&](std::vector<Case> all) {
      for (Case& c : all)
        if (c.result.is_float() || c.inputs[0].dtype().is_float()) cases.push_back(std::move(c));
    };
    floats(unary_cases());
    floats(binary_cases());
    floats(cast_cases());
    run(cases, parse_target(level));
  }
}

// quantise, and quantise and back, with zero points that are known and that aren't; beside
// expressions that only resemble them.
TEST(Expression, QuantisedNumbers) {
  const auto quantised = [](DataType t, double x, double zero) -> int64_t {
    if (std::isnan(x)) return 0;
    return static_cast<int64_t>(
        std::clamp(std::nearbyint(x) + zero, t == u8 ? 0.0 : -128.0, t == u8 ? 255.0 : 127.0));
  };
  std::vector<Case> cases;
  for (const DataType t : {u8, i8}) {
    const auto add =
        [&](const std::string& name, const std::vector<Tensor>& inputs,
            const std::function<double(const std::vector<int64_t>&)>& zero_of,
            const std::function<ExprRef(const std::vector<ExprRef>&, DataType)>& zero) {
          const auto expression = [=](const std::vector<ExprRef>& x) {
            return cast(t, unary(UnaryOp::kRoundEven, x[0]) + zero(x, f32));
          };
          cases.push_back(
              {cat(t, ".", name), inputs, t, expression, [=](const std::vector<int64_t>& v) {
                 return std::optional(quantised(t, as_float(v[0]), zero_of(v)));
               }});
          const auto back = [=](const std::vector<ExprRef>& x) {
            return cast(f32, cast(i32, expression(x)) - zero(x, i32));
          };
          cases.push_back(
              {cat(t, ".back.", name), inputs, f32, back, [=](const std::vector<int64_t>& v) {
                 const double z = zero_of(v);
                 const double q = static_cast<double>(quantised(t, as_float(v[0]), z));
                 return std::optional(float_bits(q - z));
               }});
        };
    for (const int64_t n : {0, 1, 99, 127, 128, 255, -1, -128}) {
      if (n < (t == u8 ? 0 : -128) || n > (t == u8 ? 255 : 127)) continue;
      add(
          cat(n), {awkward(f32, 11)}, [n](const auto&) { return static_cast<double>(n); },
          [n](const auto&, DataType d) { return literal(d, static_cast<double>(n)); });
    }
    add(
        "loaded", {awkward(f32, 12), awkward(t, 13)},
        [](const std::vector<int64_t>& v) { return static_cast<double>(v[1]); },
        [](const std::vector<ExprRef>& x, DataType d) { return cast(d, x[1]); });
    // Half a zero point; another one on the way back.
    cases.push_back({cat(t, ".half"),
                     {awkward(f32, 14)},
                     t,
                     [t](const std::vector<ExprRef>& x) {
                       return cast(t, unary(UnaryOp::kRoundEven, x[0]) + literal(f32, 1.5));
                     },
                     [t](const std::vector<int64_t>& v) {
                       return scalar_cast(
                           t, f32, float_bits(round_to(f32, std::nearbyint(as_float(v[0])) + 1.5)));
                     }});
    cases.push_back({cat(t, ".other"),
                     {awkward(f32, 15)},
                     f32,
                     [t](const std::vector<ExprRef>& x) {
                       const ExprRef q =
                           cast(t, unary(UnaryOp::kRoundEven, x[0]) + literal(f32, 7));
                       return cast(f32, cast(i32, q) - literal_int(i32, 6));
                     },
                     [=](const std::vector<int64_t>& v) {
                       return std::optional(
                           float_bits(static_cast<double>(quantised(t, as_float(v[0]), 7) - 6)));
                     }});
  }
  run(cases);
}

}  // namespace
}  // namespace tenon::codegen
