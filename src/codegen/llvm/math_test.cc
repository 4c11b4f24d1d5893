// The error bounds in docs/semantics.md, in units in the last place of the exact result, over dense
// sweeps of the arguments: every exponent, both signs, denormals, infinities and NaN. The reference
// is long double, with a 64-bit mantissa.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codegen/llvm/jit_testing.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below

struct Bound {
  const char* name;
  UnaryOp op;
  long double (*exact)(long double);
  double f32_units, f64_units;
};

long double exact_sigmoid(long double x) {
  return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x));
}

const Bound kBounds[] = {
    {"exp", UnaryOp::kExp, expl, 1.1, 1.1},
    {"log", UnaryOp::kLog, logl, 1.1, 1.1},
    {"tanh", UnaryOp::kTanh, tanhl, 2.5, 2.5},
    {"erf", UnaryOp::kErf, erfl, 6.0, 2.5},
    {"sigmoid", UnaryOp::kSigmoid, exact_sigmoid, 2.5, 2.5},
    {"sin", UnaryOp::kSin, sinl, 0.51, 1.0},
    {"cos", UnaryOp::kCos, cosl, 0.51, 1.0},
    {"tan", UnaryOp::kTan, tanl, 0.51, 2.0},
    {"asin", UnaryOp::kAsin, asinl, 0.51, 2.5},
    {"acos", UnaryOp::kAcos, acosl, 0.51, 2.0},
    {"atan", UnaryOp::kAtan, atanl, 0.51, 2.5},
    {"sinh", UnaryOp::kSinh, sinhl, 0.51, 3.0},
    {"cosh", UnaryOp::kCosh, coshl, 0.51, 3.0},
    {"asinh", UnaryOp::kAsinh, asinhl, 0.51, 2.5},
    {"acosh", UnaryOp::kAcosh, acoshl, 0.51, 2.5},
    {"atanh", UnaryOp::kAtanh, atanhl, 0.51, 2.5},
};

KernelRef map_kernel(const std::string& name, DataType t, int64_t lanes, int inputs,
                     const std::function<ExprRef(const std::vector<ExprRef>&)>& body) {
  Dim n = Dim::symbol("n");
  std::vector<Ref<const Buffer>> in;
  for (int i = 0; i < inputs; ++i) in.push_back(buffer(cat("x", i), t, {n}));
  auto out = buffer("y", t, {n});
  auto i = var("i", i64), lane = var("lane", i64);
  ExprRef where = binary(BinaryOp::kAdd, binary(BinaryOp::kMul, i, index(lanes)), lane);
  std::vector<ExprRef> loads;
  for (const auto& b : in) loads.push_back(at(b, {where}));
  auto nest = [&](const Ref<const Var>& v, const ExprRef& extent, ForKind kind,
                  const StmtRef& inner) {
    auto f = make<For>();
    f->var = v;
    f->begin = index(0);
    f->extent = extent;
    f->loop = kind;
    f->body = inner;
    return StmtRef(f);
  };
  auto s = make<Store>();
  s->buffer = out;
  s->indices = {where};
  s->value = body(loads);
  auto k = make<Kernel>();
  k->name = name;
  k->inputs = Array<Ref<const Buffer>>(in);
  k->outputs = {out};
  k->body = nest(i, dim_value(floordiv(n, Dim(lanes))), ForKind::kSerial,
                 nest(lane, index(lanes), ForKind::kVector, s));
  return k;
}

template <class T>
double value_of(uint64_t bits) {
  if constexpr (sizeof(T) == 4) {
    auto b = static_cast<uint32_t>(bits);
    float f;
    std::memcpy(&f, &b, 4);
    return f;
  } else {
    double d;
    std::memcpy(&d, &bits, 8);
    return d;
  }
}

// `count` arguments spread over all bit patterns, and as many in [-20, 20].
template <class T>
Tensor sweep(int64_t count, uint64_t seed) {
  Tensor x = Tensor::empty({count * 2 + 16}, sizeof(T) == 4 ? f32 : f64);
  T* p = x.data_as<T>();
  std::mt19937_64 rng(seed);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t step = ~uint64_t{0} / static_cast<uint64_t>(count);
    uint64_t bits = static_cast<uint64_t>(i) * step + rng() % step;
    p[i] = static_cast<T>(value_of<T>(bits >> (64 - 8 * sizeof(T))));
    p[count + i] = static_cast<T>((static_cast<double>(rng() >> 11) * 0x1p-53 - 0.5) * 40);
  }
  const double special[] = {0.0,  -0.0,  INFINITY, -INFINITY, NAN,     1,     -1,
                            0.5,  -0.5,  2,        5e-324,    -5e-324, 1e-45, 3.14159265358979312,
                            1e22, 0x1p26};
  for (size_t i = 0; i < 16; ++i)
    p[2 * count + static_cast<int64_t>(i)] = static_cast<T>(special[i]);
  return x;
}

