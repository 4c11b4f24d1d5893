#include "loop/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loop/inline_stages.h"
#include "loop/random_compute_testing.h"
#include "loop/schedule_agreement_testing.h"
#include "loop/tensors_testing.h"
#include "loop/word_product_testing.h"
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
  options.level = ScheduleLevel::kPlain;
  EXPECT_EQ(to_text(*lower(*softmax(), "softmax", options)),
            R"(kernel softmax(x: tensor[n, m; f32]) -> y: tensor[n, m; f32]:
  scratch top: tensor[n; f32]
  scratch sum: tensor[n; f32]
  for i0 < n:
    scratch acc: tensor[f32]
    acc[] = -inf
    for k0 < m:
      acc[] = max(acc[], x[i0, k0])
    top[i0] = acc[]
  for i0_1 < n:
    scratch acc_1: tensor[f32]
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
  options.level = ScheduleLevel::kPlain;
  KernelRef kernel = lower(*c, "k", options);
  std::string names;
  for (const String& s : kernel->integers) names += s.str() + " ";
  EXPECT_EQ(names, "n m k ");
}

TEST(Schedule, MalformedComputesAreReported) {
  auto x = buffer("x", f32, {n}), y = buffer("y", f32, {n});
  try {
    compute_of({}, {map_stage(y, [&](const Indices& i) { return at(x, i); })}, {y});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Internal);
    EXPECT_NE(e.render().find("buffer x is an input or the result of an earlier stage"),
              std::string::npos)
        << e.render();
  }
}

// The sizes of parameters are described to native code, where a negative number is a symbol's
// place.
TEST(Schedule, NegativeSizesAreRefused) {
  const auto refused = [](const std::function<void()>& make, const std::string& rule) {
    try {
      make();
      FAIL() << rule;
    } catch (const Error& e) {
      EXPECT_NE(e.render().find(rule), std::string::npos) << e.render();
    }
  };
  auto x = buffer("x", f32, {n, Dim(-3)}), y = buffer("y", f32, {n});
  auto first = [&](const Indices& i) { return at(x, Indices{i[0], literal_int(i64, 0)}); };
  refused([&] { compute_of({x}, {map_stage(y, first)}, {y}); }, "a size of x isn't negative");
  auto z = buffer("z", f32, {Dim(-1)});
  auto one = [](const Indices&) { return literal(f32, 1); };
  refused([&] { compute_of({}, {map_stage(z, one)}, {z}); }, "a size of z isn't negative");
  auto sum = [&] {
    return reduce_stage(y, Reduction::kSum, {Dim(-2)},
                        [](const Indices&, const Indices&) { return literal(f32, 1); });
  };
  refused([&] { compute_of({}, {sum()}, {y}); }, "the extent of a reduced axis isn't negative");
  auto k = make<Kernel>();
  k->name = "k";
  k->inputs = {x};
  refused([&] { check(*k); }, "a size of x isn't negative");
}

// Sizes that no tensor has may stand in a file.
TEST(Schedule, TilingsOfTheLargestExtents) {
  const TargetFacts target;
  auto tiling = [&](std::optional<int64_t> columns, std::optional<int64_t> depth) {
    return tabled_tiling({f32, columns, depth}, target);
  };
  const Tiling any = tiling({}, {}), wide = tiling(INT64_MAX, {});
  EXPECT_EQ(wide.rows, any.rows);
  EXPECT_EQ(wide.vectors, any.vectors);
  EXPECT_EQ(tiling({}, int64_t{1} << 62).row_tiles, 1);
}

TEST(Schedule, ComputesOfTheLargestExtents) {
  for (int64_t extent : {INT64_MAX, INT64_MAX - 1, int64_t{1} << 62, int64_t{1} << 31}) {
    for (int axis = 0; axis < 3; ++axis) {
      Dim sizes[] = {n, m, k};
      sizes[axis] = Dim(extent);
      const auto [rows, columns, depth] = sizes;
      auto a = buffer("a", f32, {rows, depth}), b = buffer("b", f32, {depth, columns}),
           y = buffer("y", f32, {rows, columns}), z = buffer("z", f32, {rows, columns});
      const auto product =
          reduce_stage(y, Reduction::kSum, {depth}, [&](const Indices& i, const Indices& r) {
            return at(a, {i[0], r[0]}) * at(b, {r[0], i[1]});
          });
      const auto twice = map_stage(z, [&](const Indices& i) { return at(y, i) + at(y, i); });
      const auto compute = compute_of({a, b}, {product, twice}, {z});
      try {
        check(*lower(*compute, "k", {}));
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Usage) << e.render();
        EXPECT_NE(e.message().find("a size overflows 64 bits"), std::string::npos) << e.render();
      }
    }
  }
}

