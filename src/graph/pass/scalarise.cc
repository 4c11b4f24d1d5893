#include "graph/pass/scalarise.h"

#include <unordered_set>

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"
#include "graph/op/pointwise.h"
#include "loop/scalar.h"

namespace tenon::graph {
namespace {

// The element type of a tensor of rank 0 that carries no size; nothing for other types.
std::optional<DataType> number_type(const TypeRef& type) {
  const auto* tensor = type.as<TensorType>();
  const bool is_number =
      tensor && tensor->rank == 0 && !tensor->value_known && is_scalar_dtype(tensor->dtype);
  return is_number ? std::optional(tensor->dtype) : std::nullopt;
}

// Whether it is the type of an i64 of rank 0 that is known as a size.
bool is_size(const TypeRef& type) {
  const auto* tensor = type.as<TensorType>();
  return tensor && tensor->rank == 0 && tensor->dtype == i64 && tensor->value_known;
}

// A constant of rank 0 as a scalar; null for other operands.
Operand constant_scalar(const Operand& operand) {
  const Tensor tensor = constant_tensor(operand);
  if (!tensor || tensor.rank() != 0 || !is_scalar_dtype(tensor.dtype())) return nullptr;
  const DataType dtype = tensor.dtype();
  const int64_t bits = loop::scalar_load(dtype, tensor.data());
  if (dtype.is_float()) return constant_float(dtype, loop::as_float(bits));
  return dtype.is_bool() ? constant_bool(bits != 0) : constant_int(bits, dtype);
}

// A call whose result can be computed in a register from scalars: a number, by an operator that has
// instructions.
const Call* register_call(const TypeRef& type, const ExprRef& value) {
  const Operator* op = operator_of(value);
  if (!op || !op->element || !number_type(type)) return nullptr;
  const auto* call = value.as<Call>();
  return needs_kernel(*op, *call) ? nullptr : call;
}

class Scalariser : public Rewriter {
 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (auto* field = value.as<Field>()) {
      const ExprRef tuple = builder().definition_of(field->tuple);
      if (auto* made = tuple.as<Tuple>()) return made->fields[static_cast<size_t>(field->index)];
    }
    const auto intrinsic = memory_intrinsic(value);
    if (intrinsic == MemoryIntrinsic::kElement) {
      if (Operand known = scalar_of(value.as<Call>()->args[0])) return known;
    }
    if (intrinsic == MemoryIntrinsic::kOfElement) {
      Operand tensor = keep(var, value);
      scalars_[tensor.get()] = value.as<Call>()->args[0];
      return tensor;
    }
    const Call* call = register_call(var->type, value);
    const Operand scalar = call ? on_scalars(*call) : nullptr;
    return scalar ? tensor_of(scalar) : keep(var, value);
  }

  Operand condition(const Operand& now) override {
    const Operand scalar = scalar_of(now);
    return scalar ? scalar : now;
  }

  Operand rewrite_loop(const VarRef& var, const Loop& loop) override {
    const std::vector<bool> chosen = choose(loop);
    if (std::ranges::find(chosen, true) == chosen.end()) return Rewriter::rewrite_loop(var, loop);
    const size_t count = chosen.size();
    std::vector<std::string> names;
    std::vector<TypeRef> types;
    std::vector<Operand> init = mapped(loop.init);
    for (size_t i = 0; i < count; ++i) {
      names.emplace_back(loop.vars[i]->name);
      const TypeRef& type = loop.vars[i]->type;
      types.push_back(chosen[i] ? scalar_type(*number_type(type)) : type);
      if (chosen[i]) init[i] = as_scalar(init[i]);
    }
    const auto bind_variables = [&](const std::vector<Operand>& vars) {
      for (size_t i = 0; i < count; ++i)
        map(loop.vars[i], chosen[i] ? tensor_of(vars[i]) : vars[i]);
    };
    const Operand end = builder().loop(
        names, types, init,
        [&](const std::vector<Operand>& vars) {
          bind_variables(vars);
          return condition(inline_block(loop.condition));
        },
        [&](const std::vector<Operand>& vars) {
          bind_variables(vars);
          std::vector<Operand> next = fields_of(inline_block(loop.body), count);
          for (size_t i = 0; i < count; ++i) {
            if (chosen[i]) next[i] = as_scalar(next[i]);
          }
          return count == 1 ? next[0] : builder().tuple(next);
        });
    std::vector<Operand> values = fields_of(end, count);
    for (size_t i = 0; i < count; ++i) {
      if (chosen[i]) values[i] = tensor_of(values[i]);
    }
    return count == 1 ? values[0] : builder().tuple(values);
  }

