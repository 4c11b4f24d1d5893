#include "loop/work.h"

#include <algorithm>
#include <unordered_map>

#include "loop/walk.h"

namespace tenon::loop {
namespace {

class Estimate {
 public:
  explicit Estimate(const DimEnv& symbols) : symbols_(symbols) {}

  double of(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kStore:
        return 1;
      case StmtKind::kPrefetch:
        return 0;
      case StmtKind::kSeq: {
        double all = 0;
        for (const StmtRef& child : static_cast<const Seq&>(s).body) all += of(*child);
        return all;
      }
      case StmtKind::kFor: {
        const auto& loop = static_cast<const For&>(s);
        bind(*loop.var, value(loop.begin));
        const double turns = static_cast<double>(value(loop.extent).value_or(1));
        return std::max(turns, 0.0) * of(*loop.body);
      }
      case StmtKind::kIf: {
        const auto& choice = static_cast<const If&>(s);
        const double yes = of(*choice.then_body);
        return choice.else_body ? std::max(yes, of(*choice.else_body)) : yes;
      }
      case StmtKind::kLet: {
        const auto& let = static_cast<const Let&>(s);
        bind(*let.var, value(let.value));
        return of(*let.body);
      }
      case StmtKind::kAlloc:
        return of(*static_cast<const Alloc&>(s).body);
    }
    return 0;
  }

 private:
  void bind(const Var& var, std::optional<int64_t> value) {
    auto [it, is_new] = first_turn_.try_emplace(&var, value);
    if (is_new || it->second == value) return;
    // Sibling statements may bind the same variable: what follows from it no longer holds.
    it->second = value;
    known_.clear();
    seen_.clear();
  }

  std::optional<int64_t> value(const ExprRef& root) {
    post_order(
        root, [&](const ExprRef& e) { known_[e.get()] = find_value(*e); }, &seen_);
    return known_.at(root.get());
  }

  std::optional<int64_t> find_value(const Expr& e) const {
    switch (e.kind) {
      case ExprKind::kLiteral:
        return static_cast<const Literal&>(e).bits;
      case ExprKind::kDimValue:
        return evaluate(static_cast<const DimValue&>(e).dim, symbols_);
      case ExprKind::kVar: {
        auto known = first_turn_.find(static_cast<const Var*>(&e));
        return known == first_turn_.end() ? std::nullopt : known->second;
      }
      case ExprKind::kBinary:
        return binary_value(static_cast<const Binary&>(e));
      default:
        return std::nullopt;
    }
  }

  std::optional<int64_t> binary_value(const Binary& e) const {
    const auto a = known_.at(e.a.get()), b = known_.at(e.b.get());
    if (e.op == BinaryOp::kMin && (!a || !b)) return a ? a : b;
    if (!a || !b) return std::nullopt;
    int64_t result = 0;
    switch (e.op) {
      case BinaryOp::kAdd:
        return __builtin_add_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
      case BinaryOp::kSub:
        return __builtin_sub_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
      case BinaryOp::kMul:
        return __builtin_mul_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
      case BinaryOp::kFloorDiv:
        return *a >= 0 && *b > 0 ? std::optional(*a / *b) : std::nullopt;
      case BinaryOp::kMin:
        return std::min(*a, *b);
      case BinaryOp::kMax:
        return std::max(*a, *b);
      default:
        return std::nullopt;
    }
  }

  const DimEnv& symbols_;
  std::unordered_map<const Var*, std::optional<int64_t>> first_turn_;
  std::unordered_map<const Expr*, std::optional<int64_t>> known_;
  Seen seen_;  // the keys of known_
};

}  // namespace

double work_of(const Kernel& kernel, const DimEnv& symbols) {
  return Estimate(symbols).of(*kernel.body);
}

}  // namespace tenon::loop
