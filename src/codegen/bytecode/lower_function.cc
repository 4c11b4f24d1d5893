#include "codegen/bytecode/lower_function.h"

#include <algorithm>

#include "codegen/bytecode/join.h"
#include "graph/ir/walk.h"
#include "support/poll.h"
#include "vm/isa/limits.h"
#include "vm/isa/unit.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only
using vm::Arg;

static_assert(kMostConcurrent == vm::kMaxConcurrent, "a group of calls is one of the file's");

void require_name(const char* what, std::string_view name, const Span& span) {
  if (!vm::name_fault(name)) return;
  throw Error(ErrorKind::Unsupported, span, cat("a compiled file can't hold a ", what, "'s name"))
      .found(quoted(name.substr(0, 60)))
      .expected(vm::name_rule());
}

bool owns(const TypeRef& type) {
  return !type.is<ScalarType>() && !is_unit(type);
}

void FunctionLowering::refuse(const std::string& what, std::string_view help) const {
  throw Error(ErrorKind::Unsupported, span_, cat("'", function_.name, "': ", what)).help(help);
}

// ---- operands ----

Arg FunctionLowering::value(const Operand& operand) {
  if (!operand || is_unit(type_of(operand))) return Arg::none();
  if (auto* constant = operand.as<Constant>()) {
    // A boolean stays a constant: as an immediate it would become an integer.
    const Any& known = constant->value;
    if (known.type_index == TypeIndex::Int && vm::fits_immediate(known.v.i)) {
      return Arg::imm(known.v.i);
    }
    return Arg::constant(constants_.of(*constant));
  }
  auto it = values_.find(operand.as<Var>());
  TENON_ASSERT(it != values_.end(), "variable %", operand.as<Var>()->name, " has no value");
  return it->second;
}

Arg FunctionLowering::load(Arg value) {
  if (value.is(vm::ArgKind::Immediate)) {
    const Arg loaded = code_.make(/*owns=*/false);
    code_.emit(Opcode::LoadInt, {loaded, value});
    return loaded;
  }
  const Arg loaded = code_.make(unit_.constants[value.index()].value.is_object());
  code_.emit(Opcode::LoadConst, {loaded, value});
  return loaded;
}

Arg FunctionLowering::in_register(const Operand& operand) {
  const Arg arg = value(operand);
  return arg.is_register() ? arg : load(arg);
}

Arg FunctionLowering::integer(const Operand& operand) {
  if (auto* constant = operand.as<Constant>()) {
    if (auto truth = constant->value.try_as<bool>()) return Arg::imm(*truth);
  }
  const Arg arg = value(operand);
  return arg.is(vm::ArgKind::Constant) ? load(arg) : arg;
}

std::vector<Arg> FunctionLowering::values(const Array<Operand>& operands) {
  std::vector<Arg> args;
  args.reserve(operands.size());
  for (const Operand& operand : operands) args.push_back(value(operand));
  return args;
}

std::vector<Arg> FunctionLowering::fields(const Operand& tuple) {
  if (auto it = fields_.find(tuple.as<Var>()); it != fields_.end()) return it->second;
  const Arg whole = value(tuple);
  const TypeRef type = type_of(tuple);
  std::vector<Arg> fields;
  for (const TypeRef& field : type.as<TupleType>()->fields) {
    fields.push_back(field_of(whole, static_cast<uint32_t>(fields.size()), field, false));
  }
  return fields;
}

Arg FunctionLowering::field_of(Arg object, uint32_t index, const TypeRef& type, bool borrow,
                               uint32_t cell_size) {
  if (is_unit(type)) return Arg::none();
  if (borrow && object.is(vm::ArgKind::Borrowed)) {
    const Arg field = code_.make_borrowing();
    code_.emit(Opcode::BorrowField, {Arg::reg(field.index()), object, Arg::imm(int64_t{index})});
    return field;
  }
  const Arg field = code_.make(owns(type));
  code_.get_field(field, object, index, cell_size);
  return field;
}

