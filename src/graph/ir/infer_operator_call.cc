#include "graph/ir/infer_operator_call.h"

#include <algorithm>

namespace tenon::graph {

namespace {

std::string operand_names(const Operator& op) {
  std::vector<std::string> names;
  for (const OperandSpec& spec : op.operands) {
    names.push_back(cat(spec.name, spec.arity == OperandSpec::kOptional   ? "?"
                                   : spec.arity == OperandSpec::kVariadic ? "..."
                                                                          : ""));
  }
  return tenon::join(names, ", ");
}

void check_arity(const Operator& op, const Call& c) {
  size_t least = 0, most = op.operands.size();
  for (const OperandSpec& spec : op.operands) {
    if (spec.arity != OperandSpec::kOptional) ++least;
    if (spec.arity == OperandSpec::kVariadic) most = SIZE_MAX;
  }
  if (c.args.size() < least || c.args.size() > most) {
    throw Error(ErrorKind::Usage,
                cat("operator '", op.name, "' is called with the wrong number of operands"))
        .found(cat(c.args.size()))
        .expected(most == SIZE_MAX ? cat(least, " or more")
                  : most == least  ? cat(least)
                                   : cat(least, " to ", most),
                  operand_names(op));
  }
  for (size_t i = 0; i < c.args.size(); ++i) {
    const OperandSpec& spec = op.operands[std::min(i, op.operands.size() - 1)];
    if (!c.args[i] && spec.arity == OperandSpec::kOne) {
      throw Error(ErrorKind::Usage,
                  cat("operator '", op.name, "': operand '", spec.name, "' is absent"));
    }
  }
}

bool can_carry(const TensorType& t) {
  if (!t.dims_known || t.rank > 1 || t.value_known) return false;
  if (!t.dtype.is_int() && !t.dtype.is_bool()) return false;
  return t.rank == 0 || (t.dims[0].is_const() && *t.dims[0].as_const() <= kMaxCarriedValues);
}

// Larger sizes are left to run time. Where shapes are computed from shapes, they would otherwise
// grow without bound (in a decoder, threefold with every layer).
constexpr int kMaxSizeNodes = 128;

bool is_small(const Dim& d) {
  int count = 0;
  std::vector<const DimNode*> stack = {&d.node()};
  while (!stack.empty()) {
    const DimNode* n = stack.back();
    stack.pop_back();
    if (++count > kMaxSizeNodes) return false;
    for (const auto& a : n->args) stack.push_back(a.get());
  }
  return true;
}

bool are_small(const Array<Dim>& dims) {
  return std::all_of(dims.begin(), dims.end(), is_small);
}

// `type` with large sizes replaced by symbols from `fresh`; the type itself if no size is large.
template <class Fresh>
TypeRef with_small_sizes(const TypeRef& type, const Fresh& fresh) {
  if (const auto* u = type_as<TupleType>(type)) {
    auto out = make<TupleType>();
    bool changed = false;
    for (const TypeRef& f : u->fields) {
      out->fields.push_back(with_small_sizes(f, fresh));
      changed = changed || out->fields.back() != f;
    }
    if (!changed) return type;
    return out;
  }
  if (const auto* s = type_as<ScalarType>(type)) {
    return !s->value_known || is_small(s->value) ? type : scalar_type(s->dtype);
  }
  const auto* t = type_as<TensorType>(type);
  if (!t || (are_small(t->dims) && are_small(t->values))) return type;
  auto out = make<TensorType>(*t);
  if (!are_small(t->values)) {
    out->value_known = false;
    out->values.clear();
  }
  for (size_t i = 0; i < t->dims.size(); ++i) {
    if (is_small(t->dims[i])) continue;
    out->dims.set(i, fresh("size"));
  }
  return out;
}

// Numbers beyond 64 bits wrap at run time, which sizes can't express, so nothing is known then.
std::optional<std::vector<Dim>> values_of(const Operator& op, const InferContext& cx,
                                          const TensorType& t) {
  try {
    return op.value(cx, t);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return std::nullopt;
  }
}

bool carried_in_i32(const InferContext& cx, const Dim& v) {
  return std::any_of(cx.call().args.begin(), cx.call().args.end(), [&](const Operand& a) {
    TypeRef type = type_of(a);
    const auto* t = type_as<TensorType>(type);
    return t && t->dtype == i32 && t->value_known &&
           std::find(t->values.begin(), t->values.end(), v) != t->values.end();
  });
}

// Requires that i32 elements don't wrap, since the type carries them as sizes. Elements of
// operands were checked before.
void require_in_i32(InferContext& cx, const std::vector<Dim>& values) {
  for (const Dim& v : values) {
    if (carried_in_i32(cx, v)) continue;
    cx.require_less_equal(INT32_MIN, v, "a size computed in i32");
    cx.require_less_equal(v, INT32_MAX, "a size computed in i32");
  }
}

TypeRef as_scalar(const InferContext& cx, const TypeRef& result) {
  if (result.is<ScalarType>()) return result;  // the rule returned a scalar type
  const auto* t = type_as<TensorType>(result);
  if (!t || t->rank != 0) {
    cx.fail(cat("on scalars it gives ", to_text(result), ", which is not a scalar"));
  }
  auto s = make<ScalarType>();
  s->dtype = t->dtype;
  s->value_known = t->value_known && t->dtype == i64;
  if (s->value_known) s->value = t->values[0];
  return s;
}

}  // namespace

TypeRef infer_operator_call(const Call& c, const InferOptions& options, Inferred* out) {
  const Operator* op = &OperatorTable::global().get(c.callee);
  check_arity(*op, c);
  auto fresh = [&](std::string_view hint) {
    Dim d = options.fresh(hint);
    out->fresh.add(d.node().name.view());
    return d;
  };
  InferContext cx(c, fresh);
  bool any_scalar = false, all_scalars = !c.args.empty();
  for (const Operand& a : c.args) {
    if (!a) continue;
    bool scalar = type_as<ScalarType>(type_of(a)) != nullptr;
    any_scalar |= scalar;
    all_scalars &= scalar;
  }
  if (any_scalar && !op->element) cx.fail("it takes tensors, but an operand is a scalar");
  cx.require_dtypes();
  TypeRef result = op->infer(cx);
  if (op->lower) {  // a kernel also gets operands that the rule doesn't look at
    for (size_t i = 0; i < c.args.size(); ++i) {
      if (cx.has(i)) cx.tensor(i);
    }
  }
  if (const auto* t = type_as<TensorType>(result); t && op->value && can_carry(*t)) {
    if (auto values = values_of(*op, cx, *t)) {
      if (t->dtype == i32) require_in_i32(cx, *values);
      result = with_values(share(t), *values);
    }
  }
  if (any_scalar && all_scalars) result = as_scalar(cx, result);
  if (TypeRef small = with_small_sizes(result, fresh); small != result) {
    if (!small.is<ScalarType>()) out->spelt_out = result;
    result = small;
  }
  for (const auto& condition : cx.conditions()) out->conditions.push_back(condition);
  return result;
}

}  // namespace tenon::graph
