#include "graph/pass/pack_constants.h"

#include <algorithm>

#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// Operators whose operand 1 is the right operand of a sum of products over all its axes except the
// last, which is the columns.
struct Rule {
  OperatorName name;
  bool (*applies)(const Call& call, const TensorType& right);
};

bool is_matrix(const Call&, const TensorType& right) {
  return right.rank == 2;
}

bool is_channels_last_in_one_group(const Call& call, const TensorType&) {
  return is_channels_last(call) && call.attrs.at("groups").as<int64_t>() == 1;
}

constexpr Rule kRules[] = {{op::matmul, is_matrix}, {op::conv, is_channels_last_in_one_group}};

class Packer : public Rewriter {
 public:
  explicit Packer(PassContext& cx) : cx_(cx) {}

 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    auto* call = value.as<Call>();
    if (!call) return keep(var, value);
    const auto rule =
        std::ranges::find_if(kRules, [&](const Rule& r) { return is_op(*call, r.name); });
    if (rule == std::end(kRules)) return keep(var, value);
    const auto width = panel_width(*rule, *call, var->type);
    if (!width) return keep(var, value);
    ++cx_.packed_constants;
    std::vector<Operand> args(call->args.begin(), call->args.end());
    const Operand packed = builder().op(op::pack, {args[1]}, attrs({{"width", Any(*width)}}));
    const Dim columns = known_tensor(args[1])->dims.back();
    args[1] = builder().op(op::unpack, {packed}, attrs({{"columns", Any(columns.ref())}}));
    return builder().bind_as(make<Call>(call->kind, call->callee, Operand(), Array<Operand>(args),
                                        call->attrs, TypeRef()),
                             var->type, var->name);
  }

 private:
  // Nullopt if the operand stays as it is.
  std::optional<int64_t> panel_width(const Rule& rule, const Call& call,
                                     const TypeRef& result) const {
    if (!call.args[1].is<Constant>()) return std::nullopt;
    const TensorType* right = known_tensor(call.args[1]);
    const TensorType* type = known_tensor(result);
    if (!right || !type || right->dtype != f32 || !rule.applies(call, *right)) return std::nullopt;
    int64_t elements = 1;
    for (const Dim& d : right->dims) elements *= d.as_const().value_or(0);
    if (elements == 0 || elements * right->dtype.bytes() > cx_.fold_limit) return std::nullopt;
    return loop::worthwhile_panel(right->dtype, *right->dims.back().as_const(), cx_.target);
  }

  PassContext& cx_;
};

}  // namespace

Module pack_constants(const Module& module, PassContext& cx) {
  return cx.evaluator ? Packer(cx).run(module) : module;
}

}  // namespace tenon::graph