 private:
  // The scalar that a tensor was made of, or is; null if there is none.
  Operand scalar_of(const Operand& tensor) const {
    if (const Operand constant = constant_scalar(tensor)) return constant;
    const auto found = scalars_.find(tensor.get());
    return found == scalars_.end() ? nullptr : found->second;
  }

  // The same, or the size whose value the tensor's type carries.
  Operand scalar_or_size(const Operand& tensor) {
    if (Operand known = scalar_of(tensor)) return known;
    if (!is_size(type_of(tensor))) return nullptr;
    return builder().bind(make_size(type_of(tensor).as<TensorType>()->values[0]));
  }

  Operand as_scalar(const Operand& tensor) {
    if (Operand known = scalar_of(tensor)) return known;
    return builder().bind_stated(element_call(tensor));
  }

  Operand tensor_of(const Operand& scalar) {
    Operand tensor = builder().tensor_of(scalar);
    if (tensor.is<Var>()) scalars_[tensor.get()] = scalar;
    return tensor;
  }

  // The call on scalars; null if an operand is not a scalar, or all are constants.
  Operand on_scalars(const Call& call) {
    std::vector<Operand> args;
    bool any = false;
    for (const Operand& arg : call.args) {
      const bool is_scalar = arg && type_of(arg).is<ScalarType>();
      const Operand scalar = !arg || is_scalar ? arg : scalar_or_size(arg);
      if (arg && !scalar) return nullptr;
      any |= arg && !arg.is<Constant>();
      args.push_back(scalar);
    }
    return any ? builder().op(call.callee.view(), args, call.attrs) : nullptr;
  }

  std::vector<Operand> fields_of(const Operand& value, size_t count) {
    if (count == 1) return {value};
    const ExprRef tuple = builder().definition_of(value);
    if (auto* made = tuple.as<Tuple>()) return made->fields.to_vector();
    std::vector<Operand> fields;
    for (size_t i = 0; i < count; ++i) {
      fields.push_back(builder().field(value, static_cast<int64_t>(i)));
    }
    return fields;
  }

  // Which variables become scalars: all that the body computes from each other and from scalars.
  std::vector<bool> choose(const Loop& loop) const {
    std::unordered_map<const Expr*, ExprRef> definitions;
    for (const auto& binding : loop.body->bindings) {
      definitions[binding->var.get()] = binding->value;
    }
    const size_t count = loop.vars.size();
    std::vector<Operand> next = {loop.body->result};
    if (count > 1) {
      const auto found = definitions.find(loop.body->result.get());
      const auto* tuple = found == definitions.end() ? nullptr : found->second.as<Tuple>();
      if (!tuple) return std::vector<bool>(count);
      next = tuple->fields.to_vector();
    }
    std::vector<bool> chosen(count);
    for (size_t i = 0; i < count; ++i) chosen[i] = number_type(loop.vars[i]->type).has_value();
    for (bool changed = true; changed;) {
      changed = false;
      std::unordered_map<const Expr*, bool> known;
      for (size_t i = 0; i < count; ++i) known[loop.vars[i].get()] = chosen[i];
      // Definitions come before their uses.
      for (const auto& binding : loop.body->bindings) {
        known[binding->var.get()] = is_computed(*binding, known);
      }
      for (size_t i = 0; i < count; ++i) {
        if (!chosen[i] || is_known(next[i], known)) continue;
        chosen[i] = false;
        changed = true;
      }
    }
    return chosen;
  }

  using Known = std::unordered_map<const Expr*, bool>;
  bool is_known(const Operand& operand, const Known& known) const {
    if (!operand || type_of(operand).is<ScalarType>()) return true;
    if (is_size(type_of(operand))) return true;
    const auto found = known.find(operand.get());
    return found == known.end() ? scalar_of(mapped(operand)) != nullptr : found->second;
  }
  bool is_computed(const Binding& binding, const Known& known) const {
    if (memory_intrinsic(binding.value) == MemoryIntrinsic::kOfElement) return true;
    const Call* call = register_call(binding.var->type, binding.value);
    return call && std::ranges::all_of(call->args,
                                       [&](const Operand& arg) { return is_known(arg, known); });
  }

  std::unordered_map<const Expr*, Operand> scalars_;  // of tensors that were made of them
};

}  // namespace

Module scalarise(const Module& module, PassContext&) {
  return Scalariser().run(module);
}

}  // namespace tenon::graph
