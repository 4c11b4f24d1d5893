#include "loop/excess_precision.h"

#include <unordered_map>
#include <unordered_set>

#include "loop/walk.h"

namespace tenon::loop {
namespace {

bool is_half(DataType t) {
  return t == f16 || t == bf16;
}

// Whether the node's value is computed in f32 and then rounded: not moved, and not converted.
bool is_rounded_result(const Expr& e) {
  return is_half(e.dtype) &&
         (e.kind == ExprKind::kUnary || e.kind == ExprKind::kBinary || e.kind == ExprKind::kSelect);
}

const Cast* as_conversion(const ExprRef& e) {
  if (e->kind != ExprKind::kCast) return nullptr;
  const auto& conversion = static_cast<const Cast&>(*e);
  return conversion.keeps_bits ? nullptr : &conversion;
}

// The buffer that `e` loads from; null if it isn't a load.
const Buffer* loaded(const ExprRef& e) {
  return e->kind == ExprKind::kLoad ? static_cast<const Load&>(*e).buffer.get() : nullptr;
}

class Widener {
 public:
  explicit Widener(const Compute& compute) : compute_(compute) {
    for (const auto& b : compute.outputs) kept_.insert(b.get());
    for (const auto& s : compute.stages) {
      if (s->kind == StageKind::kScan || s->kind == StageKind::kScatter) kept_.insert(s->out.get());
      if (holds_converted(*s)) converted_.insert(s->out.get());
    }
    keep_converted_back();
  }

  ComputeRef run() {
    std::vector<Ref<const Stage>> stages;
    for (const auto& s : compute_.stages) stages.push_back(stage(s));
    auto result = make<Compute>(compute_);
    result->stages = Array<Ref<const Stage>>(stages);
    return result;
  }

 private:
  // Whether a stage's result is what a conversion gives, perhaps moved.
  bool holds_converted(const Stage& s) const {
    const Buffer* moved = loaded(s.body);
    return as_conversion(s.body) || (moved && converted_.contains(moved));
  }

  // Where the program converts numbers only to convert them back, it wants them rounded.
  void keep_converted_back() {
    for (size_t i = compute_.stages.size(); i-- > 0;) {
      const Stage& s = *compute_.stages[i];
      for_each_expr(s, [&](const ExprRef& e) {
        const Cast* back = as_conversion(e);
        const Buffer* from = back ? loaded(back->a) : nullptr;
        if (from && converted_.contains(from)) kept_.insert(from);
      });
      const Buffer* moved = loaded(s.body);
      if (moved && kept_.contains(s.out.get()) && converted_.contains(moved)) kept_.insert(moved);
    }
  }

  Ref<const Stage> stage(const Ref<const Stage>& s) {
    auto result = make<Stage>(*s);
    result->body = rewrite_(s->body);
    if (s->update) result->update = rewrite_(s->update);
    result->scatter_indices = s->scatter_indices.map([&](const ExprRef& e) { return rewrite_(e); });
    const ExprRef* exact = unrounded(result->body);
    const Cast* conversion = as_conversion(result->body);
    if (!exact && conversion && conversion->a->dtype == f32) exact = &conversion->a;
    // A sum is of f32, whatever the type of its terms.
    const bool sums = s->kind == StageKind::kReduce && s->accumulate == f32;
    if (sums && exact) result->body = *exact;
    if (!is_half(s->out->dtype) || kept_.contains(s->out.get()) || s->axes.empty()) return result;
    if (!sums && !exact) return result;
    if (exact) result->body = *exact;
    result->out = buffer(s->out->name.view(), f32, s->out->shape.to_vector());
    wide_[s->out.get()] = result->out;
    return result;
  }

  // The f32 value whose rounding `e`, a node that this made, is; null if there is none.
  const ExprRef* unrounded(const ExprRef& e) const {
    auto it = unrounded_.find(e.get());
    return it == unrounded_.end() ? nullptr : &it->second.exact;
  }

  ExprRef rounding(const ExprRef& exact, DataType t) {
    ExprRef e = cast(t, exact);
    unrounded_.try_emplace(e.get(), Rounding{e, exact});
    return e;
  }

  // An operand of an arithmetic operation, in f32.
  ExprRef operand(const ExprRef& e) const {
    if (const ExprRef* exact = unrounded(e)) return *exact;
    const Cast* conversion = as_conversion(e);
    return conversion && conversion->a->dtype == f32 ? conversion->a : cast(f32, e);
  }

  // `e` has rewritten operands.
  ExprRef leave(const ExprRef& e) {
    if (e->kind == ExprKind::kLoad) {
      const auto& l = static_cast<const Load&>(*e);
      auto it = wide_.find(l.buffer.get());
      return it == wide_.end() ? e : rounding(load(it->second, l.indices), l.buffer->dtype);
    }
    if (const Cast* conversion = as_conversion(e); conversion && e->dtype.is_float()) {
      const ExprRef* exact = unrounded(conversion->a);
      return exact && e->dtype.bits >= 32 ? cast(e->dtype, *exact) : e;
    }
    if (!is_rounded_result(*e)) return e;
    std::vector<ExprRef> wide = operands(*e);
    const bool chooses = e->kind == ExprKind::kSelect;
    for (size_t i = chooses ? 1 : 0; i < wide.size(); ++i) wide[i] = operand(wide[i]);
    // A choice between numbers that nothing rounds moves bits.
    if (chooses && !unrounded(static_cast<const Select&>(*e).if_true) &&
        !unrounded(static_cast<const Select&>(*e).if_false)) {
      return e;
    }
    return rounding(with_operands(e, wide), e->dtype);
  }

  struct Rounding {
    ExprRef rounded;  // keeps the key alive
    ExprRef exact;
  };

  const Compute& compute_;
  std::unordered_set<const Buffer*> kept_;       // hold their own type
  std::unordered_set<const Buffer*> converted_;  // hold what a conversion gives
  std::unordered_map<const Buffer*, Ref<const Buffer>> wide_;
  std::unordered_map<const Expr*, Rounding> unrounded_;
  Rewriter rewrite_{[this](const ExprRef& e) { return leave(e); }};
};

}  // namespace

ComputeRef with_excess_precision(const ComputeRef& compute) {
  return Widener(*compute).run();
}

}  // namespace tenon::loop