// The distance from the exact result in units of T's last place there.
template <class T>
double units_off(T found, long double exact) {
  if (std::isnan(exact)) return std::isnan(found) ? 0 : INFINITY;
  constexpr int digits = sizeof(T) == 4 ? 23 : 52, least = sizeof(T) == 4 ? -126 : -1022;
  if (static_cast<long double>(found) == exact)
    return std::signbit(found) == std::signbit(exact) ? 0 : INFINITY;
  T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) && found == rounded) return 0;
  if (std::isnan(found) || std::isinf(found)) return INFINITY;
  int e = exact == 0 ? least : std::max(std::ilogb(exact), least);
  return static_cast<double>(std::fabs(static_cast<long double>(found) - exact) /
                             ldexpl(1, e - digits));
}

template <class T>
void check_unary(const char* cpu) {
  const DataType t = sizeof(T) == 4 ? f32 : f64;
  std::vector<KernelRef> kernels;
  for (const Bound& b : kBounds)
    kernels.push_back(map_kernel(b.name, t, 8, 1, [&](auto& x) { return unary(b.op, x[0]); }));
  EmitOptions options;
  options.threads = 2;
  OpenedKernels opened(compile_kernels(kernels, parse_target(cpu), options));
  Tensor x = sweep<T>(200000, 5);
  for (const Bound& b : kBounds) {
    Tensor y = Tensor::empty(x.shape(), t);
    ASSERT_EQ(opened.call(b.name, {x, y}), 0);
    double worst = 0, where = 0;
    for (int64_t i = 0; i < x.count(); ++i) {
      const T argument = x.data_as<T>()[i];
      const double off = units_off<T>(y.data_as<T>()[i], b.exact(argument));
      if (off > worst) {
        worst = off;
        where = argument;
      }
    }
    EXPECT_LE(worst, sizeof(T) == 4 ? b.f32_units : b.f64_units)
        << b.name << " of " << cat(where) << " on " << cpu;
    if (std::getenv("TENON_PRINT_BOUNDS"))
      std::printf("%s %s %s %.3f\n", cpu, b.name, to_text(t).c_str(), worst);
  }
}

TEST(Math, UnaryFunctionsKeepTheirBounds) {
  for (const char* cpu : {"native", "x86-64-v2"}) {
    check_unary<float>(cpu);
    check_unary<double>(cpu);
  }
}

template <class T>
void check_binary(const char* cpu) {
  const DataType t = sizeof(T) == 4 ? f32 : f64;
  struct BinaryBound {
    const char* name;
    BinaryOp op;
    long double (*exact)(long double, long double);
    double f32_units, f64_units;
  };
  const BinaryBound bounds[] = {{"pow", BinaryOp::kPow, powl, 0.51, 1.5},
                                {"atan2", BinaryOp::kAtan2, atan2l, 0.51, 2.5},
                                {"rem", BinaryOp::kRem, fmodl, 0, 0}};
  std::vector<KernelRef> kernels;
  for (const auto& b : bounds)
    kernels.push_back(
        map_kernel(b.name, t, 8, 2, [&](auto& x) { return binary(b.op, x[0], x[1]); }));
  OpenedKernels opened(compile_kernels(kernels, parse_target(cpu)));
  // All pairs of special values among random pairs, half of which have moderate size.
  Tensor x = sweep<T>(50000, 6), y = sweep<T>(50000, 7);
  std::mt19937_64 rng(8);
  for (int64_t i = 0; i < x.count(); ++i)
    std::swap(y.data_as<T>()[i],
              y.data_as<T>()[static_cast<int64_t>(rng() % static_cast<uint64_t>(x.count()))]);
  for (int64_t i = 0; i < 256; ++i) {
    x.data_as<T>()[i] = x.data_as<T>()[x.count() - 16 + i / 16];
    y.data_as<T>()[i] = sweep<T>(1, 1).template data_as<T>()[2 + i % 16];
  }
  for (int64_t i = 256; i < 40000; i += 2) {  // bases near 1 and integral exponents
    x.data_as<T>()[i] = static_cast<T>(0.5 + static_cast<double>(rng() % 100000) / 50000);
    y.data_as<T>()[i] = static_cast<T>(static_cast<double>(rng() % 2000) - 1000);
  }
  for (const auto& b : bounds) {
    Tensor z = Tensor::empty(x.shape(), t);
    ASSERT_EQ(opened.call(b.name, {x, y, z}), 0);
    double worst = 0, wx = 0, wy = 0;
    for (int64_t i = 0; i < x.count(); ++i) {
      const T p = x.data_as<T>()[i], q = y.data_as<T>()[i];
      const double off = units_off<T>(z.data_as<T>()[i], b.exact(p, q));
      if (off > worst) {
        worst = off;
        wx = p;
        wy = q;
      }
    }
    EXPECT_LE(worst, sizeof(T) == 4 ? b.f32_units : b.f64_units)
        << b.name << " of " << cat(wx) << " and " << cat(wy) << " on " << cpu;
    if (std::getenv("TENON_PRINT_BOUNDS"))
      std::printf("%s %s %s %.3f\n", cpu, b.name, to_text(t).c_str(), worst);
  }
}

TEST(Math, BinaryFunctionsKeepTheirBounds) {
  for (const char* cpu : {"native", "x86-64-v2"}) {
    check_binary<float>(cpu);
    check_binary<double>(cpu);
  }
}

}  // namespace
}  // namespace tenon::codegen