Arg FunctionLowering::define(const VarRef& var) {
  if (!uses_.used.contains(var.get()) || is_unit(var->type)) return Arg::none();
  return values_[var.get()] = code_.make(owns(var->type));
}

// ---- functions and blocks ----

VirtualCode FunctionLowering::run() {
  span_ = function_.span;
  uses_ = variable_uses(function_);
  results_ = result_tensors(function_);
  const BlockId entry = code_.make_block();
  std::vector<Arg> params;
  for (const VarRef& param : function_.params) {
    params.push_back(borrowing_.is_borrowed(param.get())
                         ? code_.add_borrowing_param(entry)
                         : code_.add_param(entry, owns(param->type)));
    values_[param.get()] = params.back();
  }
  code_.start(entry);
  code_.set_span(unit_.add_span(span_));
  sizes_.match_parameters(function_.params, params);
  lower_block(function_.body, /*tail=*/true);
  if (!code_.ended()) code_.ret(value(function_.body->result));
  return std::move(code_);
}

namespace {

// Whether the binding checks all that the type of the tensor states.
bool states_all(const MatchShape& match) {
  const auto* type = type_of(match.value).as<TensorType>();
  return type && !match.elements &&
         (!type->dims_known || std::ranges::equal(type->dims, match.dims));
}

}  // namespace

void FunctionLowering::lower_block(const BlockRef& block, bool tail) {
  size_t group_begin = 0, group_end = 0;  // the first instruction, and the last binding
  int64_t group_count = 0;
  for (size_t i = 0; i < block->bindings.size(); ++i) {
    poll();
    const auto& binding = block->bindings[i];
    span_ = binding->span;
    if (const int64_t grouped = grouped_after(binding->value)) {
      group_begin = code_.instruction_count();
      group_count = grouped;
      group_end = i + static_cast<size_t>(group_count);
      continue;
    }
    const auto* match =
        i + 1 < block->bindings.size() ? block->bindings[i + 1]->value.as<MatchShape>() : nullptr;
    matched_next_ = match && states_all(*match) ? match->value.as<Var>() : nullptr;
    lower_binding(*binding, tail && is_result(*block, *binding));
    if (i != 0 && i == group_end) code_.group_calls(group_begin, group_count);
  }
}

bool FunctionLowering::bind_without_code(const Binding& binding) {
  const Var* var = binding.var.get();
  if (auto* tuple = binding.value.as<Tuple>(); tuple && !uses_.whole.contains(var)) {
    fields_[var] = values(tuple->fields);
    return true;
  }
  if (auto* field = binding.value.as<Field>()) {
    if (auto it = fields_.find(field->tuple.as<Var>()); it != fields_.end()) {
      values_[var] = it->second[static_cast<size_t>(field->index)];
      return true;
    }
  }
  return false;
}

void FunctionLowering::lower_binding(const Binding& binding, bool tail) {
  if (bind_without_code(binding)) return;
  code_.set_span(unit_.add_span(span_));
  const ExprRef& expr = binding.value;
  const VarRef& var = binding.var;
  if (auto* call = expr.as<Call>()) {
    lower_call(binding, *call, tail);
  } else if (auto* branch = expr.as<If>()) {
    lower_if(binding, *branch, tail);
  } else if (auto* loop = expr.as<Loop>()) {
    lower_loop(binding, *loop);
  } else if (auto* tuple = expr.as<Tuple>()) {
    const std::vector<Arg> all = values(tuple->fields);
    if (const Arg dst = define(var); !dst.is_none()) code_.emit(Opcode::AllocTuple, {dst}, all);
  } else if (auto* field = expr.as<Field>()) {
    if (!uses_.used.contains(var.get())) return;
    values_[var.get()] = field_of(value(field->tuple), static_cast<uint32_t>(field->index),
                                  var->type, borrowing_.is_borrowed(var.get()));
  } else if (auto* match = expr.as<MatchShape>()) {
    const bool is_scalar = type_of(match->value).is<ScalarType>();
    const Arg matched = is_scalar ? integer(match->value) : value(match->value);
    values_[var.get()] = matched;
    sizes_.match_shape(*match, matched);
  } else if (auto* check = expr.as<Check>()) {
    sizes_.check(*check);
  } else if (auto* matched = expr.as<Match>()) {
    lower_match(binding, *matched, tail);
  } else if (auto* made = expr.as<Construct>()) {
    lower_construct(*made, define(var));
  } else if (auto* closure = expr.as<Closure>()) {
    lower_closure(*closure, define(var));
  } else {
    const auto* size = expr.as<Size>();
    TENON_ASSERT(size, "a right-hand side of kind ", expr->type_index);
    values_[var.get()] = sizes_.size(size->size);
  }
}

