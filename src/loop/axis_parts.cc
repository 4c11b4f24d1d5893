#include "loop/axis_parts.h"

#include <algorithm>
#include <optional>

#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kMostParts = 64;
constexpr int64_t kMostNodes = 1 << 18;  // of the bodies of all parts

// a < b or a <= b, where exactly one side is the variable plus a number and the other a number.
struct Comparison {
  bool is_less = false;  // than a number; otherwise greater
  int64_t bound = 0;     // v < bound is is_less
};

// Finds comparisons with the variable in expressions that share nodes.
class Comparisons {
 public:
  explicit Comparisons(const Ref<const Var>& v) : var_(v), coefficient_(v) {}

  std::optional<Comparison> operator()(const Expr& e) {
    if (e.kind != ExprKind::kBinary) return {};
    const auto& b = static_cast<const Binary&>(e);
    if ((b.op != BinaryOp::kLt && b.op != BinaryOp::kLe) || b.a->dtype != i64) return {};
    const bool or_equal = b.op == BinaryOp::kLe;
    constexpr int64_t kMost = int64_t{1} << 40;  // keeps the sums below from overflowing
    const auto is_moderate = [](int64_t n) { return n < kMost && n > -kMost; };
    const auto left = as_int(b.a), right = as_int(b.b);
    if (right && is_moderate(*right)) {
      const auto plus = distance(b.a);
      if (plus && is_moderate(*plus)) return Comparison{true, *right - *plus + or_equal};
    }
    if (left && is_moderate(*left)) {
      const auto plus = distance(b.b);
      if (plus && is_moderate(*plus)) return Comparison{false, *left - *plus + !or_equal};
    }
    return {};
  }

 private:
  // n in e = v + n.
  std::optional<int64_t> distance(const ExprRef& e) {
    const auto factor = coefficient_(e);
    if (!factor || !factor->is_const(1)) return {};
    return as_int(at_zero_(e));
  }

  Ref<const Var> var_;
  Coefficients coefficient_;
  Rewriter at_zero_{
      [this](const ExprRef& e) { return e.get() == var_.get() ? literal_int(i64, 0) : e; }};
};

}  // namespace

std::vector<AxisPart> parts_of(const ExprRef& body, const VarRange& axis) {
  const int64_t extent = axis.extent.as_const().value_or(0);
  std::vector<int64_t> bounds{0, extent};
  Comparisons comparison(axis.var);
  post_order(body, [&](const ExprRef& e) {
    const auto found = comparison(*e);
    if (found && found->bound > 0 && found->bound < extent) bounds.push_back(found->bound);
  });
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  const auto count = static_cast<int64_t>(bounds.size()) - 1;
  if (extent == 0 || count < 2 || count > kMostParts ||
      count_nodes(body, kMostNodes / count + 1) > kMostNodes / count) {
    return {{0, extent, body}};
  }
  std::vector<AxisPart> parts;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const int64_t begin = bounds[i], end = bounds[i + 1];
    Rewriter decide([&](const ExprRef& e) -> ExprRef {
      const auto found = comparison(*e);
      if (!found) return e;
      const bool below = end <= found->bound;  // otherwise begin >= bound
      return literal_int(boolean, below == found->is_less);
    });
    parts.push_back({begin, end, decide(body)});
  }
  return parts;
}

}  // namespace tenon::loop
