#include "graph/op/lower.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/op.h"
#include "graph/ir/rewrite.h"
#include "loop/excess_precision.h"
#include "loop/inline_stages.h"

namespace tenon::graph {
namespace {

using loop::Buffer;

// The dimensions of a tensor or scalar type.
std::vector<Dim> dims_of(const TypeRef& type) {
  if (type.as<ScalarType>()) return {};
  auto* tensor = type.as<TensorType>();
  TENON_ASSERT(tensor && tensor->dims_known, "lowering needs a tensor of known dimensions, not ",
               to_text(type));
  return tensor->dims.to_vector();
}

Ref<const Buffer> buffer_for(const TypeRef& type, std::string_view name) {
  return loop::buffer(name, dtype_of(type), dims_of(type));
}

// A constant of one element as a stage that fills a buffer, which inlining turns into a literal.
Ref<const loop::Stage> fill_stage(const Ref<const Buffer>& out, const Constant& constant) {
  const DataType dtype = out->dtype;
  loop::ExprRef value;
  if (auto tensor = constant.value.try_as<Tensor>()) {
    value = loop::literal_from_memory(dtype, tensor->data());
  } else if (auto integer = constant.value.try_as<int64_t>()) {
    value = loop::literal_int(dtype, *integer);
  } else if (auto truth = constant.value.try_as<bool>()) {
    value = loop::literal_int(dtype, *truth);
  } else {
    value = loop::literal(dtype, constant.value.as<double>());
  }
  return loop::map_stage(out, [&](const std::vector<loop::ExprRef>&) { return value; });
}

struct Lowered {
  std::vector<Ref<const Buffer>> params, outputs;
  std::vector<Ref<const loop::Stage>> stages;
};

// Joins the Computes of a primitive function's calls, connected by their buffers.
Lowered lower_calls(const FunctionRef& primitive) {
  Lowered out;
  std::unordered_map<const Object*, std::vector<Ref<const Buffer>>> buffers;
  for (size_t i = 0; i < primitive->params.size(); ++i) {
    const VarRef& param = primitive->params[i];
    out.params.push_back(buffer_for(param->type, cat("p", i)));
    buffers[param.get()] = {out.params.back()};
  }
  for (const auto& binding : primitive->body->bindings) {
    auto* call = binding->value.as<Call>();
    const Operator* op = OperatorTable::global().find(call->callee);
    TENON_ASSERT(call->kind == CalleeKind::kOperator && op && op->lower,
                 "a primitive function holds calls with lowerings only");
    std::vector<Ref<const Buffer>> inputs, outputs;
    for (const Operand& arg : call->args) {
      if (!arg) {
        inputs.emplace_back();
      } else if (auto it = buffers.find(arg.get()); it != buffers.end()) {
        inputs.push_back(it->second.front());
      } else {
        auto* constant = arg.as<Constant>();
        TENON_ASSERT(constant, "a primitive function takes all but constants as parameters");
        inputs.push_back(buffer_for(constant->type, "c"));
        out.stages.push_back(fill_stage(inputs.back(), *constant));
        buffers[arg.get()] = {inputs.back()};
      }
    }
    if (auto* tuple = binding->var->type.as<TupleType>()) {
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        outputs.push_back(buffer_for(tuple->fields[i], cat(call->callee, i)));
      }
    } else {
      outputs.push_back(buffer_for(binding->var->type, call->callee));
    }
    LowerContext cx(*call, inputs, outputs);
    const loop::ComputeRef compute = op->lower(cx);
    for (const auto& stage : compute->stages) out.stages.push_back(stage);
    buffers[binding->var.get()] = outputs;
  }
  out.outputs = buffers.at(primitive->body->result.get());
  return out;
}

bool is_known_tensor(const TypeRef& type) {
  return known_tensor(type) != nullptr;
}

}  // namespace

bool may_be_literal(const TypeRef& type) {
  if (type.as<ScalarType>()) return true;
  const TensorType* t = known_tensor(type);
  return t && !t->dtype.is_complex() && has_one_element(t->dims);
}

std::optional<Obstacle> find_obstacle(const FunctionExpr& f) {
  for (const VarRef& param : f.params) {
    if (!is_known_tensor(param->type) && !param->type.as<ScalarType>()) {
      return Obstacle{f.span, cat("a parameter of type ", to_text(param->type))};
    }
  }
  std::unordered_set<const Object*> results;
  for (const auto& binding : f.body->bindings) {
    if (binding->value.is<Check>()) continue;
    auto* call = binding->value.as<Call>();
    const Operator* op = operator_of(binding->value);
    if (!op) return Obstacle{binding->span, "something other than an operator call"};
    if (!op->lower) return Obstacle{binding->span, cat("operator '", op->name, "'")};
    for (const Operand& arg : call->args) {
      auto* constant = arg ? arg.as<Constant>() : nullptr;
      if (constant && !may_be_literal(constant->type)) {
        return Obstacle{binding->span, "a constant of several elements, or of complex numbers"};
      }
    }
    const TypeRef& type = binding->var->type;
    auto* tuple = type.as<TupleType>();
    if (tuple ? !std::ranges::all_of(tuple->fields, is_known_tensor) : !is_known_tensor(type)) {
      return Obstacle{binding->span, cat("a value of type ", to_text(type))};
    }
    results.insert(binding->var.get());
  }
  if (!results.contains(f.body->result.get())) {
    return Obstacle{f.span, "a result that none of its calls computes"};
  }
  return std::nullopt;
}

loop::ComputeRef lower_primitive(const FunctionRef& primitive) {
  Lowered lowered = lower_calls(primitive);
  auto compute = make<loop::Compute>();
  compute->inputs = Array<Ref<const Buffer>>(lowered.params);
  compute->stages = Array<Ref<const loop::Stage>>(lowered.stages);
  compute->outputs = Array<Ref<const Buffer>>(lowered.outputs);
  compute->in_bounds = true;  // lowerings stay in range
  return loop::inline_stages(loop::with_excess_precision(compute));
}

}  // namespace tenon::graph
