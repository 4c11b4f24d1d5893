#include "loop/affine.h"

#include <unordered_map>

#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {

std::optional<Dim> coefficient(const ExprRef& root, const Ref<const Var>& v, bool loads_are_free) {
  std::unordered_map<const Expr*, std::optional<Dim>> known;
  post_order(root, [&](const ExprRef& e) {
    auto of = [&](const ExprRef& operand) { return known.at(operand.get()); };
    std::optional<Dim> c;
    if (e->kind == ExprKind::kVar) {
      c = e.get() == v.get() ? Dim(1) : Dim(0);
    } else if (e->kind == ExprKind::kLoad && loads_are_free) {
      c = Dim(0);
    } else {
      bool free = true;
      for (const ExprRef& o : operands(*e)) {
        auto part = of(o);
        free = free && part && part->is_const(0);
      }
      if (free) {
        c = Dim(0);
      } else if (e->kind == ExprKind::kBinary && e->dtype == i64) {
        const auto& b = static_cast<const Binary&>(*e);
        auto x = of(b.a), y = of(b.b);
        if (x && y && b.op == BinaryOp::kAdd) c = *x + *y;
        if (x && y && b.op == BinaryOp::kSub) c = *x - *y;
        if (b.op == BinaryOp::kMul) {
          auto p = as_dim(b.a), q = as_dim(b.b);
          if (x && q) c = *x * *q;
          if (y && p) c = *y * *p;
        }
      }
    }
    known[e.get()] = c;
  });
  return known.at(root.get());
}

std::vector<Dim> strides_of(const Array<Dim>& shape) {
  std::vector<Dim> strides(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

ExprRef flat_offset(const Array<Dim>& shape, const Array<ExprRef>& indices,
                    const std::vector<Ref<const Var>>& vars) {
  auto add = [](const ExprRef& a, const ExprRef& b) { return binary(BinaryOp::kAdd, a, b); };
  auto times = [](const ExprRef& a, const Dim& d) {
    return binary(BinaryOp::kMul, a, dim_value(d));
  };
  ExprRef whole = index(0);
  if (indices.size() == 1 && shape.size() != 1) {
    whole = indices[0];
  } else {
    std::vector<Dim> strides = strides_of(shape);
    for (size_t i = 0; i < indices.size(); ++i) whole = add(whole, times(indices[i], strides[i]));
  }
  VarMap zero;
  std::vector<std::pair<Ref<const Var>, Dim>> terms;
  for (const auto& v : vars) {
    auto c = coefficient(whole, v);
    if (!c || c->is_const(0)) continue;
    terms.emplace_back(v, *c);
    zero[v.get()] = index(0);
  }
  ExprRef offset = substitute(whole, zero);
  for (const auto& [v, c] : terms) offset = add(offset, times(v, c));
  return offset;
}

ExprRef flatten_loads(const ExprRef& e, const std::vector<Ref<const Var>>& vars) {
  Rewriter rewrite([&](const ExprRef& node) -> ExprRef {
    if (node->kind != ExprKind::kLoad) return node;
    const auto& l = static_cast<const Load&>(*node);
    if (l.indices.empty()) return node;
    return load(l.buffer, {flat_offset(l.buffer->shape, l.indices, vars)});
  });
  return rewrite(e);
}

std::vector<const Load*> loads_in(const ExprRef& e) {
  std::vector<const Load*> all;
  post_order(e, [&](const ExprRef& node) {
    if (node->kind == ExprKind::kLoad) all.push_back(static_cast<const Load*>(node.get()));
  });
  return all;
}

}  // namespace tenon::loop
