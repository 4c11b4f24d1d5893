#include "graph/ir/rewrite.h"

#include <algorithm>
#include <utility>

#include "loop/scalar.h"

namespace tenon::graph {

Module with_functions(const Module& module, Map<String, FunctionRef> functions) {
  return make_module(std::move(functions), module->kernels, module->adts);
}

bool has_one_element(const Array<Dim>& dims) {
  return std::ranges::all_of(dims, [](const Dim& d) { return d.is_const(1); });
}

namespace {

void count_uses_in(const BlockRef& block, std::unordered_map<const Var*, int64_t>* uses) {
  auto use = [uses](const Operand& operand) {
    if (auto* var = operand.as<Var>()) ++(*uses)[var];
  };
  for (const auto& binding : block->bindings) {
    for_each_operand(binding->value, use);
    for_each_block(binding->value, [uses](const BlockRef& inner) { count_uses_in(inner, uses); });
  }
  use(block->result);
}

}  // namespace

std::unordered_map<const Var*, int64_t> count_uses(const FunctionRef& function) {
  std::unordered_map<const Var*, int64_t> uses;
  count_uses_in(function->body, &uses);
  return uses;
}

const Operator* operator_of(const Call& call) {
  return call.kind == CalleeKind::kOperator ? OperatorTable::global().find(call.callee) : nullptr;
}

const Operator* operator_of(const ExprRef& value) {
  auto* call = value.as<Call>();
  return call ? operator_of(*call) : nullptr;
}

bool is_op(const Call& call, OperatorName name) {
  return call.kind == CalleeKind::kOperator && call.callee == name.text;
}

const Call* as_op(const ExprRef& value, OperatorName name) {
  auto* call = value.as<Call>();
  return call && is_op(*call, name) ? call : nullptr;
}

const Call* call_of(const Builder& b, const Operand& operand, OperatorName name) {
  return as_op(b.definition_of(operand), name);
}

bool is_dequantised_constant(const ExprRef& value,
                             const std::function<ExprRef(const Operand&)>& definition_of) {
  const Call* call = as_op(value, op::dequantize_linear);
  if (!call) return false;
  const Operand& x = call->args[0];
  if (x.is<Constant>()) return true;
  const Call* packed = as_op(definition_of(x), op::unpack_bits);
  return packed && packed->args[0].is<Constant>();
}

bool is_channels_last(const Call& call) {
  return call.attrs.at("layout").as<String>() == kChannelsLast;
}

std::vector<int64_t> permutation_of(const Call& transpose) {
  auto perm = transpose.attrs.at("perm").as<Array<int64_t>>().to_vector();
  for (int64_t& axis : perm) {
    axis = normalised_axis(axis, static_cast<int64_t>(perm.size()));
  }
  return perm;
}

Operand reshaped(Builder& b, const Operand& x, const std::vector<Dim>& shape) {
  return b.op(op::reshape, {x}, attrs({{"shape", attr_dims(shape)}}));
}

Module Rewriter::run(const Module& module) {
  module_ = module;
  signatures_ = Signatures::of(module);
  Map<String, FunctionRef> functions;
  for (const auto& [name, function] : module->functions) functions.set(name, run(function));
  return with_functions(module, std::move(functions));
}

FunctionRef Rewriter::run(const FunctionRef& function) {
  Builder builder(signatures_);
  builder_ = &builder;
  map_.clear();
  builder.at(function->span);
  builder.avoid_symbols_of(function);
  for (const VarRef& param : function->params) {
    map(param, builder.param(param->name, param->type));
  }
  enter(function);
  Operand result = inline_block(function->body);
  builder.at(function->span);
  FunctionRef out = builder.finish_as(function->name, result, function->result_type,
                                      function->attrs, function->type_params);
  builder_ = nullptr;
  return out;
}

void Rewriter::enter(const FunctionRef&) {}

bool Rewriter::drops(const Binding&) const {
  return false;
}

Operand Rewriter::rewrite(const VarRef& var, const ExprRef& value) {
  return keep(var, value);
}

Operand Rewriter::rewrite_literal(const VarRef& var, const FunctionRef& literal) {
  return keep(var, literal);
}

Operand Rewriter::keep(const VarRef& var, const ExprRef& value) {
  return builder_->bind_typed(value, var->type, var->name);
}

void Rewriter::map(const VarRef& old, const Operand& now) {
  map_[old.get()] = now;
}

Operand Rewriter::mapped(const Operand& old) const {
  auto* var = old.as<Var>();
  if (!var) return old;
  auto it = map_.find(var);
  return it == map_.end() ? old : it->second;
}

std::vector<Operand> Rewriter::mapped(const Array<Operand>& old) const {
  std::vector<Operand> now;
  now.reserve(old.size());
  for (const Operand& operand : old) now.push_back(mapped(operand));
  return now;
}

Operand Rewriter::inline_block(const BlockRef& block) {
  open_block();
  for (const auto& binding : block->bindings) {
    if (drops(*binding)) continue;
    builder_->at(binding->span);
    before(*binding);
    map_[binding->var.get()] = walk(binding);
  }
  close_block();
  return mapped(block->result);
}

Operand Rewriter::walk(const Ref<const Binding>& binding) {
  Builder& b = *builder_;
  b.at(binding->span);
  const ExprRef& value = binding->value;
  if (auto* branch = value.as<If>()) {
    const auto then_block = [&] { return inline_block(branch->then_block); };
    const auto else_block = [&] { return inline_block(branch->else_block); };
    const Operand chosen = condition(mapped(branch->condition));
    if (!has_function(binding->var->type, variances()))
      return b.if_(chosen, then_block, else_block);
    // What is known of the arms may be a function that takes less.
    auto out = make<If>();
    out->condition = chosen;
    b.begin_block();
    out->then_block = b.finish_block(then_block());
    b.begin_block();
    out->else_block = b.finish_block(else_block());
    b.at(binding->span);
    return b.bind_typed(out, binding->var->type, binding->var->name);
  }
  if (auto* loop = value.as<Loop>()) return rewrite_loop(binding->var, *loop);
  if (auto* match = value.as<Match>()) return walk_match(*binding, *match);
  if (auto* literal = value.as<FunctionExpr>()) return walk_literal(*binding, *literal);
  for_each_block(value, [&](const BlockRef&) {
    TENON_ASSERT(false, "no rewriting of the blocks of a right-hand side of type ",
                 value->type_index);
  });
  return rewrite(binding->var, with_mapped_operands(value));
}

Operand Rewriter::rewrite_loop(const VarRef&, const Loop& loop) {
  std::vector<std::string> names;
  std::vector<TypeRef> types;
  for (const VarRef& var : loop.vars) {
    names.emplace_back(var->name);
    types.push_back(var->type);
  }
  auto body_of = [&](const BlockRef& block) {
    return [this, &loop, block](const std::vector<Operand>& vars) {
      for (size_t i = 0; i < vars.size(); ++i) map(loop.vars[i], vars[i]);
      return inline_block(block);
    };
  };
  return builder_->loop(names, types, mapped(loop.init), body_of(loop.condition),
                        body_of(loop.body));
}

VarRef Rewriter::walk_var(const VarRef& var) {
  VarRef now = builder_->block_var(var->name, var->type);
  map(var, now);
  return now;
}

PatternRef Rewriter::walk_pattern(const Pattern& pattern) {
  auto out = make<Pattern>(pattern);
  if (pattern.var) out->var = walk_var(pattern.var);
  out->fields =
      pattern.fields.map([this](const PatternRef& field) { return walk_pattern(*field); });
  return out;
}

Operand Rewriter::walk_match(const Binding& binding, const Match& match) {
  Builder& b = *builder_;
  auto out = make<Match>();
  out->value = mapped(match.value);
  for (size_t i = 0; i < match.arms.size(); ++i) {
    b.begin_block();
    out->patterns.push_back(walk_pattern(*match.patterns[i]));
    out->arms.push_back(b.finish_block(inline_block(match.arms[i])));
  }
  b.at(binding.span);
  return b.bind_typed(out, binding.var->type, binding.var->name);
}

Operand Rewriter::walk_literal(const Binding& binding, const FunctionExpr& literal) {
  Builder& b = *builder_;
  auto out = make<FunctionExpr>(literal);
  out->params.clear();
  b.begin_block();
  for (const VarRef& param : literal.params) out->params.push_back(walk_var(param));
  if (literal.self) out->self = walk_var(literal.self);
  out->body = b.finish_block(inline_block(literal.body));
  b.at(binding.span);
  return rewrite_literal(binding.var, out);
}

ExprRef Rewriter::with_mapped_operands(const ExprRef& value) {
  bool changed = false;
  for_each_operand(value, [&](const Operand& o) { changed |= mapped(o) != o; });
  return changed ? map_operands(value, [this](const Operand& o) { return mapped(o); }) : value;
}

const TensorType* known_tensor(const Operand& operand, DataType dtype) {
  const TensorType* type = known_tensor(operand);
  return type && type->dtype == dtype ? type : nullptr;
}

Tensor constant_tensor(const Operand& operand) {
  auto* constant = operand.as<Constant>();
  return constant ? constant->value.try_as<Tensor>().value_or(Tensor()) : Tensor();
}

Operand number_constant(DataType dtype, double value, size_t rank) {
  const Tensor tensor = Tensor::empty(std::vector<int64_t>(rank, 1), dtype);
  loop::scalar_store(dtype, tensor.data(),
                     dtype.is_float() ? loop::float_bits(value) : static_cast<int64_t>(value));
  return constant(tensor);
}

bool is_filled_with(const Operand& operand, uint8_t byte) {
  const Tensor tensor = constant_tensor(operand);
  if (!tensor) return false;
  const auto* bytes = static_cast<const uint8_t*>(tensor.data());
  return std::all_of(bytes, bytes + tensor.count() * tensor.dtype().bytes(),
                     [&](uint8_t b) { return b == byte; });
}

std::optional<double> single_number(const Operand& operand) {
  const Tensor tensor = constant_tensor(operand);
  if (!tensor || tensor.count() != 1) return std::nullopt;
  if (tensor.dtype() == f32) return *tensor.data_as<float>();
  if (tensor.dtype() == f64) return *tensor.data_as<double>();
  if (tensor.dtype() == i64) return static_cast<double>(*tensor.data_as<int64_t>());
  if (tensor.dtype() == i32) return *tensor.data_as<int32_t>();
  return std::nullopt;
}

}  // namespace tenon::graph
