// Kernels whose bounds aren't trusted, such as those of a program in text: whatever their indices,
// an access outside its buffer stops them with an error.
#include <gtest/gtest.h>

#include "codegen/llvm/jit_testing.h"
#include "loop/statements_testing.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below
using vm::KernelError;

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");
const Ref<const Var> i = var("i", i64), j = var("j", i64);

ExprRef number(float v) {
  return literal(f32, v);
}

KernelRef kernel(std::vector<Ref<const Buffer>> inputs, std::vector<Ref<const Buffer>> outputs,
                 const StmtRef& body, std::vector<String> integers = {}) {
  KernelRef made = loop::kernel("subject", inputs, outputs, body, integers);
  EXPECT_FALSE(made->in_bounds) << "nothing but a schedule says so";
  return made;
}

Tensor zeros(const std::vector<int64_t>& shape, DataType t = f32) {
  Tensor x = Tensor::empty(shape, t);
  std::fill_n(static_cast<char*>(x.data()), x.bytes(), 0);
  return x;
}

constexpr Optimisation kLevels[] = {Optimisation::kLoops, Optimisation::kAll};

// Calls the kernel at every optimisation level and expects an error with this index and limit.
void expect_stopped(const KernelRef& kernel, const std::vector<Any>& arguments, int64_t found,
                    int64_t expected, KernelError code = KernelError::OutsideBuffer) {
  for (Optimisation level : kLevels) {
    EmitOptions options;
    options.optimisation = level;
    OpenedKernels opened(compile_kernels({kernel}, host_target(), options));
    EXPECT_NE(opened.call("subject", arguments), 0) << to_text(*kernel);
    EXPECT_EQ(opened.raised.code, code) << to_text(*kernel);
    EXPECT_EQ(opened.raised.found, found) << to_text(*kernel);
    EXPECT_EQ(opened.raised.expected, expected) << to_text(*kernel);
    EXPECT_EQ(opened.workspaces_held, 0);
  }
}
void expect_runs(const KernelRef& kernel, const std::vector<Any>& arguments) {
  for (Optimisation level : kLevels) {
    EmitOptions options;
    options.optimisation = level;
    OpenedKernels opened(compile_kernels({kernel}, host_target(), options));
    EXPECT_EQ(opened.call("subject", arguments), 0) << to_text(*kernel);
  }
}

const Ref<const Buffer> x = buffer("x", f32, {n}), y = buffer("y", f32, {n});

TEST(Bounds, LoadsAndStoresInEveryKindOfLoop) {
  for (ForKind kind :
       {ForKind::kSerial, ForKind::kParallel, ForKind::kVector, ForKind::kUnrolled}) {
    auto body = [&](const StmtRef& s) { return nest(i, index(0), index(8), kind, s); };
    const std::vector<Any> arguments{zeros({8}), zeros({8})};
    expect_runs(kernel({x}, {y}, body(put(y, {i}, at(x, {i})))), arguments);
    expect_stopped(kernel({x}, {y}, body(put(y, {i}, at(x, {i + index(1)})))), arguments, 8, 8);
    expect_stopped(kernel({x}, {y}, body(put(y, {i + index(1)}, number(1)))), arguments, 8, 8);
    expect_stopped(kernel({x}, {y}, body(put(y, {i - index(1)}, number(1)))), arguments, -1, 8);
    expect_stopped(kernel({x}, {y}, body(put(y, {i}, at(x, {i * index(3)})))), arguments, 9, 8);
    expect_stopped(kernel({x}, {y}, body(put(y, {index(7) - i * index(2)}, number(1)))), arguments,
                   -1, 8);
  }
}

