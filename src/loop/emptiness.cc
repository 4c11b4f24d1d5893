#include "loop/emptiness.h"

#include <algorithm>

#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kMostNodes = 64;  // of a condition

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

// The condition, unless it is too large to be computed before each loop.
ExprRef simple(const ExprRef& condition) {
  return count_nodes(condition, kMostNodes) >= kMostNodes ? truth(true) : condition;
}

}  // namespace

bool is_always_true(const ExprRef& condition) {
  return is_constant(condition, 1);
}

const Emptiness::Known& Emptiness::known(const Stmt& s) {
  if (const auto found = known_.find(&s); found != known_.end()) return found->second;
  Known made{effects_of(s), truth(false)};  // adds others
  for (Effect& e : made.effects) {
    e.condition = simple(e.condition);
    made.any = binary(BinaryOp::kOr, made.any, e.condition);
  }
  made.any = simple(made.any);
  return known_.emplace(&s, std::move(made)).first->second;
}

bool Emptiness::may_fail(const ExprRef& e) const {
  bool fails = false;
  post_order(e, [&](const ExprRef& node) {
    fails = fails || can_fail(*node) || (!in_bounds_ && node->kind == ExprKind::kLoad);
  });
  return fails;
}

Emptiness::Effects Emptiness::effects_where(const ExprRef& condition, const Stmt& body) {
  Effects effects = known(body).effects;
  for (Effect& e : effects) e.condition = binary(BinaryOp::kAnd, condition, e.condition);
  return effects;
}

// Recursive as the nest is.
Emptiness::Effects Emptiness::effects_of(const Stmt& s) {
  const Effects failure = {{nullptr, truth(true)}};
  switch (s.kind) {
    case StmtKind::kSeq: {
      Effects all;
      for (const StmtRef& each : static_cast<const Seq&>(s).body) {
        for (const Effect& e : known(*each).effects) {
          const auto same = std::ranges::find(all, e.buffer, &Effect::buffer);
          if (same == all.end()) {
            all.push_back(e);
          } else {
            same->condition = simple(binary(BinaryOp::kOr, same->condition, e.condition));
          }
        }
      }
      return all;
    }
    case StmtKind::kFor: {
      const auto& loop = static_cast<const For&>(s);
      if (may_fail(loop.begin) || may_fail(loop.extent)) return failure;
      const ExprRef turns =
          is_of_sizes(loop.extent) ? binary(BinaryOp::kLt, index(0), loop.extent) : truth(true);
      return effects_where(turns, *loop.body);
    }
    case StmtKind::kIf: {
      const auto& choice = static_cast<const If&>(s);
      if (choice.else_body || may_fail(choice.condition)) return failure;
      const ExprRef chosen = is_of_sizes(choice.condition) ? choice.condition : truth(true);
      return effects_where(chosen, *choice.then_body);
    }
    case StmtKind::kLet: {
      const auto& named = static_cast<const Let&>(s);
      return may_fail(named.value) ? failure : known(*named.body).effects;
    }
    case StmtKind::kAlloc: {
      const auto& scratch = static_cast<const Alloc&>(s);
      Effects effects = known(*scratch.body).effects;
      std::erase_if(effects, [&](const Effect& e) { return e.buffer == scratch.buffer.get(); });
      return effects;
    }
    case StmtKind::kPrefetch:
      return {};
    case StmtKind::kStore:
      break;
  }
  const auto& stored = static_cast<const Store&>(s);
  Effects effects = {{stored.buffer.get(), truth(true)}};
  const bool fails =
      !in_bounds_ || may_fail(stored.value) ||
      std::ranges::any_of(stored.indices, [&](const ExprRef& e) { return may_fail(e); });
  if (fails) effects.push_back(failure.front());
  return effects;
}

}  // namespace tenon::loop