// Of intermediate results, whose sizes no tensor has checked.
TEST(Schedule, TheEvaluatorRefusesBuffersThatNoMemoryHolds) {
  auto x = buffer("x", f32, {n}), y = buffer("y", f32, {n});
  const Dim half = Dim(int64_t{1} << 32);
  auto huge = buffer("huge", f32, {half, half});
  const auto compute = compute_of({x},
                                  {map_stage(huge, [](const Indices&) { return literal(f32, 1); }),
                                   map_stage(y,
                                             [&](const Indices& i) {
                                               return at(huge, {i[0], i[0]}) + at(x, i);
                                             })},
                                  {y});
  try {
    evaluate(*compute, {Tensor::empty({2}, f32)});
    FAIL() << "it is evaluated";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    EXPECT_EQ(e.message(), "buffer huge exceeds the address space");
  }
}

TEST(Schedule, ReductionsAreOfTypesThatHaveTheirOperator) {
  auto t = buffer("t", boolean, {n}), x = buffer("x", f32, {n}), z = buffer("z", c64, {n});
  const auto rule = [&](const Ref<const Buffer>& in, Reduction reduction) {
    auto y = buffer("y", in->dtype, {});
    try {
      compute_of({in},
                 {reduce_stage(y, reduction, {n},
                               [&](const Indices&, const Indices& k) { return at(in, k); })},
                 {y});
    } catch (const Error& e) {
      return e.render();
    }
    return std::string();
  };
  EXPECT_NE(rule(t, Reduction::kSum).find("sums and products are of numbers"), std::string::npos);
  EXPECT_NE(rule(x, Reduction::kAnd).find("and, or combine integers or booleans"),
            std::string::npos);
  for (const Reduction r : {Reduction::kMax, Reduction::kSum, Reduction::kArgMaxFirst})
    EXPECT_NE(rule(z, r).find("complex numbers are only moved"), std::string::npos);
  EXPECT_EQ(rule(t, Reduction::kOr), "");
  EXPECT_EQ(rule(t, Reduction::kMax), "");
}

TEST(Schedule, AnInterfaceFollowsFromTheStages) {
  auto x = buffer("x", f32, {n}), y = buffer("y", f32, {n});
  const ComputeRef whole = compute_of(
      {x}, {map_stage(y, [&](const Indices& i) { return at(x, i) * cast(f32, dim_value(m)); })},
      {y});
  EXPECT_EQ(whole->integers.to_vector(), std::vector<String>{"m"});
  ASSERT_EQ(whole->in_place.size(), 1u);
  auto claims = make<Compute>(*whole);
  claims->integers = {};
  EXPECT_THROW(check_whole(*claims), Error);
  claims = make<Compute>(*whole);
  claims->in_place = {};
  EXPECT_THROW(check_whole(*claims), Error);
}

TEST(Schedule, AnOutputMayReplaceAnInputWhoseOnlyBatchIsReadAtZero) {
  auto whole = [](const Dim& rows, const Indices& read) {
    auto x = buffer("x", f32, {rows, n}), y = buffer("y", f32, {rows, n});
    return compute_of(
        {x},
        {map_stage(y,
                   [&](const Indices& i) {
                     return at(x, {read[0] ? read[0] : i[0], read[1] ? read[1] : i[1]});
                   })},
        {y});
  };
  EXPECT_EQ(whole(Dim(1), {index(0), nullptr})->in_place.size(), 1u);
  EXPECT_EQ(whole(Dim(1), {nullptr, nullptr})->in_place.size(), 1u);
  EXPECT_EQ(whole(Dim(2), {index(0), nullptr})->in_place.size(), 0u);
  EXPECT_EQ(whole(Dim(1), {index(0), index(0)})->in_place.size(), 0u);
}

TEST(Schedule, PlainLoopsAgreeWithTheCompute) {
  std::mt19937 rng(1);
  ScheduleOptions options;
  options.level = ScheduleLevel::kPlain;
  Tensor x = random_tensor(f32, {3, 5}, &rng);
  ComputeRef c = softmax();
  expect_close(evaluate(*lower(*c, "k", options), {x})[0], evaluate(*c, {x})[0], 0);
}

TEST(Schedule, Elementwise) {
  Agreement a;
  auto x = buffer("x", f32, {n, m}), y = buffer("y", f32, {n, m}), z = buffer("z", f32, {n, m});
  auto c = compute_of({x, y}, {map_stage(z, [&](const Indices& i) { return at(x, i) + at(y, i); })},
                      {z});
  for (int64_t cols : {0, 1, 3, 16, 37}) {
    a.check(c, {a.random({3, cols}), a.random({3, cols})});
  }
  KernelRef kernel = lower(*c, "k", {});
  EXPECT_EQ(
      to_text(*kernel),
      R"(kernel k(x: tensor[n, m; f32], y: tensor[n, m; f32]) -> z: tensor[n, m; f32] in_place(z = x) in_place(z = y):
  parallel for part < floordiv(m*n + 8191, 8192):
    let begin = part * 8192
    let count = min(8192, m*n - begin)
    for block < floordiv(count, 8):
      vector for i1 in begin + (block * 8) + [0, 8):
        z[i1] = x[i1] + y[i1]
    if (begin + (floordiv(count, 8) * 8)) < (begin + count):
      vector for i1 in begin + (floordiv(count, 8) * 8) + [0, 8):
        if i1 < (begin + count):
          z[i1] = x[i1] + y[i1]
)");
}

