#include "loop/dim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "loop/dim_sum.h"
#include "loop/types.h"
#include "object/object_budget.h"
#include "object/reflect.h"
#include "support/error.h"

namespace tenon {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");

TEST(Dim, SumsAreCanonical) {
  EXPECT_EQ(n + m, m + n);
  EXPECT_EQ(n + n - n, n);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ((n + Dim(1)) * (n - Dim(1)), n * n - Dim(1));
  EXPECT_NE(n, m);
}

TEST(Dim, ManySizesAddUpAtOnce) {
  DimSum sum;
  EXPECT_EQ(sum.total(), Dim(0));
  sum.add(n * m + Dim(3));
  sum.add(k, -1);
  sum.add(Dim(0), 5);
  sum.add(n + k + k, 2);
  EXPECT_EQ(sum.total(), n * m + n + n + k + k + k + Dim(3));
  sum.add(Dim(INT64_MAX));
  EXPECT_THROW(sum.total(), Error);
}

TEST(Dim, PrintsAsGraphText) {
  EXPECT_EQ(to_text(n), "n");
  EXPECT_EQ(to_text(n * Dim(2) + Dim(1)), "2*n + 1");
  EXPECT_EQ(to_text(n - Dim(1)), "n - 1");
  EXPECT_EQ(to_text(Dim(0) - n * m - m), "-m*n - m");
  EXPECT_EQ(to_text(floordiv(n, Dim(2))), "floordiv(n, 2)");
  EXPECT_EQ(to_text(bcast(m, n)), "bcast(m, n)");
  EXPECT_EQ(to_text(mod(n + Dim(1), Dim(3)) * m), "m*mod(n + 1, 3)");
  EXPECT_EQ(to_text(Dim(-7)), "-7");
}

TEST(Dim, DivisionExtractsMultiples) {
  EXPECT_EQ(floordiv(n * Dim(4) + Dim(6), Dim(4)), n + Dim(1));
  EXPECT_EQ(to_text(floordiv(n * Dim(4) + m, Dim(4))), "n + floordiv(m, 4)");
  EXPECT_EQ(floordiv(n * Dim(2) + Dim(3), Dim(4)), floordiv(n + Dim(1), Dim(2)));
  EXPECT_EQ(floordiv(floordiv(n, Dim(2)), Dim(3)), floordiv(n, Dim(6)));
  EXPECT_EQ(floordiv(Dim(-7), Dim(2)), Dim(-4));
  EXPECT_EQ(floordiv(Dim(7), Dim(-2)), Dim(-4));
  EXPECT_EQ(floordiv(mod(n, Dim(4)), Dim(4)), Dim(0));
}

TEST(Dim, DivisionCancelsFactors) {
  EXPECT_EQ(floordiv(n * m * Dim(64), n * Dim(64)), m);
  EXPECT_EQ(floordiv((n + Dim(1)) * m, n + Dim(1)), m);
  EXPECT_EQ(floordiv(n * n - Dim(1), n - Dim(1)), n + Dim(1));
  EXPECT_EQ(floordiv(n * m, n * k), floordiv(m, k));
}

TEST(Dim, DivisionOfTheLeastCoefficient) {
  const Dim least(INT64_MIN), divisor = n + m;
  EXPECT_EQ(to_text(floordiv(least * divisor, divisor)),
            cat("floordiv(", to_text(least * divisor), ", ", to_text(divisor), ")"));
  EXPECT_EQ(floordiv(least * n, Dim(6)), floordiv(Dim(INT64_MIN / 2) * n, Dim(3)));
  EXPECT_FALSE(proves_nonnegative(min(n, least)));
  EXPECT_TRUE(proves_differ(least * n, Dim(1)));
}

TEST(Dim, RemaindersReduce) {
  EXPECT_EQ(mod(n * Dim(4) + Dim(6), Dim(4)), Dim(2));
  EXPECT_EQ(mod(n * Dim(2) + Dim(1), Dim(4)), mod(n, Dim(2)) * Dim(2) + Dim(1));
  EXPECT_EQ(mod(mod(n, Dim(12)), Dim(4)), mod(n, Dim(4)));
  EXPECT_EQ(mod(n * m, n), Dim(0));
  EXPECT_EQ(mod(Dim(-7), Dim(3)), Dim(2));
  EXPECT_EQ(mod(Dim(7), Dim(-3)), Dim(-2));
}

TEST(Dim, ExtremesDropCoveredArguments) {
  EXPECT_EQ(max(n, Dim(0)), n);
  EXPECT_EQ(max(n + Dim(1), n + Dim(3)), n + Dim(3));
  EXPECT_EQ(min(min(n, m), n + Dim(2)), min(m, n));
  EXPECT_EQ(min(n, n), n);
  EXPECT_EQ(max(Dim(2), Dim(5)), Dim(5));
}

TEST(Dim, BroadcastOfKnownSizes) {
  EXPECT_EQ(bcast(n, n), n);
  EXPECT_EQ(bcast(Dim(1), n), n);
  EXPECT_EQ(bcast(n, Dim(5)), Dim(5));
  EXPECT_EQ(bcast(bcast(n, m), n), bcast(n, m));
  EXPECT_EQ(bcast(n + Dim(2), m), n + Dim(2));
  EXPECT_THROW(bcast(Dim(2), Dim(3)), Error);
}

TEST(Dim, Proofs) {
  EXPECT_TRUE(proves_less_equal(floordiv(n, Dim(2)), n));
  EXPECT_TRUE(proves_less_equal(min(n, m), n));
  EXPECT_TRUE(proves_less_equal(n, max(n, m)));
  EXPECT_TRUE(proves_less_equal(n, Dim(4) * ceildiv(n, Dim(4))));
  EXPECT_TRUE(proves_less_equal(mod(n, m + Dim(1)), m));
  EXPECT_FALSE(proves_less_equal(n, m));
  EXPECT_FALSE(proves_nonnegative(n - m));
  EXPECT_TRUE(proves_differ(n, n + Dim(1)));
  EXPECT_TRUE(proves_differ(n * Dim(2), m * Dim(2) + Dim(1)));
  EXPECT_FALSE(proves_differ(n, m));
  // A proof by cases gives the sides of 3 a symbol, which isn't this one.
  EXPECT_FALSE(proves_equal(max(n, Dim(3)) - min(n, Dim(3)), Dim::symbol("n~")));
}

TEST(Dim, CasesOfMinAndMaxAreTriedApart) {
  // The sizes in GPT-2's causal mask: rows [n, n + 1) of 8, then the same again for the result.
  Dim rows = min(Dim(8), n + Dim(1)) - min(n, Dim(8));
  Dim again = max(Dim(0), min(Dim(8), n + rows) - min(n, Dim(8)));
  EXPECT_TRUE(proves_equal(rows, again));
  EXPECT_EQ(bcast(rows, again), rows);
  EXPECT_TRUE(proves_less_equal(rows, Dim(1)));
  EXPECT_FALSE(proves_equal(rows, Dim(1)));
  EXPECT_FALSE(proves_equal(min(n, Dim(3)), min(n, Dim(4))));
}

TEST(Dim, ErrorsOfConstants) {
  EXPECT_THROW(floordiv(n, Dim(0)), Error);
  EXPECT_THROW(mod(n, Dim(0)), Error);
  EXPECT_THROW(Dim(INT64_MAX) + Dim(1), Error);
  EXPECT_THROW(Dim(INT64_MAX) * n * Dim(2), Error);
  Dim deep = n;
  EXPECT_THROW(
      {
        for (int i = 0; i < 300; ++i) deep = floordiv(deep + m, k + Dim(2));
      },
      Error);
}

TEST(Dim, EvaluationKnowsWhatItCannot) {
  DimEnv none = [](std::string_view) { return std::optional<int64_t>(); };
  EXPECT_EQ(evaluate(n, none), std::nullopt);
  DimEnv big = [](std::string_view) { return std::optional<int64_t>(int64_t{1} << 40); };
  EXPECT_EQ(evaluate(n * m, big), std::nullopt);
  DimEnv env = [](std::string_view s) { return std::optional<int64_t>(s == "n" ? 3 : 2); };
  EXPECT_EQ(evaluate(bcast(n, m), env), std::nullopt);
  EXPECT_EQ(evaluate(n * m + Dim(1), env), 7);
}

TEST(Dim, SubstitutionCanonicalises) {
  Dim d = floordiv(n * m, Dim(4)) + n;
  Dim r = substitute(
      d, [](std::string_view s) { return s == "m" ? std::optional(Dim(8)) : std::nullopt; });
  EXPECT_EQ(r, n * Dim(3));
}

// A copy of the node without what construction adds to its fields, completed.
Dim completed(const Dim& d) {
  loop::register_loop_types();
  auto node = make<DimNode>();
  node->kind = d.node().kind;
  node->value = d.node().value;
  node->name = d.node().name;
  node->args = d.node().args;
  complete(*node);
  return Dim(Ref<const DimNode>(std::move(node)));
}

TEST(Dim, NodesFromOutsideAreCompleted) {
  for (const Dim& d : {Dim(7), n, n + m, n * Dim(3), Dim(2) * n * m + m + Dim(1), n * n,
                       floordiv(n, Dim(2)), mod(n, m), min(n, m), max(n, m), bcast(n, m)}) {
    const Dim again = completed(d);
    EXPECT_EQ(again, d);
    EXPECT_EQ(hash(again), hash(d));
    EXPECT_EQ(again.node().depth, d.node().depth);
  }
}

TEST(Dim, NodesFromOutsideThatArithmeticDoesNotMakeAreRefused) {
  loop::register_loop_types();
  using Args = std::vector<Dim>;
  const auto refused = [](DimKind kind, const Args& args, int64_t value = 0,
                          const char* name = "") {
    auto node = make<DimNode>();
    node->kind = kind;
    node->value = value;
    node->name = name;
    for (const Dim& a : args) node->args.push_back(Ref<const DimNode>(&a.node()));
    EXPECT_THROW(complete(*node), Error) << static_cast<int>(kind) << " of " << args.size();
  };
  for (DimKind kind : {DimKind::kAdd, DimKind::kMul, DimKind::kFloorDiv, DimKind::kMod,
                       DimKind::kMin, DimKind::kMax, DimKind::kBcast}) {
    refused(kind, {});
    refused(kind, {n});
    refused(kind, {n, m}, 1);
    refused(kind, {n, m}, 0, "k");
  }
  refused(DimKind::kFloorDiv, {n, m, n});
  refused(DimKind::kFloorDiv, {n, Dim(0)});
  refused(DimKind::kMod, {n, n});
  refused(DimKind::kAdd, {n, Dim(0)});
  refused(DimKind::kAdd, {n, n});
  refused(DimKind::kAdd, {n + m, n * n});
  refused(DimKind::kMul, {Dim(1), n});
  refused(DimKind::kMul, {n, Dim(2)});
  refused(DimKind::kMul, {n + m, n});
  refused(DimKind::kMin, {n, n});
  refused(DimKind::kSymbol, {});
  refused(DimKind::kConst, {n, m});
  refused(static_cast<DimKind>(9), {n, m});
}

TEST(Dim, NodesFromOutsideMayNotMakeTreesOfAnySize) {
  loop::register_loop_types();
  Dim d = n;
  EXPECT_THROW(for (int i = 0; i < 100; ++i) d = completed(floordiv(d, d + Dim(1))), Error);
}

// One is the name that a proof of another would choose.
constexpr const char* kNames[] = {"a", "a~", "b"};

// A random expression, and the same computed without canonicalisation.
struct Random {
  std::mt19937 rng{7};
  std::map<std::string, int64_t, std::less<>> values;