void FunctionLowering::lower_construct(const Construct& made, Arg dst) {
  const std::vector<Arg> fields = values(made.fields);
  const int64_t tag = signatures_.find_constructor(made.constructor).place;
  if (!dst.is_none()) code_.emit(Opcode::AllocAdt, {dst, Arg::imm(tag)}, fields);
}

void FunctionLowering::lower_closure(const Closure& closure, Arg dst) {
  const std::vector<Arg> captures = values(closure.captures);
  const auto function = functions_.find(closure.function.view());
  TENON_ASSERT(function != functions_.end(), "no function @", closure.function);
  if (!dst.is_none()) {
    code_.emit(Opcode::AllocClosure, {dst, Arg::func(function->second)}, captures);
  }
}

Arg FunctionLowering::truth(const Operand& condition) {
  if (type_of(condition).is<ScalarType>()) return integer(condition);
  const Arg flat = code_.make(/*owns=*/true), element = code_.make(/*owns=*/false);
  code_.emit(Opcode::ReshapeTensor, {flat, value(condition)});
  code_.emit(Opcode::ReadElements, {flat}, {&element, 1});
  return element;
}

void FunctionLowering::lower_if(const Binding& binding, const If& branch, bool tail) {
  const BlockId then_block = code_.make_block(), else_block = code_.make_block();
  Join join(this, binding.var, tail);
  code_.branch(truth(branch.condition), then_block, else_block);
  code_.start(then_block);
  join.arm(branch.then_block);
  code_.start(else_block);
  join.arm(branch.else_block);
  join.finish();
}

void FunctionLowering::lower_loop(const Binding& binding, const Loop& loop) {
  const BlockId header = code_.make_block(), body = code_.make_block(), exit = code_.make_block();
  // The header's parameters are the loop's variables, except those of unit type.
  std::vector<Arg> vars;
  auto jump = [&](std::vector<Arg> values) {
    std::vector<Arg> given;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!vars[i].is_none()) given.push_back(values[i]);
    }
    code_.jump(header, std::move(given));
  };
  for (const VarRef& var : loop.vars) {
    vars.push_back(is_unit(var->type) ? Arg::none() : code_.add_param(header, owns(var->type)));
    values_[var.get()] = vars.back();
  }
  jump(values(loop.init));

  const uint32_t index = code_.begin_loop(header, exit);
  code_.start(header);
  {
    SizeLowering::Scope scope(&sizes_);
    lower_block(loop.condition, /*tail=*/false);
    const Arg condition = truth(loop.condition->result);
    code_.loop(index).test = code_.current();
    code_.branch(condition, body, exit);
  }
  code_.loop(index).body = body;
  code_.start(body);
  {
    SizeLowering::Scope scope(&sizes_);
    lower_block(loop.body, /*tail=*/false);
    std::vector<Arg> next =
        vars.size() == 1 ? std::vector{value(loop.body->result)} : fields(loop.body->result);
    code_.loop(index).latch = code_.current();
    jump(std::move(next));
  }
  code_.end_loop();
  code_.start(exit);
  if (!uses_.used.contains(binding.var.get())) return;
  if (vars.size() == 1) {
    values_[binding.var.get()] = vars[0];
  } else if (uses_.whole.contains(binding.var.get())) {
    code_.emit(Opcode::AllocTuple, {define(binding.var)}, vars);
  } else {
    fields_[binding.var.get()] = std::move(vars);
  }
}

}  // namespace tenon::codegen
