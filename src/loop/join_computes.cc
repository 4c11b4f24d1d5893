#include "loop/join_computes.h"

#include <unordered_map>

#include "loop/walk.h"

namespace tenon::loop {
namespace {

// Copies one compute's stages.
class Copier {
 public:
  explicit Copier(const DimSubstitution& symbols) : symbols_(symbols) {}

  Dim size(const Dim& d) const { return tenon::substitute(d, symbols_); }
  std::vector<Dim> sizes(const Array<Dim>& dims) const {
    std::vector<Dim> out;
    for (const Dim& d : dims) out.push_back(size(d));
    return out;
  }

  void map(const Ref<const Buffer>& from, const Ref<const Buffer>& to) {
    buffers_[from.get()] = to;
  }
  const Ref<const Buffer>& mapped(const Ref<const Buffer>& from) const {
    return buffers_.at(from.get());
  }

  Ref<const Stage> stage(const Stage& from) {
    auto s = make<Stage>(from);
    s->out = buffer(from.out->name.view(), from.out->dtype, sizes(from.out->shape));
    // A scan reads its own result.
    map(from.out, s->out);
    s->axes = axes(from.axes);
    s->reduce_axes = axes(from.reduce_axes);
    s->reduce_extents = Array<Dim>(sizes(from.reduce_extents));
    s->body = rewrite_(from.body);
    if (from.update) s->update = rewrite_(from.update);
    s->scatter_indices = from.scatter_indices.map([&](const ExprRef& e) { return rewrite_(e); });
    return s;
  }

 private:
  Array<Ref<const Var>> axes(const Array<Ref<const Var>>& from) {
    return from.map([&](const Ref<const Var>& v) {
      Ref<const Var> copy = var(v->name.view(), v->dtype);
      vars_[v.get()] = copy;
      return copy;
    });
  }

  ExprRef node(const ExprRef& e) const {
    switch (e->kind) {
      case ExprKind::kVar:
        return vars_.at(static_cast<const Var*>(e.get()));
      case ExprKind::kDimValue:
        return dim_value(size(static_cast<const DimValue&>(*e).dim));
      case ExprKind::kLoad: {
        const auto& l = static_cast<const Load&>(*e);
        return load(mapped(l.buffer), l.indices);
      }
      case ExprKind::kCheckedIndex: {
        const auto& c = static_cast<const CheckedIndex&>(*e);
        return checked_index(c.index, size(c.extent));
      }
      default:
        return e;
    }
  }

  const DimSubstitution& symbols_;
  std::unordered_map<const Buffer*, Ref<const Buffer>> buffers_;
  std::unordered_map<const Var*, Ref<const Var>> vars_;
  Rewriter rewrite_{[this](const ExprRef& e) { return node(e); }};
};

}  // namespace

std::optional<std::vector<Ref<const Buffer>>> Joiner::add(
    const Compute& compute, const std::vector<Ref<const Buffer>>& inputs,
    const DimSubstitution& symbols) {
  Copier copier(symbols);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer& own = *compute.inputs[i];
    if (own.dtype != inputs[i]->dtype || copier.sizes(own.shape) != inputs[i]->shape.to_vector()) {
      return std::nullopt;
    }
    copier.map(compute.inputs[i], inputs[i]);
  }
  for (const auto& s : compute.stages) stages_.push_back(copier.stage(*s));
  std::vector<Ref<const Buffer>> outputs;
  for (const auto& out : compute.outputs) outputs.push_back(copier.mapped(out));
  return outputs;
}

}  // namespace tenon::loop