TEST(Schedule, Broadcasts) {
  Agreement a;
  auto x = buffer("x", f32, {n, m, k}), row = buffer("row", f32, {k}),
       col = buffer("col", f32, {m, Dim(1)}), one = buffer("one", f32, {}),
       maybe = buffer("maybe", f32, {Dim::symbol("p")}), y = buffer("y", f32, {n, m, k});
  auto c = compute_of({x, row, col, one, maybe},
                      {map_stage(y,
                                 [&](const Indices& i) {
                                   auto b = [&](const auto& t) {
                                     return load_broadcast(t, i, {n, m, k});
                                   };
                                   return at(x, i) * b(row) + b(col) * b(one) - b(maybe);
                                 })},
                      {y});
  for (int64_t cols : {1, 5, 19}) {
    for (int64_t p : {int64_t{1}, cols}) {
      a.check(c, {a.random({2, 3, cols}), a.random({cols}), a.random({3, 1}), a.random({}),
                  a.random({p})});
    }
  }
}

TEST(Schedule, Transpositions) {
  Agreement a;
  auto x = buffer("x", f32, {n, m, k});
  for (std::vector<size_t> order :
       {std::vector<size_t>{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}}) {
    std::vector<Dim> from{n, m, k}, to;
    for (size_t p : order) to.push_back(from[p]);
    auto y = buffer("y", f32, to);
    auto c = compute_of({x},
                        {map_stage(y,
                                   [&](const Indices& i) {
                                     Indices j(3);
                                     for (size_t d = 0; d < 3; ++d) j[order[d]] = i[d];
                                     return at(x, j);
                                   })},
                        {y});
    a.check(c, {a.random({3, 17, 9})});
    a.check(c, {a.random({2, 8, 16})});
  }
}

// Along an axis of `x` and `w`, which lie side by side or across the result.
TEST(Schedule, Concatenations) {
  Agreement a;
  for (size_t axis : {0, 1, 2}) {
    for (bool crosses : {false, true}) {
      for (int64_t size : {3, 35}) {
        std::vector<Dim> of_x{Dim(4), Dim(9), Dim(21)}, of_w = of_x, of_y = of_x;
        of_x[axis] = Dim(size);
        of_y[axis] = of_x[axis] + of_w[axis];
        if (crosses) std::swap(of_w[1], of_w[2]);
        auto x = buffer("x", f32, of_x), w = buffer("w", f32, of_w), y = buffer("y", f32, of_y);
        auto c = compute_of({x, w},
                            {map_stage(y,
                                       [&](const Indices& i) {
                                         Indices j = i;
                                         j[axis] = i[axis] - literal_int(i64, size);
                                         if (crosses) std::swap(j[1], j[2]);
                                         return select(
                                             binary(BinaryOp::kLt, i[axis], literal_int(i64, size)),
                                             at(x, i), unary(UnaryOp::kNeg, at(w, j)));
                                       })},
                            {y});
        auto random = [&](const std::vector<Dim>& shape) {
          return a.random({*shape[0].as_const(), *shape[1].as_const(), *shape[2].as_const()});
        };
        a.check(c, {random(of_x), random(of_w)});
      }
    }
  }
}

TEST(Schedule, Reductions) {
  Agreement a;
  auto x = buffer("x", f32, {n, m, k});
  for (Reduction r :
       {Reduction::kSum, Reduction::kMax, Reduction::kProd, Reduction::kArgMaxFirst}) {
    DataType t = is_arg_reduction(r) ? i64 : f32;
    auto inner = buffer("y", t, {n, m}), middle = buffer("y", t, {n, k}),
         outer = buffer("y", t, {m, k});
    std::vector<ComputeRef> all{compute_of({x},
                                           {reduce_stage(inner, r, {k},
                                                         [&](const Indices& i, const Indices& q) {
                                                           return at(x, {i[0], i[1], q[0]});
                                                         })},
                                           {inner}),
                                compute_of({x},
                                           {reduce_stage(middle, r, {m},
                                                         [&](const Indices& i, const Indices& q) {
                                                           return at(x, {i[0], q[0], i[1]});
                                                         })},
                                           {middle}),
                                compute_of({x},
                                           {reduce_stage(outer, r, {n},
                                                         [&](const Indices& i, const Indices& q) {
                                                           return at(x, {q[0], i[0], i[1]});
                                                         })},
                                           {outer})};
    for (const ComputeRef& c : all) {
      a.check(c, {a.random({2, 3, 5})}, 1e-4);
      a.check(c, {a.random({3, 2, 83})}, 1e-4);
      a.check(c, {a.random({1, 0, 3})});
    }
  }
  auto total = buffer("total", f32, {});
  auto c = compute_of({x},
                      {reduce_stage(total, Reduction::kSum, {n, m, k},
                                    [&](const Indices&, const Indices& q) { return at(x, q); })},
                      {total});
  a.check(c, {a.random({3, 5, 7})});
}

