#include "loop/inline_stages.h"

#include <gtest/gtest.h>

#include "loop/tensors_testing.h"
#include "loop/word_product_testing.h"

namespace tenon::loop {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
const Ref<const Buffer> x = buffer("x", f32, {n, m});

ExprRef number(double v) {
  return literal(f32, v);
}

TEST(InlineStages, ElementwiseChainsBecomeOneStage) {
  auto a = buffer("a", f32, {n, m}), b = buffer("b", f32, {m, n}), y = buffer("y", f32, {m, n});
  auto c =
      compute_of({x},
                 {map_stage(a, [&](const Indices& i) { return unary(UnaryOp::kExp, at(x, i)); }),
                  map_stage(b,
                            [&](const Indices& i) {
                              return at(a, {i[1], i[0]});
                            }),
                  map_stage(y, [&](const Indices& i) { return at(b, i) + number(1); })},
                 {y});
  EXPECT_EQ(to_text(*inline_stages(c)),
            "compute(x: tensor[n, m; f32]) -> y:\n"
            "  y[i0 < m, i1 < n]: f32 = exp(x[i1, i0]) + 1.0\n");
}

TEST(InlineStages, ExpensiveWorkIsNotRepeated) {
  auto e = buffer("e", f32, {n, m}), sum = buffer("sum", f32, {n}), y = buffer("y", f32, {n, m});
  auto c =
      compute_of({x},
                 {map_stage(e, [&](const Indices& i) { return unary(UnaryOp::kExp, at(x, i)); }),
                  reduce_stage(sum, Reduction::kSum, {m},
                               [&](const Indices& i, const Indices& k) {
                                 return at(e, {i[0], k[0]});
                               }),
                  map_stage(y, [&](const Indices& i) { return at(e, i) / at(sum, {i[0]}); })},
                 {y});
  EXPECT_EQ(inline_stages(c)->stages.size(), 3u);
}

TEST(InlineStages, CheapWorkIsRepeated) {
  auto a = buffer("a", f32, {n, m}), sum = buffer("sum", f32, {n}), y = buffer("y", f32, {n, m});
  auto c = compute_of({x},
                      {map_stage(a, [&](const Indices& i) { return at(x, i) * number(2); }),
                       reduce_stage(sum, Reduction::kSum, {m},
                                    [&](const Indices& i, const Indices& k) {
                                      return at(a, {i[0], k[0]});
                                    }),
                       map_stage(y, [&](const Indices& i) { return at(a, i) - at(sum, {i[0]}); })},
                      {y});
  EXPECT_EQ(to_text(*inline_stages(c)),
            "compute(x: tensor[n, m; f32]) -> y:\n"
            "  sum[i0 < n]: f32 = sum over k0 < m of rounded(x[i0, k0] * 2.0)\n"
            "  y[i0_1 < n, i1 < m]: f32 = rounded(x[i0_1, i1] * 2.0) - sum[i0_1]\n");
}

TEST(InlineStages, RowValuesStayStages) {
  auto r = buffer("r", f32, {n}), y = buffer("y", f32, {n, m});
  auto c = compute_of({x},
                      {map_stage(r,
                                 [&](const Indices& i) {
                                   return number(1) / at(x, {i[0], index(0)});
                                 }),
                       map_stage(y, [&](const Indices& i) { return at(x, i) * at(r, {i[0]}); })},
                      {y});
  EXPECT_EQ(inline_stages(c)->stages.size(), 2u);
}

TEST(InlineStages, OutputsStayAndDeadStagesGo) {
  auto a = buffer("a", f32, {n, m}), b = buffer("b", f32, {n, m}), dead = buffer("dead", f32, {n});
  auto c = compute_of({x},
                      {map_stage(a, [&](const Indices& i) { return at(x, i) + number(1); }),
                       map_stage(dead, [&](const Indices&) { return number(0); }),
                       map_stage(b, [&](const Indices& i) { return at(a, i) + number(1); })},
                      {a, b});
  EXPECT_EQ(to_text(*inline_stages(c)),
            "compute(x: tensor[n, m; f32]) -> a, b:\n"
            "  a[i0 < n, i1 < m]: f32 = x[i0, i1] + 1.0\n"
            "  b[i0_1 < n, i1_1 < m]: f32 = a[i0_1, i1_1] + 1.0\n");
}

TEST(InlineStages, ProducersOfWindowsAndScattersAreInlined) {
  auto p = buffer("p", f32, {n + Dim(2)}), v = buffer("v", f32, {n}), y = buffer("y", f32, {n});
  auto pad = map_stage(p, [&](const Indices& i) {
    ExprRef in = binary(BinaryOp::kSub, i[0], index(1));
    ExprRef inside = binary(BinaryOp::kAnd, binary(BinaryOp::kLe, index(0), in),
                            binary(BinaryOp::kLt, in, dim_value(n)));
    return select(inside, at(v, {in}), number(0));
  });
  auto window = reduce_stage(y, Reduction::kSum, {Dim(3)}, [&](const Indices& i, const Indices& k) {
    return at(p, {i[0] + k[0]});
  });
  ComputeRef c = compute_of({v}, {pad, window}, {y});
  ComputeRef f = inline_stages(c);
  EXPECT_EQ(f->stages.size(), 1u);
  std::mt19937 rng(3);
  Tensor in = random_tensor(f32, {7}, &rng);
  expect_close(evaluate(*f, {in})[0], evaluate(*c, {in})[0], 0);
}

// A factor of a product that has fewer bits where it is stored is widened as the product packs it.
TEST(InlineStages, WideningJoinsAProduct) {
  for (const DataType stored : {u8, f32}) {
    auto x = buffer("x", f32, {5, 6}), w = buffer("w", stored, {6, 8}), s = buffer("s", f32, {8}),
         wide = buffer("wide", f32, {6, 8}), y = buffer("y", f32, {5, 8});
    auto widen = map_stage(wide, [&](const std::vector<ExprRef>& i) {
      const ExprRef e = cast(f32, load(w, Array<ExprRef>(i)));
      return binary(BinaryOp::kDiv, binary(BinaryOp::kDiv, e, load(s, {i[1]})), load(s, {i[1]}));
    });
    auto product = reduce_stage(
        y, Reduction::kSum, {6}, [&](const std::vector<ExprRef>& i, const std::vector<ExprRef>& k) {
          return binary(BinaryOp::kMul, load(x, {i[0], k[0]}), load(wide, {k[0], i[1]}));
        });
    const ComputeRef c = compute_of({x, w, s}, {widen, product}, {y});
    EXPECT_EQ(inline_stages(c)->stages.size(), stored == u8 ? 1u : 2u);
  }
}

// A dot product of bytes reads four elements as a word, which needs them side by side.
TEST(InlineStages, WhatIsReadInWordsIsStored) {
  const ComputeRef c = word_product(5, 1, 3, 8);
  auto source = buffer("source", u8, {5, 12});
  const auto& x = c->inputs[0];
  auto doubled = map_stage(x, [&](const std::vector<ExprRef>& i) {
    return binary(BinaryOp::kAdd, load(source, Array<ExprRef>(i)), load(source, Array<ExprRef>(i)));
  });
  const ComputeRef whole =
      compute_of({source, c->inputs[1]}, {doubled, c->stages[0]}, {c->outputs[0]});
  EXPECT_EQ(inline_stages(whole)->stages.size(), 2u);
}

}  // namespace
}  // namespace tenon::loop