TEST(Bounds, OfEachDimensionAndOfTheWhole) {
  auto a = buffer("a", f32, {n, m}), c = buffer("c", f32, {Dim(1)});
  const std::vector<Any> arguments{zeros({2, 3}), zeros({1})};
  auto reads = [&](const Indices& where) {
    return kernel({a}, {c}, put(c, {index(0)}, at(a, where)));
  };
  expect_runs(reads({index(1), index(2)}), arguments);
  // Within the tensor's memory but not within its row.
  expect_stopped(reads({index(0), index(3)}), arguments, 3, 3);
  expect_stopped(reads({index(1), index(-1)}), arguments, -1, 3);
  expect_stopped(reads({index(2), index(0)}), arguments, 2, 2);
  expect_runs(reads({index(5)}), arguments);
  expect_stopped(reads({index(6)}), arguments, 6, 6);
  expect_stopped(reads({index(INT64_MIN)}), arguments, INT64_MIN, 6);
  // An empty tensor has no elements, however large its other size.
  expect_stopped(reads({index(0), index(0)}), {zeros({0, int64_t{1} << 40}), zeros({1})}, 0, 0);
  expect_stopped(reads({index(0)}), {zeros({0, int64_t{1} << 40}), zeros({1})}, 0, 0);

  auto one = buffer("one", f32, {});
  expect_stopped(kernel({}, {one}, put(one, {index(1)}, number(1))), {zeros({})}, 1, 1);
}

TEST(Bounds, OfIndicesFromData) {
  auto where = buffer("where", i64, {m});
  for (ForKind kind : {ForKind::kSerial, ForKind::kVector}) {
    KernelRef gather = kernel(
        {x, where}, {y}, nest(i, index(0), index(4), kind, put(y, {i}, at(x, {at(where, {i})}))));
    KernelRef scatter = kernel(
        {x, where}, {y}, nest(i, index(0), index(4), kind, put(y, {at(where, {i})}, number(1))));
    Tensor indices = zeros({4}, i64);
    const std::vector<Any> arguments{zeros({4}), indices, zeros({4})};
    expect_runs(gather, arguments);
    expect_runs(scatter, arguments);
    for (int64_t bad : {int64_t{4}, int64_t{-1}, INT64_MAX, INT64_MIN, int64_t{1} << 62}) {
      indices.data_as<int64_t>()[2] = bad;
      expect_stopped(gather, arguments, bad, 4);
      expect_stopped(scatter, arguments, bad, 4);
    }
  }
}

TEST(Bounds, OnlyWhereAnAccessIsMade) {
  for (ForKind kind : {ForKind::kSerial, ForKind::kVector}) {
    auto body = [&](const StmtRef& s) { return nest(i, index(0), index(16), kind, s); };
    const std::vector<Any> arguments{zeros({5}), zeros({5})};
    ExprRef inside = less(i, dim_value(n));
    expect_runs(kernel({x}, {y}, body(when(inside, put(y, {i}, at(x, {i}))))), arguments);
    expect_runs(
        kernel(
            {x}, {y},
            body(when(inside,
                      put(y, {i}, select(less(i, index(2)), at(x, {i + index(3)}), number(0)))))),
        arguments);
    // One element for all lanes, none of which is active.
    expect_runs(kernel({x}, {y}, body(when(less(i, index(0)), put(y, {index(99)}, at(x, {i}))))),
                arguments);
    // The first lane is inactive.
    expect_runs(kernel({x}, {y},
                       body(when(binary(BinaryOp::kAnd, less(index(1), i), less(i, index(7))),
                                 put(y, {i - index(2)}, at(x, {i - index(2)}))))),
                arguments);
    expect_stopped(kernel({x}, {y}, body(when(less(i, index(6)), put(y, {i}, number(1))))),
                   arguments, 5, 5);
  }
}