TEST(Schedule, RowsOfStages) {
  Agreement a;
  for (int64_t cols : {1, 7, 64, 130}) a.check(softmax(), {a.random({3, cols})});
  ScheduleOptions options;
  // The sums are in scratch of one row.
  EXPECT_NE(to_text(*lower(*softmax(), "k", options)).find("scratch top: tensor[f32]"),
            std::string::npos);
}

TEST(Schedule, MeanOverTheFirstAxisKeepsVectors) {
  Agreement a;
  auto x = buffer("x", f32, {n, m}), s = buffer("s", f32, {m}), y = buffer("y", f32, {m});
  auto c = compute_of(
      {x},
      {reduce_stage(s, Reduction::kSum, {n},
                    [&](const Indices& i, const Indices& q) {
                      return at(x, {q[0], i[0]});
                    }),
       map_stage(y, [&](const Indices& i) { return at(s, i) / cast(f32, dim_value(n)); })},
      {y});
  a.check(c, {a.random({5, 70})});
  a.check(c, {a.random({5, 3})});
}

// A row is one vector of 64 bytes or four of 16, so blocks take several rows, and of 11 rows some
// are left. Not a sum, which would be a product of matrices.
TEST(Schedule, ShortRowsOfResultsShareABlock) {
  Agreement a;
  auto x = buffer("x", f32, {Dim(3), Dim(6)}),
       panels = buffer("panels", f32, {Dim(11), Dim(6), Dim(16)}),
       y = buffer("y", f32, {Dim(3), Dim(11), Dim(16)});
  auto c = compute_of({x, panels},
                      {reduce_stage(y, Reduction::kMax, {Dim(6)},
                                    [&](const Indices& i, const Indices& r) {
                                      return at(x, {i[0], r[0]}) * at(panels, {i[1], r[0], i[2]});
                                    })},
                      {y});
  a.check(c, {a.random({3, 6}), a.random({11, 6, 16})});
  ScheduleOptions options;
  options.target = {16, 16};
  const std::string text = to_text(*lower(*c, "k", options));
  EXPECT_THAT(text, testing::HasSubstr("scratch acc: tensor[32; f32]"));
  EXPECT_THAT(text, testing::HasSubstr("scratch acc_1: tensor[16; f32]"));
}

TEST(Schedule, GatheredRows) {
  Agreement a;
  auto x = buffer("x", f32, {n, m}), at_row = buffer("rows", i64, {k}),
       y = buffer("y", f32, {k, m});
  auto c = compute_of({x, at_row},
                      {map_stage(y,
                                 [&](const Indices& i) {
                                   return at(x, {checked_index(at(at_row, {i[0]}), n), i[1]});
                                 })},
                      {y});
  a.check(c, {a.random({4, 19}), a.random({6}, i64, 4)});
  KernelRef kernel = lower(*c, "k", {});
  Tensor bad = a.random({1}, i64, 1);
  bad.data_as<int64_t>()[0] = 4;
  EXPECT_THROW(evaluate(*kernel, {a.random({4, 19}), bad}), Error);
  // No elements, no error.
  EXPECT_NO_THROW(evaluate(*kernel, {a.random({4, 0}), bad}));
}

// Pooling over windows of a padded image, channels last and channels first.
ComputeRef pooling(bool channels_last, Reduction r, Dim size = n, Dim channels = m) {
  Dim oh = floordiv(size + Dim(2) - Dim(3), Dim(2)) + Dim(1);
  auto x = buffer("x", f32,
                  channels_last ? std::vector<Dim>{size, size, channels}
                                : std::vector<Dim>{channels, size, size});
  auto y = buffer(
      "y", f32,
      channels_last ? std::vector<Dim>{oh, oh, channels} : std::vector<Dim>{channels, oh, oh});
  return compute_of(
      {x},
      {reduce_stage(
          y, r, {Dim(3), Dim(3)},
          [&](const Indices& i, const Indices& q) {
            const ExprRef &c = channels_last ? i[2] : i[0], &oy = channels_last ? i[0] : i[1],
                          &ox = channels_last ? i[1] : i[2];
            ExprRef iy = oy * index(2) + q[0] - index(1), ix = ox * index(2) + q[1] - index(1);
            auto inside = [&](const ExprRef& e) {
              return binary(BinaryOp::kAnd, binary(BinaryOp::kLe, index(0), e),
                            binary(BinaryOp::kLt, e, dim_value(size)));
            };
            ExprRef v = channels_last ? at(x, {iy, ix, c}) : at(x, {c, iy, ix});
            return select(binary(BinaryOp::kAnd, inside(iy), inside(ix)), v, identity(r, f32));
          })},
      {y});
}

TEST(Schedule, PaddedWindows) {
  Agreement a;
  for (Reduction r : {Reduction::kMax, Reduction::kSum}) {
    a.check(pooling(true, r), {a.random({5, 5, 21})});
    a.check(pooling(false, r), {a.random({2, 9, 9})});
    // Rows of one vector: each has loops of its own, since the padding bounds them.
    a.check(pooling(true, r, Dim(5), Dim(16)), {a.random({5, 5, 16})});
  }
  // Channels last: the padding bounds the loops, and nothing is guarded.
  EXPECT_EQ(to_text(*lower(*pooling(true, Reduction::kMax), "k", {})).find("select(0 <="),
            std::string::npos);
}

