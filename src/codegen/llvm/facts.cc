#include "codegen/llvm/facts.h"

#include <algorithm>
#include <numeric>

#include "loop/scalar_ops.h"
#include "loop/walk.h"
#include "support/rounding.h"

namespace tenon::codegen {

using loop::BinaryOp;
using loop::ExprKind;
using loop::ForKind;
using loop::StmtKind;

namespace {

constexpr int64_t kMaxLanes = 64;
constexpr int64_t kModerate = 1 << 24;  // keeps sums and products of two from overflowing

bool is_moderate(const LaneOffsets& offsets) {
  return std::ranges::all_of(offsets, [](int64_t v) { return v > -kModerate && v < kModerate; });
}

// Nothing is known of an integer whose numbers would become large.
Congruence congruent(int64_t modulus, int64_t remainder) {
  if (modulus != 0) remainder = floor_remainder(remainder, modulus);
  if (!is_moderate({modulus, remainder})) return {};
  return {modulus, remainder};
}

Congruence combined(BinaryOp op, const Congruence& a, const Congruence& b) {
  switch (op) {
    case BinaryOp::kAdd:
      return congruent(std::gcd(a.modulus, b.modulus), a.remainder + b.remainder);
    case BinaryOp::kSub:
      return congruent(std::gcd(a.modulus, b.modulus), a.remainder - b.remainder);
    case BinaryOp::kMul:
      return congruent(std::gcd(std::gcd(a.modulus * b.modulus, a.modulus * b.remainder),
                                b.modulus * a.remainder),
                       a.remainder * b.remainder);
    case BinaryOp::kFloorDiv:
      if (b.modulus != 0 || b.remainder <= 0 || a.modulus % b.remainder != 0) return {};
      return congruent(a.modulus / b.remainder, floor_quotient(a.remainder, b.remainder));
    case BinaryOp::kMod:
      if (b.modulus != 0 || b.remainder <= 0) return {};
      return congruent(a.modulus % b.remainder == 0 ? 0 : std::gcd(a.modulus, b.remainder),
                       floor_remainder(a.remainder, b.remainder));
    default:
      return {};
  }
}

// The quotients or remainders of integers by a period: what the first lane's place within its
// period leaves in no doubt. If the integers may wrap, so may they from one period to the next.
std::optional<LaneOffsets> within_periods(const LaneOffsets& offsets, const Congruence& first,
                                          int64_t period, bool is_remainder, bool may_wrap) {
  // The first lane is at `place` plus a multiple of `step` within its period.
  const int64_t step = std::gcd(first.modulus, period);
  const int64_t place = floor_remainder(first.remainder, step);
  LaneOffsets found;
  for (const int64_t offset : offsets) {
    const int64_t at = place + offset;
    // Unless the step is a whole period, only what is in the same step as the first lane is
    // certainly in the same period.
    const int64_t steps = floor_quotient(at, step);
    if (steps != 0 && (step != period || may_wrap)) return std::nullopt;
    found.push_back(is_remainder ? at - steps * step - place : steps);
  }
  return found;
}

}  // namespace

std::optional<unsigned> vector_width(const loop::For& loop) {
  if (loop.loop != ForKind::kVector) return std::nullopt;
  const auto extent = loop::as_int(loop.extent);
  if (!extent || *extent < 2 || *extent > kMaxLanes || (*extent & (*extent - 1)) != 0)
    return std::nullopt;
  return static_cast<unsigned>(*extent);
}

Facts::Facts(const loop::Kernel& kernel) : in_bounds_(kernel.in_bounds) {
  std::vector<std::pair<loop::StmtRef, unsigned>> pending = {{kernel.body, 1}};
  while (!pending.empty()) {
    auto [s, lanes] = std::move(pending.back());
    pending.pop_back();
    if (s->kind == StmtKind::kFor) {
      const auto& loop = static_cast<const loop::For&>(*s);
      if (loop.loop == ForKind::kVector || loop.loop == ForKind::kUnrolled) is_scheduled_ = true;
      lanes = vector_width(loop).value_or(lanes);
    } else if (s->kind == StmtKind::kAlloc) {
      unsigned& most = lanes_of_[static_cast<const loop::Alloc&>(*s).buffer.get()];
      most = std::max(most, lanes);
    }
    for (loop::StmtRef& child : loop::direct_bodies(*s))
      pending.emplace_back(std::move(child), lanes);
  }
}

unsigned Facts::lanes_of(const loop::Buffer& buffer) const {
  auto it = lanes_of_.find(&buffer);
  return it != lanes_of_.end() ? it->second : 1;
}

void Facts::define(const loop::Var& var, Definition definition) {
  auto [it, is_new] = definitions_.try_emplace(&var, definition);
  if (is_new || it->second == definition) return;
  // Sibling statements may bind the same variable: earlier facts no longer hold.
  it->second = definition;
  nonnegative_.clear();
  varies_.clear();
  lane_offsets_.clear();
}

const loop::Expr* Facts::let_value(const loop::Var& var) const {
  auto it = definitions_.find(&var);
  return it != definitions_.end() && it->second.is_let ? it->second.value : nullptr;
}

void Facts::enter(const VectorLoop& loop) {
  vector_ = loop;
}

void Facts::leave() {
  vector_ = {};
  varies_.clear();
  lane_offsets_.clear();
}

bool Facts::varies(const loop::Expr& e) {
  if (vector_.var == nullptr || e.kind == ExprKind::kLiteral) return false;
  auto [it, is_new] = varies_.try_emplace(&e, false);
  if (!is_new) return it->second;
  bool result = false;
  if (e.kind == ExprKind::kVar) {
    const auto& var = static_cast<const loop::Var&>(e);
    if (&var == vector_.var) {
      result = true;
    } else if (const loop::Expr* value = let_value(var)) {
      result = varies(*value);
    }
  } else {
    if (e.kind == ExprKind::kLoad) result = lanes_of(*static_cast<const loop::Load&>(e).buffer) > 1;
    loop::for_operands(e, [&](const loop::ExprRef& a) { result = varies(*a) || result; });
  }
  return varies_[&e] = result;
}

bool Facts::can_fail(const loop::Expr& e) {
  if (e.kind == ExprKind::kLoad || e.kind == ExprKind::kCheckedIndex) return true;
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kVar) return false;
  auto [it, is_new] = can_fail_.try_emplace(&e, false);
  if (!is_new) return it->second;
  bool result = false;
  if (e.kind == ExprKind::kBinary) {
    result = loop::can_fail(static_cast<const loop::Binary&>(e));
  }
  loop::for_operands(e, [&](const loop::ExprRef& a) { result = can_fail(*a) || result; });
  return can_fail_[&e] = result;
}

