#include "loop/schedule.h"

#include <gtest/gtest.h>

#include "loop/test_tensors.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");

ComputeRef softmax() {
  auto x = buffer("x", f32, {n, m}), top = buffer("top", f32, {n}), sum = buffer("sum", f32, {n}),
       y = buffer("y", f32, {n, m});
  auto e = [&](const Indices& i) { return unary(UnaryOp::kExp, at(x, i) - at(top, {i[0]})); };
  return compute_of({x},
                    {reduce_stage(top, Reduction::kMax, {m},
                                  [&](const Indices& i, const Indices& r) {
                                    return at(x, {i[0], r[0]});
                                  }),
                     reduce_stage(sum, Reduction::kSum, {m},
                                  [&](const Indices& i, const Indices& r) {
                                    return e({i[0], r[0]});
                                  }),
                     map_stage(y, [&](const Indices& i) { return e(i) / at(sum, {i[0]}); })},
                    {y});
}

TEST(Schedule, PlainSoftmax) {
  ScheduleOptions options;
  options.name = "softmax";
  options.level = 0;
  EXPECT_EQ(to_text(*schedule(*softmax(), options)),
            R"(kernel softmax(x: float32[n, m]) -> y: float32[n, m]:
  scratch top: float32[n]
  scratch sum: float32[n]
  for i0 < n:
    scratch acc: float32[]
    acc[] = -inf
    for k0 < m:
      acc[] = max(acc[], x[i0, k0])
    top[i0] = acc[]
  for i0_1 < n:
    scratch acc_1: float32[]
    acc_1[] = 0.0
    for k0_1 < m:
      acc_1[] = acc_1[] + exp(x[i0_1, k0_1] - top[i0_1])
    sum[i0_1] = acc_1[]
  for i0_2 < n:
    for i1 < m:
      y[i0_2, i1] = exp(x[i0_2, i1] - top[i0_2]) / sum[i0_2]
)");
}

TEST(Schedule, UnboundSymbolsBecomeIntegers) {
  auto x = buffer("x", f32, {n * Dim(2)}), y = buffer("y", f32, {m + n});
  auto c = compute_of(
      {x}, {map_stage(y, [&](const Indices&) { return cast(f32, dim_value(k * n)); })}, {y});
  ScheduleOptions options;
  options.level = 0;
  KernelRef kernel = schedule(*c, options);
  std::string names;
  for (const String& s : kernel->integers) names += s.str() + " ";
  EXPECT_EQ(names, "n m k ");
}

TEST(Schedule, MalformedComputesAreReported) {
  auto x = buffer("x", f32, {n}), y = buffer("y", f32, {n});
  auto bad = compute_of({}, {map_stage(y, [&](const Indices& i) { return at(x, i); })}, {y});
  try {
    check(*bad);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Internal);
    EXPECT_NE(e.render().find("buffer x is an input or the result of an earlier stage"),
              std::string::npos)
        << e.render();
  }
}

TEST(Schedule, PlainLoopsAgreeWithTheCompute) {
  std::mt19937 rng(1);
  ScheduleOptions options;
  options.level = 0;
  Tensor x = random_tensor(f32, {3, 5}, &rng);
  ComputeRef c = softmax();
  expect_close(evaluate(*schedule(*c, options), {x})[0], evaluate(*c, {x})[0], 0);
}

}  // namespace
}  // namespace tenon::loop