TEST(Schedule, MatrixProducts) {
  Agreement a;
  for (bool transposed : {false, true}) {
    for (const Dim& columns : {m, Dim(32), Dim(10)}) {
      auto x = buffer("x", f32, {n, k});
      auto w = buffer("w", f32,
                      transposed ? std::vector<Dim>{columns, k} : std::vector<Dim>{k, columns});
      auto bias = buffer("bias", f32, {columns}), p = buffer("p", f32, {n, columns}),
           y = buffer("y", f32, {n, columns});
      auto c = compute_of(
          {x, w, bias},
          {reduce_stage(p, Reduction::kSum, {k},
                        [&](const Indices& i, const Indices& q) {
                          return at(x, {i[0], q[0]}) *
                                 at(w, transposed ? Indices{i[1], q[0]} : Indices{q[0], i[1]});
                        }),
           map_stage(y,
                     [&](const Indices& i) {
                       return binary(BinaryOp::kMax, at(p, i) + at(bias, {i[1]}), literal(f32, 0));
                     })},
          {y});
      for (int64_t rows : {1, 5, 30}) {
        int64_t cols = columns.as_const().value_or(rows == 5 ? 70 : 3);
        for (int64_t depth : {0, 1, 9}) {
          a.check(
              c,
              {a.random({rows, depth}),
               transposed ? a.random({cols, depth}) : a.random({depth, cols}), a.random({cols})},
              1e-4);
        }
      }
    }
  }
}

// The state's new value may overwrite the old one, so that what follows can't compute it again.
TEST(Schedule, AStateThatAProductUpdatesInPlaceIsReadByWhatFollows) {
  Agreement a;
  auto x = buffer("x", f32, {n, k}), w = buffer("w", f32, {k, m}), h = buffer("h", f32, {n, m}),
       p = buffer("p", f32, {n, m}), t = buffer("t", f32, {n, m}), u = buffer("u", f32, {n, m}),
       v = buffer("v", f32, {n, m});
  const ComputeRef c =
      compute_of({x, w, h},
                 {reduce_stage(p, Reduction::kSum, {k},
                               [&](const Indices& i, const Indices& q) {
                                 return at(x, {i[0], q[0]}) * at(w, {q[0], i[1]});
                               }),
                  map_stage(t, [&](const Indices& i) { return at(h, i) + at(p, i); }),
                  map_stage(u, [&](const Indices& i) { return unary(UnaryOp::kTanh, at(t, i)); }),
                  map_stage(v, [&](const Indices& i) { return at(u, i) * at(t, i) + at(p, i); })},
                 {t, v});
  ASSERT_EQ(c->in_place.to_vector(), std::vector{InPlace(0, 2)});
  for (const int64_t rows : {1, 7}) {
    a.check(c, {a.random({rows, 9}), a.random({9, 40}), a.random({rows, 40})}, 1e-4);
  }
}

ComputeRef product(const Dim& rows, const Dim& depth, const Dim& columns) {
  auto x = buffer("x", f32, {rows, depth}), w = buffer("w", f32, {depth, columns}),
       y = buffer("y", f32, {rows, columns});
  return compute_of({x, w},
                    {reduce_stage(y, Reduction::kSum, {depth},
                                  [&](const Indices& i, const Indices& q) {
                                    return at(x, {i[0], q[0]}) * at(w, {q[0], i[1]});
                                  })},
                    {y});
}

// The registers hold the sums of a tile, the vectors of `w` at one step, and one element of `x`,
// which is done with before the next one is read.
TEST(Schedule, AProductGoesThroughATileRowByRow) {
  ScheduleOptions options;
  options.target = {16, 16};
  options.tiling = [](const auto&, const auto&) { return Tiling{.rows = 2, .vectors = 2}; };
  const std::string text = to_text(*lower(*product(2, 5, 8), "k", options));
  std::vector<std::string> elements;  // of x, in the order of their uses
  for (size_t from = text.find("for k"), at; (at = text.find("x[", from)) != std::string::npos;
       from = at + 1) {
    elements.push_back(text.substr(at, text.find(']', at) - at));
  }
  ASSERT_EQ(elements.size(), 4u) << text;
  EXPECT_EQ(elements[0], elements[1]);
  EXPECT_NE(elements[1], elements[2]);
  EXPECT_EQ(elements[2], elements[3]);
}

// Vectors of 16 floats, tiles of 24: 512 columns are 8 tiles of four vectors, 768 are 16 of three,
// and 320 are 5 of four rather than 7 of three, whose last would be almost empty.
TEST(Schedule, TilesFitTheColumns) {
  const auto vectors = [](std::optional<int64_t> columns) {
    const Tiling t = tabled_tiling({f32, columns, 256}, {64, 32});
    EXPECT_EQ(t.rows * t.vectors, 24) << t.rows;
    EXPECT_EQ(t.rows * t.row_tiles, 96) << t.rows;
    return t.vectors;
  };
  EXPECT_EQ(vectors({}), 4);
  EXPECT_EQ(vectors(512), 4);
  EXPECT_EQ(vectors(320), 4);
  EXPECT_EQ(vectors(768), 3);
  EXPECT_EQ(vectors(48), 3);
  EXPECT_EQ(vectors(33), 3);
  EXPECT_EQ(vectors(32), 2);
}