// Index arithmetic wraps; nothing may be assumed about it.
TEST(Bounds, OfIndicesThatOverflow) {
  const Tensor eight = zeros({8});
  auto where = buffer("where", i64, {Dim(1)}), c = buffer("c", i64, {Dim(4)});
  // 2^32 * 2^32 wraps to 0; shifted, it would be at most 1 if it were assumed to be positive.
  for (auto [value, found] : {std::pair{int64_t{3} << 30, int64_t{-2}}, {int64_t{1} << 31, 1}}) {
    Tensor given = zeros({1}, i64), out = zeros({4}, i64);
    given.data_as<int64_t>()[0] = value;
    ExprRef product = checked_index(at(where, {index(0)}), Dim(int64_t{1} << 40)) *
                      checked_index(at(where, {index(0)}), Dim(int64_t{1} << 40));
    ExprRef shifted = binary(BinaryOp::kShr, product, index(62));
    KernelRef stores = kernel({where}, {c}, put(c, {shifted}, index(7)));
    if (found < 0) {
      expect_stopped(stores, {given, out}, found, 4);
    } else {
      expect_runs(stores, {given, out});
      EXPECT_EQ(out.data_as<int64_t>()[found], 7);
    }
  }
  // Loops whose end overflows, with sizes that the caller chooses.
  for (ForKind kind : {ForKind::kSerial, ForKind::kParallel}) {
    KernelRef loops =
        kernel({}, {y}, nest(i, dim_value(k), index(4), kind, put(y, {i}, number(1))), {"k"});
    expect_runs(loops, {eight, int64_t{4}});
    expect_stopped(loops, {eight, int64_t{5}}, 8, 8);
    expect_stopped(loops, {eight, INT64_MAX}, INT64_MAX, 8);
    KernelRef from_below = kernel({}, {y},
                                  nest(i, index(INT64_MAX - 1), dim_value(k), kind,
                                       when(less(i, dim_value(n)), put(y, {i}, number(1)))),
                                  {"k"});
    expect_stopped(from_below, {eight, int64_t{4}}, INT64_MIN, 8);
  }
  for (ForKind kind : {ForKind::kVector, ForKind::kUnrolled}) {
    KernelRef loops =
        kernel({}, {y}, nest(i, dim_value(k), index(4), kind, put(y, {i}, number(1))), {"k"});
    expect_runs(loops, {eight, int64_t{4}});
    expect_stopped(loops, {eight, INT64_MAX}, INT64_MAX, 8);
  }
}

// Uninitialised memory has any value, but the same wherever it is used.
TEST(Bounds, OfIndicesThatWereNeverWritten) {
  auto never = buffer("never", i64, {Dim(2)}), seen = buffer("seen", i64, {Dim(1)});
  auto c = buffer("c", f32, {Dim(1)});
  ExprRef value = at(never, {index(0)});
  KernelRef stores =
      kernel({}, {c, seen},
             scratch(never, seq({put(seen, {index(0)}, value), put(c, {value}, number(1))})));
  for (Optimisation level : kLevels) {
    EmitOptions options;
    options.optimisation = level;
    OpenedKernels opened(compile_kernels({stores}, host_target(), options));
    Tensor one = zeros({1}), index_seen = zeros({1}, i64);
    const bool stopped = opened.call("subject", {one, index_seen}) != 0;
    if (stopped) {
      EXPECT_EQ(opened.raised.code, KernelError::OutsideBuffer);
      EXPECT_NE(opened.raised.found, 0);
    } else {
      EXPECT_EQ(one.data_as<float>()[0], 1);
    }
  }
}