bool Facts::is_size(const loop::Expr& e) {
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kDimValue) return true;
  if (e.kind != ExprKind::kBinary) return false;
  if (auto known = is_size_.find(&e); known != is_size_.end()) return known->second;
  const auto& b = static_cast<const loop::Binary&>(e);
  const bool result = is_size(*b.a) && is_size(*b.b);
  is_size_[&e] = result;
  return result;
}

bool Facts::nonnegative(const loop::Expr& e) {
  auto it = nonnegative_.find(&e);
  if (it != nonnegative_.end()) return it->second;
  const bool result = find_nonnegative(e);
  nonnegative_[&e] = result;
  return result;
}

// Literals are kept small, so that values computed from them and from sizes are far from overflow.
bool Facts::find_nonnegative(const loop::Expr& e) {
  switch (e.kind) {
    case ExprKind::kLiteral: {
      auto v = loop::known_int(e);
      return v && *v >= 0 && *v < (int64_t{1} << 32);
    }
    case ExprKind::kDimValue:
      return proves_nonnegative(static_cast<const loop::DimValue&>(e).dim);
    case ExprKind::kVar: {
      auto definition = definitions_.find(static_cast<const loop::Var*>(&e));
      if (definition == definitions_.end()) return false;
      // A loop of a kernel that isn't in bounds may count past the largest integer.
      return (definition->second.is_let || in_bounds_) && nonnegative(*definition->second.value);
    }
    case ExprKind::kCheckedIndex:
      return true;
    case ExprKind::kBinary: {
      const auto& b = static_cast<const loop::Binary&>(e);
      if (!e.dtype.is_int()) return false;
      switch (b.op) {
        case BinaryOp::kMul:
          // Strides are sizes; a product of variables is data, and may wrap.
          return in_bounds_ && (is_size(*b.a) || is_size(*b.b)) && nonnegative(*b.a) &&
                 nonnegative(*b.b);
        case BinaryOp::kAdd:
          return in_bounds_ && nonnegative(*b.a) && nonnegative(*b.b);
        case BinaryOp::kMin:
        case BinaryOp::kFloorDiv:
        case BinaryOp::kDiv:
          return nonnegative(*b.a) && nonnegative(*b.b);
        case BinaryOp::kMod:
          return nonnegative(*b.b);
        default:
          return false;
      }
    }
    default:
      return false;
  }
}