// Tiles of six rows: 8 and 13 are two of four and three of five.
TEST(Schedule, TilesShareTheRowsEvenly) {
  ScheduleOptions options;
  options.target = {16, 16};
  options.tiling = [](const auto&, const auto&) { return Tiling{.rows = 6, .vectors = 1}; };
  auto sums = [&](int64_t rows) { return to_text(*lower(*product(rows, 5, 8), "k", options)); };
  EXPECT_THAT(sums(8), testing::HasSubstr("scratch acc: tensor[16; f32]"));
  EXPECT_THAT(sums(13), testing::HasSubstr("scratch acc: tensor[20; f32]"));
  EXPECT_THAT(sums(18), testing::HasSubstr("scratch acc: tensor[24; f32]"));
  Agreement a;
  for (int64_t rows : {2, 7, 8, 13}) {
    a.check(product(rows, 5, 40), {a.random({rows, 5}), a.random({5, 40})}, 1e-4);
  }
}

// A summed axis is split where blocks of it share a scale, so that every load has a constant step.
TEST(Schedule, BlocksOfASummedAxis) {
  Agreement a;
  for (const int64_t depth : {32, 36}) {  // in whole blocks or not
    auto x = buffer("x", f32, {n, depth}), w = buffer("w", u8, {depth, Dim(24)}),
         s = buffer("s", f32, {ceildiv(Dim(depth), Dim(16)), Dim(24)}),
         y = buffer("y", f32, {n, Dim(24)});
    const auto c = compute_of(
        {x, w, s},
        {reduce_stage(
            y, Reduction::kSum, {depth},
            [&](const Indices& i, const Indices& q) {
              const ExprRef block = binary(BinaryOp::kFloorDiv, q[0], index(16));
              return at(x, {i[0], q[0]}) * (cast(f32, at(w, {q[0], i[1]})) * at(s, {block, i[1]}));
            })},
        {y});
    for (const int64_t rows : {1, 3, 20}) {
      a.check(
          c,
          {a.random({rows, depth}), a.random({depth, 24}, u8), a.random({(depth + 15) / 16, 24})},
          1e-3);
    }
    const std::string text = to_text(*lower(*c, "k", {}));
    EXPECT_EQ(text.find("_outer") != std::string::npos, depth == 32) << text;
  }
}

// The place of the greatest element is one on the whole axis, whatever divides its variable.
TEST(Schedule, ArgReductionsKeepTheirAxis) {
  Agreement a;
  auto x = buffer("x", f32, {n, Dim(8)}), s = buffer("s", f32, {Dim(2)}), y = buffer("y", i64, {n});
  const auto c = compute_of({x, s},
                            {reduce_stage(y, Reduction::kArgMaxFirst, {8},
                                          [&](const Indices& i, const Indices& q) {
                                            const ExprRef block =
                                                binary(BinaryOp::kFloorDiv, q[0], index(4));
                                            return at(x, {i[0], q[0]}) * at(s, {block});
                                          })},
                            {y});
  a.check(c, {a.random({50, 8}), a.random({2})}, 0);
}

// Words of four bytes are multiplied as elements are. Rows of one run are read in place; several
// runs of a window too, if they aren't short; others, and those of symbolic sizes, are packed.
TEST(Schedule, WordsOfBytes) {
  Agreement a;
  struct Size {
    int64_t rows, height, words, columns;
    bool in_place;
  };
  for (const auto& [rows, height, words, columns, in_place] :
       std::vector<Size>{{5, 1, 7, 20, true},
                         {14, 3, 5, 36, true},
                         {14, 3, 2, 36, false},
                         {3, 1, 600, 17, false},
                         {1, 1, 9, 32, true},
                         {9, 2, 4, 3, true}}) {
    const std::vector<Tensor> inputs = {a.random({rows + height - 1, words * 4 + 4}, u8),
                                        a.random({height, words, columns}, i32)};
    for (const bool x_second : {false, true}) {
      const auto compute = word_product(rows, height, words, columns, x_second);
      a.check(compute, inputs, 0);
      EXPECT_EQ(to_text(*lower(*compute, "k", {})).find("a_pack") == std::string::npos, in_place)
          << to_text(*lower(*compute, "k", {}));
    }
    a.check(word_product(n - (height - 1), height, m, k), inputs, 0);
  }
}