  int pick(int below) { return static_cast<int>(rng() % static_cast<unsigned>(below)); }
  static int64_t fdiv(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
  }
  std::pair<Dim, std::optional<int64_t>> make(int depth) {
    if (depth == 0 || pick(5) == 0) {
      if (pick(3) == 0) {
        int64_t v = pick(9) - 2;
        return {Dim(v), v};
      }
      const std::string name = kNames[pick(3)];
      return {Dim::symbol(name), values[name]};
    }
    auto [x, vx] = make(depth - 1);
    auto [y, vy] = make(depth - 1);
    std::optional<int64_t> none;
    bool ok = vx && vy;
    switch (pick(8)) {
      case 0:
        return {x + y, ok ? std::optional(*vx + *vy) : none};
      case 1:
        return {x - y, ok ? std::optional(*vx - *vy) : none};
      case 2:
        return {x * y, ok ? std::optional(*vx * *vy) : none};
      case 3:
      case 4:
        if (y.is_const(0)) return {x, vx};
        return {floordiv(x, y), ok && *vy != 0 ? std::optional(fdiv(*vx, *vy)) : none};
      case 5:
        if (y.is_const(0)) return {x, vx};
        return {mod(x, y), ok && *vy != 0 ? std::optional(*vx - fdiv(*vx, *vy) * *vy) : none};
      case 6:
        return {min(x, y), ok ? std::optional(std::min(*vx, *vy)) : none};
      default:
        return {max(x, y), ok ? std::optional(std::max(*vx, *vy)) : none};
    }
  }
};

// What stops the work as a whole isn't taken for a size that can't be expressed.
TEST(Dim, ProofsLeaveOtherErrorsAlone) {
  struct NoMemory : MemoryAccount {
    bool count_memory(size_t) override { return false; }
    void discount_memory(size_t) override {}
    void fail_memory(size_t) override {
      throw Error(ErrorKind::Runtime, "no memory").stopped_by(StopCause::Memory);
    }
  } account;
  const Dim a = n * m + k, b = n * k + m;
  const ObjectBudget budget(&account);
  EXPECT_THROW(proves_equal(a, b), Error);
  EXPECT_THROW(proves_nonnegative(a - b), Error);
  EXPECT_THROW(proves_less_equal(a, b), Error);
  EXPECT_THROW(proves_differ(a, b), Error);
}

TEST(Dim, RandomExpressionsKeepTheirValue) {
  Random r;
  DimEnv env = [&](std::string_view s) {
    auto it = r.values.find(s);
    return it == r.values.end() ? std::nullopt : std::optional(it->second);
  };
  int compared = 0;
  for (int i = 0; i < 4000; ++i) {
    for (const char* s : kNames) r.values[s] = r.pick(7);
    auto [d, v] = r.make(4);
    if (!v) continue;
    ++compared;
    ASSERT_EQ(evaluate(d, env), v) << to_text(d) << " for " << testing::PrintToString(r.values);
    // Bounds and proofs must hold for this value.
    if (auto lo = lower_bound(d)) {
      ASSERT_LE(*lo, *v) << to_text(d);
    }
    if (auto hi = upper_bound(d)) {
      ASSERT_GE(*hi, *v) << to_text(d);
    }
    if (proves_nonnegative(d)) {
      ASSERT_GE(*v, 0) << to_text(d);
    }
    auto [e, w] = r.make(3);
    if (!w) continue;
    if (proves_equal(d, e)) {
      ASSERT_EQ(*v, *w) << to_text(d);
    }
    if (proves_differ(d, e)) {
      ASSERT_NE(*v, *w) << to_text(d) << " and " << to_text(e);
    }
    if (proves_less_equal(d, e)) {
      ASSERT_LE(*v, *w) << to_text(d) << " and " << to_text(e);
    }
  }
  EXPECT_GT(compared, 2000);
}

}  // namespace
}  // namespace tenon
