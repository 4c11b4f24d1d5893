#include "graph/pass/allow_winograd.h"

#include <algorithm>

#include "graph/ir/permutation.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

bool has_form(const Call& conv) {
  const TensorType *x = known_tensor(conv.args[0], f32), *w = known_tensor(conv.args[1], f32);
  const auto ones = [&](const char* attribute) {
    return std::ranges::all_of(conv.attrs.at(attribute).as<Array<int64_t>>(),
                               [](int64_t n) { return n == 1; });
  };
  return x && w && x->rank == 4 && w->dims[0].is_const(3) && w->dims[1].is_const(3) &&
         is_channels_last(conv) && ones("strides") && ones("dilations") &&
         conv.attrs.at("groups").as<int64_t>() == 1;
}

class Allower : public Rewriter {
 public:
  explicit Allower(const PassContext& cx) : forbidden_(cx.direct_convolutions) {}

 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const Call* const conv = as_op(value, op::conv);
    if (!conv) return keep(var, value);
    const bool allowed = !forbidden_ && has_form(*conv) && !is_dequantised(conv->args[0]);
    if (conv->attrs.at("winograd").as<bool>() == allowed) return keep(var, value);
    Attrs attributes = conv->attrs;
    attributes.set("winograd", Any(allowed));
    return keep(var, make_call(conv->kind, conv->callee, conv->args, attributes));
  }

 private:
  bool is_dequantised(const Operand& x) {
    const auto transposed = as_transposed(builder(), x);
    return call_of(builder(), transposed ? transposed->source : x, op::dequantize_linear);
  }

  const bool forbidden_;
};

}  // namespace

Module allow_winograd(const Module& module, PassContext& cx) {
  return Allower(cx).run(module);
}

}  // namespace tenon::graph