// 37 columns in panels of 16, the last of which has 11 more.
TEST(Schedule, ColumnsBeyondTheLastAreNotStored) {
  Agreement a;
  const Dim columns(37), width(16);
  for (const Dim& rows : {Dim(1), Dim(2), Dim(7), n}) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kMax}) {
      auto x = buffer("x", f32, {rows, k}), w = buffer("w", f32, {Dim(3), k, width}),
           bias = buffer("bias", f32, {columns}), p = buffer("p", f32, {rows, columns}),
           y = buffer("y", f32, {rows, columns});
      auto c =
          compute_of({x, w, bias},
                     {reduce_stage(p, reduction, {k},
                                   [&](const Indices& i, const Indices& q) {
                                     ExprRef by = dim_value(width);
                                     ExprRef panel = binary(BinaryOp::kFloorDiv, i[1], by),
                                             column = binary(BinaryOp::kMod, i[1], by);
                                     return at(x, {i[0], q[0]}) * at(w, {panel, q[0], column});
                                   }),
                      map_stage(y, [&](const Indices& i) { return at(p, i) + at(bias, {i[1]}); })},
                     {y, p});
      for (int64_t depth : {1, 5}) {
        for (int64_t given : {1, 3, 20}) {
          a.check(c,
                  {a.random({rows.as_const().value_or(given), depth}), a.random({3, depth, 16}),
                   a.random({37})},
                  1e-4);
        }
      }
      ScheduleOptions options;
      options.target = {32, 16};
      const std::string text = to_text(*lower(*c, "k", options));
      EXPECT_EQ(text.find("b_pack"), std::string::npos);
      EXPECT_THAT(text, testing::HasSubstr("< 37"));
    }
  }
}

TEST(Schedule, BatchedProductsOfHeads) {
  // x[n, k, 3 * 4] in heads, times itself: q[n, 3, k, 4] . q[n, 3, k, 4] -> [n, 3, k, k]
  Agreement a;
  auto x = buffer("x", f32, {n, k, Dim(12)}), y = buffer("y", f32, {n, Dim(3), k, k});
  auto c = compute_of({x},
                      {reduce_stage(y, Reduction::kSum, {Dim(4)},
                                    [&](const Indices& i, const Indices& q) {
                                      ExprRef d = i[1] * index(4) + q[0];
                                      return at(x, {i[0], i[2], d}) * at(x, {i[0], i[3], d});
                                    })},
                      {y});
  a.check(c, {a.random({2, 7, 12})}, 1e-4);
  a.check(c, {a.random({1, 20, 12})}, 1e-4);
}

ComputeRef convolution(int64_t groups, bool channels_last, int64_t in, int64_t out) {
  Dim oh = floordiv(n + Dim(2) - Dim(3), Dim(2)) + Dim(1);
  Dim ic(in), oc(out), per(in / groups);
  auto x = buffer("x", f32,
                  channels_last ? std::vector<Dim>{m, n, n, ic} : std::vector<Dim>{m, ic, n, n});
  auto w = buffer(
      "w", f32, channels_last ? std::vector<Dim>{3, 3, per, oc} : std::vector<Dim>{oc, per, 3, 3});
  auto p = buffer(
      "p", f32, channels_last ? std::vector<Dim>{m, oh, oh, oc} : std::vector<Dim>{m, oc, oh, oh});
  auto y = buffer("y", f32, p->shape.to_vector());
  std::vector<Dim> extents =
      channels_last ? std::vector<Dim>{3, 3, per} : std::vector<Dim>{per, 3, 3};
  auto sum = reduce_stage(p, Reduction::kSum, extents, [&](const Indices& i, const Indices& q) {
    const ExprRef &o = i[channels_last ? 3 : 1], &oy = i[channels_last ? 1 : 2],
                  &ox = i[channels_last ? 2 : 3];
    const ExprRef &r = q[channels_last ? 2 : 0], &ky = q[channels_last ? 0 : 1],
                  &kx = q[channels_last ? 1 : 2];
    ExprRef iy = oy * index(2) + ky - index(1), ix = ox * index(2) + kx - index(1);
    ExprRef c = groups == 1
                    ? r
                    : binary(BinaryOp::kFloorDiv, o, index(out / groups)) * index(in / groups) + r;
    auto inside = [&](const ExprRef& e) {
      return binary(BinaryOp::kAnd, binary(BinaryOp::kLe, index(0), e),
                    binary(BinaryOp::kLt, e, dim_value(n)));
    };
    ExprRef v = channels_last ? at(x, {i[0], iy, ix, c}) : at(x, {i[0], c, iy, ix});
    v = select(binary(BinaryOp::kAnd, inside(iy), inside(ix)), v, literal(f32, 0));
    return v * at(w, channels_last ? Indices{ky, kx, r, o} : Indices{o, r, ky, kx});
  });
  return compute_of({x, w},
                    {sum, map_stage(y,
                                    [&](const Indices& i) {
                                      return binary(BinaryOp::kMax, at(p, i), literal(f32, 0));
                                    })},
                    {y});
}

TEST(Schedule, Convolutions) {
  Agreement a;
  for (int64_t groups : {1, 2, 6}) {
    a.check(convolution(groups, true, 6, 12),
            {a.random({2, 5, 5, 6}), a.random({3, 3, 6 / groups, 12})}, 1e-4);
    a.check(convolution(groups, false, 6, 12),
            {a.random({2, 6, 5, 5}), a.random({12, 6 / groups, 3, 3})}, 1e-4);
  }
  a.check(convolution(20, true, 20, 20), {a.random({1, 5, 5, 20}), a.random({3, 3, 1, 20})}, 1e-4);
}

