#include "codegen/llvm/facts.h"

#include <algorithm>

#include "loop/scalar_ops.h"
#include "loop/walk.h"

namespace tenon::codegen {

using loop::BinaryOp;
using loop::ExprKind;
using loop::ForKind;
using loop::StmtKind;

namespace {

constexpr int64_t kMaxLanes = 64;

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
  lane_strides_.clear();
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
  lane_strides_.clear();
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
int64_t Facts::first_lane_multiple(const loop::Expr& e, int levels) {
  if (levels == 0) return 1;
  constexpr int64_t kAny = int64_t{1} << 30;
  auto gcd = [](int64_t a, int64_t b) {
    while (b != 0) std::swap(a %= b, b);
    return a;
  };
  if (auto v = loop::known_int(e))
    return *v == 0 ? kAny : gcd(kAny, *v < 0 && *v != INT64_MIN ? -*v : *v);
  if (e.kind == ExprKind::kVar) {
    const auto& var = static_cast<const loop::Var&>(e);
    if (&var == vector_.var) return vector_.begin_multiple;
    const loop::Expr* value = let_value(var);
    return value != nullptr ? first_lane_multiple(*value, levels - 1) : 1;
  }
  if (e.kind != ExprKind::kBinary) return 1;
  const auto& b = static_cast<const loop::Binary&>(e);
  if (b.op == BinaryOp::kAdd || b.op == BinaryOp::kSub)
    return gcd(first_lane_multiple(*b.a, levels - 1), first_lane_multiple(*b.b, levels - 1));
  if (b.op == BinaryOp::kMul) {
    int64_t product = first_lane_multiple(*b.a, levels - 1);
    int64_t other = first_lane_multiple(*b.b, levels - 1);
    return other >= kAny / product ? kAny : product * other;
  }
  return 1;
}

std::optional<int64_t> Facts::lane_stride(const loop::Expr& e) {
  if (!varies(e)) return 0;
  auto it = lane_strides_.find(&e);
  if (it != lane_strides_.end()) return it->second;
  const auto result = find_lane_stride(e);
  lane_strides_[&e] = result;
  return result;
}

std::optional<int64_t> Facts::find_lane_stride(const loop::Expr& e) {
  if (e.kind == ExprKind::kVar) {
    const auto& var = static_cast<const loop::Var&>(e);
    if (&var == vector_.var) return 1;
    const loop::Expr* value = let_value(var);
    return value != nullptr ? lane_stride(*value) : std::nullopt;
  }
  if (e.kind != ExprKind::kBinary || e.dtype != i64) return std::nullopt;
  const auto& b = static_cast<const loop::Binary&>(e);
  auto left = lane_stride(*b.a), right = lane_stride(*b.b);
  if (!left || !right) return std::nullopt;
  auto small = [](int64_t v) { return v > -(1 << 24) && v < (1 << 24); };
  if (!small(*left) || !small(*right)) return std::nullopt;
  switch (b.op) {
    case BinaryOp::kAdd:
      return *left + *right;
    case BinaryOp::kSub:
      return *left - *right;
    case BinaryOp::kMul: {
      auto factor = loop::known_int(*b.b);
      if (*right == 0 && factor && small(*factor)) return *left * *factor;
      factor = loop::known_int(*b.a);
      if (*left == 0 && factor && small(*factor)) return *right * *factor;
      return std::nullopt;
    }
    // All lanes lie within one period if lane 0 is at a multiple of the width.
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod: {
      auto period = loop::known_int(*b.b);
      if (!period || *period <= 0 || *left != 1 || *period % vector_.width != 0 ||
          first_lane_multiple(*b.a) % vector_.width != 0)
        return std::nullopt;
      return b.op == BinaryOp::kMod ? 1 : 0;
    }
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
