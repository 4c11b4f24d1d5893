#include "loop/emptiness.h"

#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kMostNodes = 64;  // of a condition: it is computed before each loop

ExprRef truth(bool value) {
  return literal_int(boolean, value);
}

bool is_constant(const ExprRef& condition, int64_t value) {
  const auto known = as_int(condition);
  return known && *known == value;
}

// Whether only sizes matter, and it can't fail.
bool is_of_sizes(const ExprRef& e) {
  if (count_nodes(e, kMostNodes) >= kMostNodes) return false;
  bool fits = true;
  post_order(e, [&](const ExprRef& node) {
    switch (node->kind) {
      case ExprKind::kLiteral:
      case ExprKind::kDimValue:
      case ExprKind::kSelect:
      case ExprKind::kCast:
        return;
      case ExprKind::kBinary:
        fits = fits && !can_fail(static_cast<const Binary&>(*node));
        return;
      default:
        fits = false;
    }
  });
  return fits;
}

}  // namespace

bool is_always_true(const ExprRef& condition) {
  return is_constant(condition, 1);
}

const ExprRef& Emptiness::may_act(const Stmt& s) {
  const auto [known, is_new] = known_.try_emplace(&s, nullptr);
  if (!is_new) return known->second;
  ExprRef condition = condition_of(s);  // adds others
  if (count_nodes(condition, kMostNodes) >= kMostNodes) condition = truth(true);
  return known_.at(&s) = condition;
}

bool Emptiness::may_fail(const ExprRef& e) const {
  bool fails = false;
  post_order(e, [&](const ExprRef& node) {
    fails = fails || can_fail(*node) || (!in_bounds_ && node->kind == ExprKind::kLoad);
  });
  return fails;
}

// Recursive as the nest is.
ExprRef Emptiness::condition_of(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kSeq: {
      ExprRef any = truth(false);
      for (const StmtRef& each : static_cast<const Seq&>(s).body) {
        any = binary(BinaryOp::kOr, any, may_act(*each));
        if (is_always_true(any)) break;
      }
      return any;
    }
    case StmtKind::kFor: {
      const auto& loop = static_cast<const For&>(s);
      if (may_fail(loop.begin) || may_fail(loop.extent)) return truth(true);
      const ExprRef turns =
          is_of_sizes(loop.extent) ? binary(BinaryOp::kLt, index(0), loop.extent) : truth(true);
      return binary(BinaryOp::kAnd, turns, may_act(*loop.body));
    }
    case StmtKind::kIf: {
      const auto& choice = static_cast<const If&>(s);
      if (choice.else_body || may_fail(choice.condition)) return truth(true);
      const ExprRef chosen = is_of_sizes(choice.condition) ? choice.condition : truth(true);
      return binary(BinaryOp::kAnd, chosen, may_act(*choice.then_body));
    }
    case StmtKind::kLet: {
      const auto& named = static_cast<const Let&>(s);
      return may_fail(named.value) ? truth(true) : may_act(*named.body);
    }
    case StmtKind::kAlloc:
      return may_act(*static_cast<const Alloc&>(s).body);
    case StmtKind::kPrefetch:
      return truth(false);
    case StmtKind::kStore:
      break;
  }
  return truth(true);
}

}  // namespace tenon::loop