TEST(Bounds, OfScratch) {
  auto t = buffer("t", f32, {Dim(4)}), large = buffer("large", f32, {n, k}),
       product = buffer("product", f32, {k * k});
  auto c = buffer("c", f32, {n});
  const std::vector<Any> arguments{zeros({3}), int64_t{5}};
  auto with = [&](const Ref<const Buffer>& b, const Indices& where) {
    return kernel({}, {c}, scratch(b, put(b, where, number(1))), {"k"});
  };
  expect_runs(with(t, {index(3)}), arguments);
  expect_stopped(with(t, {index(4)}), arguments, 4, 4);
  expect_runs(with(large, {index(2), index(4)}), arguments);
  expect_stopped(with(large, {index(2), index(5)}), arguments, 5, 5);
  expect_stopped(with(large, {index(15)}), arguments, 15, 15);
  expect_stopped(with(product, {index(25)}), arguments, 25, 25);
  // 2^32 * 2^32 elements are not 0 elements.
  expect_stopped(with(product, {index(0)}), {zeros({3}), int64_t{1} << 32}, 0, 0,
                 KernelError::Overflow);
  // Nor are 2^62 elements of four bytes, of constant size: there is never memory for so many.
  auto endless = buffer("endless", f32, {Dim(int64_t{1} << 62)}),
       wide = buffer("wide", f32, {Dim(int64_t{1} << 31), Dim(int64_t{1} << 31)});
  for (const auto& b : {endless, wide}) {
    expect_stopped(with(b, {index(1 << 20)}), arguments, 0, 0, KernelError::Overflow);
  }
  // Each lane of a vector has its own scratch.
  auto lanes = [&](const ExprRef& where) {
    return kernel(
        {}, {c},
        nest(i, index(0), index(8), ForKind::kVector,
             scratch(t, seq({put(t, {where}, number(1)),
                             when(less(i, dim_value(n)), put(c, {i}, at(t, {where})))}))));
  };
  expect_runs(lanes(index(3)), {zeros({3})});
  expect_stopped(lanes(index(4)), {zeros({3})}, 4, 4);
  expect_stopped(lanes(i), {zeros({3})}, 4, 4);
}

TEST(Bounds, AnErrorNamesTheArgumentAndItsAxis) {
  auto a = buffer("a", f32, {n, m}), t = buffer("t", f32, {Dim(4)});
  auto raised = [&](const StmtRef& body) {
    OpenedKernels opened(compile_kernels({kernel({x}, {a}, body)}, host_target()));
    EXPECT_NE(opened.call("subject", {zeros({2}), zeros({2, 3})}), 0);
    return std::pair(opened.raised.argument, opened.raised.axis);
  };
  using Where = std::pair<int32_t, int32_t>;
  EXPECT_EQ(raised(put(a, {index(0), index(3)}, number(1))), Where(1, 1));
  EXPECT_EQ(raised(put(a, {index(6)}, number(1))), Where(1, -1));
  EXPECT_EQ(raised(put(a, {index(0)}, at(x, {index(2)}))), Where(0, 0));
  EXPECT_EQ(raised(scratch(t, put(t, {index(4)}, number(1)))), Where(-1, 0));
}

// A negative number of elements has no valid index; an unsigned comparison would accept all.
TEST(Bounds, OfCheckedIndicesIntoLessThanNothing) {
  for (ForKind kind : {ForKind::kSerial, ForKind::kVector}) {
    KernelRef reads = kernel(
        {x}, {y},
        nest(i, index(0), index(8), kind, put(y, {i}, at(x, {checked_index(i, n - Dim(100))}))));
    auto vouched = make<Kernel>(*reads);
    vouched->in_bounds = true;
    expect_stopped(vouched, {zeros({8}), zeros({8})}, 0, 0, KernelError::IndexOutOfRange);
    expect_stopped(reads, {zeros({8}), zeros({8})}, 0, 0, KernelError::IndexOutOfRange);
  }
}

// A size that the caller computes may be any value that fits the tensors.
TEST(Bounds, SizesDividedByZeroAreRefused) {
  auto a = buffer("a", f32, {floordiv(Dim(8), k)}), c = buffer("c", f32, {Dim(1)});
  KernelRef reads = kernel({a}, {c}, put(c, {index(0)}, at(a, {index(0)})), {"k"});
  expect_runs(reads, {zeros({4}), zeros({1}), int64_t{2}});
  expect_stopped(reads, {zeros({0}), zeros({1}), int64_t{0}}, 8, 0, KernelError::DivisionByZero);
}

}  // namespace
}  // namespace tenon::codegen