TEST(Schedule, ReshapesBetweenTranspositionsAreStrides) {
  // Channels [n, 12] in 3 groups of 4, shuffled: c -> (c % 4) * 3 + c / 4, by a reshape's
  // arithmetic.
  Agreement a;
  auto x = buffer("x", f32, {n, Dim(12), m}), y = buffer("y", f32, {n, Dim(12), m});
  auto c = compute_of(
      {x},
      {map_stage(y,
                 [&](const Indices& i) {
                   ExprRef flat = (i[0] * index(12) + i[1]) * dim_value(m) + i[2];
                   auto div = [](const ExprRef& e, const Dim& d) {
                     return binary(BinaryOp::kFloorDiv, e, dim_value(d));
                   };
                   auto rem = [](const ExprRef& e, const Dim& d) {
                     return binary(BinaryOp::kMod, e, dim_value(d));
                   };
                   ExprRef q = rem(div(flat, m), 3), p = rem(div(flat, m * Dim(3)), 4);
                   return at(x, {div(flat, m * Dim(12)), q * index(4) + p, rem(flat, m)});
                 })},
      {y});
  a.check(c, {a.random({2, 12, 5})});
  std::string text = to_text(*lower(*c, "k", {}));
  EXPECT_EQ(text.find("mod("), text.find("mod(part")) << text;
}

TEST(Schedule, RandomComputesAgreeAtEveryLevel) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    RandomCompute r(seed);
    SCOPED_TRACE(cat("seed ", seed, "\n", to_text(*r.compute())));
    std::vector<Tensor> expected = evaluate(*r.compute(), r.inputs(), r.symbols());
    ComputeRef inlined = inline_stages(r.compute());
    for (ScheduleLevel level : {ScheduleLevel::kPlain, ScheduleLevel::kShaped}) {
      ScheduleOptions options;
      options.level = level;
      options.target.vector_bytes = seed % 2 ? 16 : 32;
      KernelRef kernel = lower(*inlined, "k", options);
      std::vector<Tensor> found = evaluate(*kernel, r.inputs(), r.symbols());
      for (size_t i = 0; i < found.size(); ++i) {
        expect_close(found[i], expected[i], 1e-3);
        if (HasFatalFailure()) {
          ADD_FAILURE() << to_text(*kernel);
          return;
        }
      }
    }
  }
}

// Words whose parts are shared, so that there are 2^100 paths to them, and words of many levels.
TEST(Schedule, WordsOfManyParts) {
  auto x = buffer("x", i32, {Dim(16), Dim(64)}), w = buffer("w", i32, {Dim(64), Dim(64)}),
       y = buffer("y", i32, {Dim(16), Dim(64)});
  const auto product = [&](const std::function<ExprRef(const ExprRef& element)>& word) {
    return compute_of(
        {x, w},
        {reduce_stage(
            y, Reduction::kSum, {Dim(64)},
            [&](const Indices& i, const Indices& r) {
              return binary(BinaryOp::kByteDot, word(at(x, {i[0], r[0]})), at(w, {r[0], i[1]}));
            })},
        {y});
  };
  const auto joined = [](const ExprRef& a, const ExprRef& b) {
    return binary(BinaryOp::kOr, a, b);
  };
  const auto moved = [](const ExprRef& e) {
    return binary(BinaryOp::kShl, e, literal_int(i32, 1));
  };
  check(*lower(*product([&](ExprRef word) {
    for (int level = 0; level < 100; ++level) word = joined(word, moved(word));
    return word;
  }),
               "k", {}));
  check(*lower(*product([&](const ExprRef& element) {
    ExprRef word = moved(element);
    for (int level = 0; level < 200'000; ++level) word = joined(word, element);
    return word;
  }),
               "k", {}));
}

// Each load's index is followed along each axis, unless that would take too long.
TEST(Schedule, LoadsThatShareALargeIndexHavePlainLoops) {
  auto x = buffer("x", f32, {Dim(4096)}), y = buffer("y", f32, {Dim(1024)});
  const auto has_vectors = [&](int64_t loads) {
    const ComputeRef c =
        compute_of({x},
                   {map_stage(y,
                              [&](const Indices& i) {
                                ExprRef place = i[0], sum = literal(f32, 0);
                                for (int64_t j = 0; j < loads; ++j) {
                                  place = binary(BinaryOp::kMax, place, i[0] + index(j));
                                }
                                for (int64_t j = 0; j < loads; ++j) {
                                  sum = sum + at(x, {place + index(j)});
                                }
                                return sum;
                              })},
                   {y});
    return to_text(*lower(*c, "k", {})).find("vector") != std::string::npos;
  };
  EXPECT_TRUE(has_vectors(64));
  EXPECT_FALSE(has_vectors(1000));
}

}  // namespace
}  // namespace tenon::loop