// Looks only a few levels deep, which suffices for index arithmetic.
Congruence Facts::first_lane(const loop::Expr& e, int levels) {
  if (levels == 0) return {};
  if (auto v = loop::known_int(e)) return congruent(0, *v);
  if (e.kind == ExprKind::kVar) {
    const auto& var = static_cast<const loop::Var&>(e);
    if (&var == vector_.var) return vector_.begin;
    const loop::Expr* value = let_value(var);
    return value != nullptr ? first_lane(*value, levels - 1) : Congruence{};
  }
  if (e.kind != ExprKind::kBinary || e.dtype != i64) return {};
  const auto& operation = static_cast<const loop::Binary&>(e);
  const Congruence found = combined(operation.op, first_lane(*operation.a, levels - 1),
                                    first_lane(*operation.b, levels - 1));
  // Powers of two divide where an integer wraps; nothing else is left then.
  const bool may_wrap = !in_bounds_ && found.modulus != 0;
  return may_wrap ? congruent(found.modulus & -found.modulus, found.remainder) : found;
}

std::optional<int64_t> stride_of(const LaneOffsets& offsets) {
  const int64_t stride = offsets.size() > 1 ? offsets[1] : 0;
  for (size_t lane = 0; lane < offsets.size(); ++lane) {
    if (offsets[lane] != static_cast<int64_t>(lane) * stride) return std::nullopt;
  }
  return stride;
}

std::optional<int64_t> Facts::lane_stride(const loop::Expr& e) {
  const LaneOffsets* const offsets = lane_offsets(e);
  return offsets != nullptr ? stride_of(*offsets) : std::nullopt;
}

const LaneOffsets* Facts::lane_offsets(const loop::Expr& e) {
  if (!varies(e)) return &no_offsets_;
  auto it = lane_offsets_.find(&e);
  if (it == lane_offsets_.end()) it = lane_offsets_.emplace(&e, find_lane_offsets(e)).first;
  return it->second ? &*it->second : nullptr;
}

std::optional<LaneOffsets> Facts::find_lane_offsets(const loop::Expr& e) {
  if (e.kind == ExprKind::kVar) {
    const auto& var = static_cast<const loop::Var&>(e);
    LaneOffsets offsets(vector_.width);
    std::iota(offsets.begin(), offsets.end(), 0);
    if (&var == vector_.var) return offsets;
    const loop::Expr* value = let_value(var);
    const LaneOffsets* const known = value != nullptr ? lane_offsets(*value) : nullptr;
    return known != nullptr ? std::optional(*known) : std::nullopt;
  }
  if (e.kind != ExprKind::kBinary || e.dtype != i64) return std::nullopt;
  const auto& b = static_cast<const loop::Binary&>(e);
  const LaneOffsets *const left = lane_offsets(*b.a), *const right = lane_offsets(*b.b);
  if (left == nullptr || right == nullptr) return std::nullopt;
  if (!is_moderate(*left) || !is_moderate(*right)) return std::nullopt;
  const auto combined = [&](const auto& combine) {
    LaneOffsets offsets(vector_.width);
    for (size_t lane = 0; lane < offsets.size(); ++lane) {
      offsets[lane] =
          combine(left->empty() ? 0 : (*left)[lane], right->empty() ? 0 : (*right)[lane]);
    }
    return offsets;
  };
  switch (b.op) {
    case BinaryOp::kAdd:
      return combined([](int64_t x, int64_t y) { return x + y; });
    case BinaryOp::kSub:
      return combined([](int64_t x, int64_t y) { return x - y; });
    case BinaryOp::kMul: {
      const auto factor = loop::known_int(varies(*b.b) ? *b.a : *b.b);
      if (!factor || !is_moderate({*factor})) return std::nullopt;
      return combined([&](int64_t x, int64_t y) { return (x + y) * *factor; });  // one is 0
    }
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
      if (const auto period = loop::known_int(*b.b); period && *period > 0) {
        return within_periods(*left, first_lane(*b.a), *period, b.op == BinaryOp::kMod,
                              !in_bounds_);
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

bool Facts::can_vectorise(const loop::Stmt& s, bool masked) {
  switch (s.kind) {
    case StmtKind::kStore: {
      const auto& store = static_cast<const loop::Store&>(s);
      const bool is_private = lanes_of(*store.buffer) > 1;
      for (const loop::ExprRef& index : store.indices)
        if (lane_stride(*index) != 0) return !is_private;
      return is_private || (!masked && !varies(*store.value));
    }
    case StmtKind::kFor:  // has a constant extent: it is unrolled
      if (varies(*static_cast<const loop::For&>(s).begin)) return false;
      break;
    case StmtKind::kLet:
      define(static_cast<const loop::Let&>(s));
      break;
    case StmtKind::kIf:
      masked = masked || varies(*static_cast<const loop::If&>(s).condition);
      break;
    default:
      break;
  }
  const std::vector<loop::StmtRef> below = loop::direct_bodies(s);
  return std::all_of(below.begin(), below.end(),
                     [&](const loop::StmtRef& child) { return can_vectorise(*child, masked); });
}

}  // namespace tenon::codegen
