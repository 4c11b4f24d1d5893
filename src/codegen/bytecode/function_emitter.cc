#include "codegen/bytecode/function_emitter.h"

#include <algorithm>

#include "codegen/bytecode/emit.h"
#include "graph/ir/walk.h"
#include "vm/isa/limits.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file speaks of graph IR only
using vm::Arg;
using vm::Label;

void require_name(const char* what, std::string_view name, const Span& span) {
  const bool has_control = std::ranges::any_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!name.empty() && name.size() <= vm::kMaxNameBytes && !has_control) return;
  throw Error(ErrorKind::Unsupported, span, cat("a compiled file can't hold a ", what, "'s name"))
      .found(quoted(name.substr(0, 60)))
      .expected(cat("1 to ", vm::kMaxNameBytes, " bytes, none of them a control character"));
}

void FunctionEmitter::refuse(const std::string& what, std::string_view help) const {
  throw Error(ErrorKind::Unsupported, span_, cat("'", function_.name, "': ", what)).help(help);
}

// ---- registers ----

uint32_t FunctionEmitter::new_register() {
  if (!free_.empty()) {
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  return register_count_++;
}

uint32_t FunctionEmitter::register_of(const Var* var) const {
  auto it = registers_.find(var);
  TENON_ASSERT(it != registers_.end(), "variable %", var->name, " has no register");
  return it->second;
}

Arg FunctionEmitter::value(const Operand& operand) {
  if (!operand) return Arg::none();
  if (auto* constant = operand.as<Constant>()) {
    // A boolean stays one: as an immediate it would be an integer to whoever takes it.
    const Any& known = constant->value;
    if (known.type_index == TypeIndex::Int && vm::fits_immediate(known.v.i)) {
      return Arg::imm(known.v.i);
    }
    return Arg::constant(constants_->of(*constant));
  }
  if (auto* tuple = type_of(operand).as<TupleType>(); tuple && tuple->fields.empty()) {
    return Arg::none();  // the unit
  }
  return Arg::reg(register_of(operand.as<Var>()));
}

Arg FunctionEmitter::in_register(const Operand& operand) {
  if (operand.is<Var>()) return value(operand);
  const uint32_t temporary = new_register();
  code_.emit(Opcode::Move, {Arg::reg(temporary), value(operand)});
  temporaries_.push_back(temporary);
  return Arg::reg(temporary);
}

Arg FunctionEmitter::integer(const Operand& operand) {
  if (auto* constant = operand.as<Constant>()) {
    if (auto truth = constant->value.try_as<bool>()) return Arg::imm(*truth);
    if (auto number = constant->value.try_as<int64_t>(); number && vm::fits_immediate(*number)) {
      return Arg::imm(*number);
    }
  }
  return in_register(operand);
}

std::vector<Arg> FunctionEmitter::values(const Array<Operand>& operands) {
  std::vector<Arg> args;
  for (const Operand& operand : operands) args.push_back(value(operand));
  return args;
}

std::vector<Arg> FunctionEmitter::consume(const Array<Operand>& operands) {
  std::vector<Arg> args = values(operands);
  for (const Var* var : dying_) {
    if (!registers_.contains(var)) continue;  // the unit
    const uint32_t reg = register_of(var);
    auto it = std::find(args.rbegin(), args.rend(), Arg::reg(reg));
    if (it == args.rend()) continue;
    *it = Arg::last(reg);
    moved_.insert(var);
  }
  return args;
}

void FunctionEmitter::release(const std::vector<const Var*>& dead) {
  std::vector<Arg> kills;
  for (const Var* var : dead) {
    auto it = registers_.find(var);
    if (it == registers_.end()) continue;  // never given one: the unit
    if (loop_vars_.contains(var)) continue;
    if (!moved_.contains(var) && !var->type.is<ScalarType>()) {
      kills.push_back(Arg::reg(it->second));
    }
    free_register(it->second);
  }
  if (!kills.empty()) code_.emit(Opcode::Kill, {}, kills);
}

// ---- functions and blocks ----

void FunctionEmitter::emit_signature(vm::FunctionUnit* out) {
  require_name("function", function_.name, function_.span);
  if (has_type_parameters(type_of(function_))) {
    refuse("type parameters are parsed and checked, but not run by this version",
           "write a function for each type");
  }
  out->name = std::string(function_.name);
  if (auto* exported = function_.attrs.find("export")) out->exported = exported->as<bool>();
  for (const VarRef& param : function_.params) {
    // A model may name its inputs as it likes; a file's names hold no control characters.
    const std::string name = printable(param->name);
    require_name("parameter", name, function_.span);
    for (const vm::Param& other : out->params) {
      if (other.name != name) continue;
      refuse(cat("two parameters are written ", quoted(name)),
             "rename one: in a compiled file control characters are written as escapes");
    }
    out->params.push_back({name, signature_type(param->type)});
  }
  out->result = signature_type(function_.result_type);
}

void FunctionEmitter::emit(vm::FunctionUnit* out) {
  span_ = function_.span;
  if (function_.params.size() > vm::kMaxParams) {
    refuse(cat("it has ", function_.params.size(), " parameters"),
           cat("a function of bytecode has at most ", vm::kMaxParams, ": pass some as a tuple"));
  }
  emit_signature(out);
  std::vector<const Var*> params;
  for (const VarRef& param : function_.params) {
    registers_[param.get()] = new_register();
    params.push_back(param.get());
  }
  code_.set_span(unit_->add_span(span_));
  emit_parameter_checks();
  const Arg result = emit_block(function_.body, params, /*tail=*/true);
  // A tail call or an if whose branches both returned has left the frame already.
  if (!left_frame_) code_.emit(Opcode::Ret, {result});
  if (register_count_ > vm::kMaxRegisters) {
    span_ = function_.span;
    refuse(cat("it keeps ", register_count_, " values and sizes at once"),
           cat("a function of bytecode has at most ", vm::kMaxRegisters,
               " registers: make two functions of it"));
  }
  out->register_count = register_count_;
  out->code = code_.finish(&out->spans);
}

void FunctionEmitter::emit_bindings(const Bindings& bindings, const std::vector<Operand>& results,
                                    const std::vector<const Var*>& extra, bool tail) {
  const BlockLiveness liveness = analyse_liveness(bindings, results, extra);
  left_frame_ = false;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Binding& binding = *bindings[i];
    span_ = binding.span;
    code_.set_span(unit_->add_span(span_));
    dying_ = liveness.dies[i];
    const bool is_result = tail && i + 1 == bindings.size() && results.size() == 1 &&
                           results[0].get() == static_cast<const Object*>(binding.var.get());
    left_frame_ = emit_binding(binding, liveness.unused[i], is_result);
    for (uint32_t temporary : temporaries_) free_register(temporary);
    temporaries_.clear();
    if (left_frame_) return;
    release(liveness.dies[i]);
  }
}

Arg FunctionEmitter::emit_block(const BlockRef& block, const std::vector<const Var*>& extra,
                                bool tail) {
  const auto outer_sizes = sizes_;
  const auto outer_symbols = symbols_;
  emit_bindings(block->bindings, {block->result}, extra, tail);
  Arg result = Arg::none();
  if (!left_frame_) {
    result = value(block->result);
    if (auto* var = block->result.as<Var>()) {
      const bool own = std::find(extra.begin(), extra.end(), var) != extra.end() ||
                       std::any_of(block->bindings.begin(), block->bindings.end(),
                                   [&](const auto& binding) { return binding->var.get() == var; });
      if (own && !result.is_none()) result = Arg::last(result.index());
    }
  }
  sizes_ = outer_sizes;
  symbols_ = outer_symbols;
  return result;
}

bool FunctionEmitter::emit_binding(const Binding& binding, bool unused, bool tail) {
  const ExprRef& value_expr = binding.value;
  auto* unit_result = binding.var->type.as<TupleType>();
  const bool discard = unused || (unit_result && unit_result->fields.empty());
  Arg dst = Arg::none();
  auto define = [&] {
    if (discard) return;
    const uint32_t reg = new_register();
    registers_[binding.var.get()] = reg;
    dst = Arg::reg(reg);
  };
  if (auto* call = value_expr.as<Call>()) {
    define();
    return emit_call(*call, binding.var->type, dst, tail);
  }
  if (auto* branch = value_expr.as<If>()) {
    define();
    return emit_if(*branch, dst, tail);
  }
  if (auto* loop = value_expr.as<Loop>()) {
    define();
    // What the loop itself reads outlives its start.
    const auto inside = variables_used_inside(value_expr);
    std::erase_if(dying_, [&](const Var* var) { return inside.contains(var); });
    emit_loop(*loop, dst);
    return false;
  }
  if (auto* tuple = value_expr.as<Tuple>()) {
    if (discard) return false;
    const std::vector<Arg> fields = consume(tuple->fields);
    define();
    code_.emit(Opcode::AllocTuple, {dst}, fields);
    return false;
  }
  if (auto* field = value_expr.as<Field>()) {
    const Arg tuple_arg = value(field->tuple);
    define();
    if (!discard) {
      code_.emit(Opcode::GetField, {dst, tuple_arg, Arg::imm(field->index)});
    }
    return false;
  }
  if (auto* match = value_expr.as<MatchShape>()) {
    emit_match_shape(*match);
    define();
    if (!discard) code_.emit(Opcode::Move, {dst, consume({match->value})[0]});
    return false;
  }
  if (auto* check = value_expr.as<Check>()) {
    emit_check(*check);
    return false;
  }
  const char* const checked_only = value_expr.is<Match>()          ? "match is"
                                   : value_expr.is<FunctionExpr>() ? "function literals are"
                                   : value_expr.is<Construct>()    ? "algebraic data types are"
                                                                   : nullptr;
  if (checked_only) {
    refuse(cat(checked_only, " parsed and checked, but not run by this version"),
           "write it with if, loop, tuples and functions");
  }
  TENON_ASSERT(false, "unknown right-hand side");
  return false;
}

bool FunctionEmitter::emit_if(const If& branch, Arg dst, bool tail) {
  Arg condition;
  uint32_t temporary = 0;
  bool has_temporary = false;
  if (type_of(branch.condition).as<ScalarType>()) {
    condition = in_register(branch.condition);
  } else {
    temporary = read_truth(in_register(branch.condition));
    has_temporary = true;
    condition = Arg::reg(temporary);
  }
  const Label otherwise = code_.make_label(), end = code_.make_label();
  code_.emit(Opcode::If, {condition, code_.to(otherwise)});
  if (has_temporary) free_register(temporary);

  auto arm = [&](const BlockRef& block) {
    const Arg result = emit_block(block, {}, tail);
    const bool left = left_frame_;
    left_frame_ = false;
    if (left) return true;
    if (tail) {
      code_.emit(Opcode::Ret, {result});
      if (result.is(vm::ArgKind::LastUse)) free_register(result.index());
      return true;
    }
    if (!dst.is_none()) code_.emit(Opcode::Move, {dst, result});
    if (result.is(vm::ArgKind::LastUse)) {
      if (dst.is_none()) {
        const Arg dead[] = {Arg::reg(result.index())};
        code_.emit(Opcode::Kill, {}, dead);
      }
      free_register(result.index());
    }
    return false;
  };
  arm(branch.then_block);
  if (!tail) code_.emit(Opcode::Goto, {code_.to(end)});
  code_.bind(otherwise);
  arm(branch.else_block);
  if (!tail) code_.bind(end);
  return tail;
}

uint32_t FunctionEmitter::read_truth(Arg tensor) {
  const uint32_t flat = new_register(), truth = new_register();
  code_.emit(Opcode::ReshapeTensor, {Arg::reg(flat), tensor});
  const Arg element[] = {Arg::reg(truth)};
  code_.emit(Opcode::ReadElements, {Arg::last(flat)}, element);
  free_register(flat);
  return truth;
}

void FunctionEmitter::emit_loop(const Loop& loop, Arg dst) {
  std::vector<const Var*> vars;
  const std::vector<Arg> init = consume(loop.init);
  for (size_t i = 0; i < loop.vars.size(); ++i) {
    const uint32_t reg = new_register();
    registers_[loop.vars[i].get()] = reg;
    loop_vars_.insert(loop.vars[i].get());
    vars.push_back(loop.vars[i].get());
    code_.emit(Opcode::Move, {Arg::reg(reg), init[i]});
  }
  const Label top = code_.make_label(), exit = code_.make_label();
  code_.bind(top);
  // The condition reads the variables, the body or the exit comes after it: nothing dies in it.
  const Arg condition = emit_block(loop.condition, {}, false);
  Arg test = condition;
  if (!condition.is_register()) {
    const uint32_t reg = new_register();
    code_.emit(Opcode::Move, {Arg::reg(reg), condition});
    test = Arg::last(reg);
  }
  if (!type_of(loop.condition->result).as<ScalarType>()) {
    const uint32_t element = read_truth(test);
    if (test.is(vm::ArgKind::LastUse)) free_register(test.index());
    test = Arg::reg(element);
    code_.emit(Opcode::If, {test, code_.to(exit)});
    free_register(element);
  } else {
    code_.emit(Opcode::If, {test, code_.to(exit)});
    if (test.is(vm::ArgKind::LastUse)) free_register(test.index());
  }

  emit_loop_step(loop);
  code_.emit(Opcode::Goto, {code_.to(top)});
  code_.bind(exit);
  std::vector<Arg> results;
  results.reserve(vars.size());
  for (const Var* var : vars) results.push_back(Arg::last(register_of(var)));
  if (dst.is_none()) {
    std::vector<Arg> dead;
    dead.reserve(vars.size());
    for (const Var* var : vars) dead.push_back(Arg::reg(register_of(var)));
    code_.emit(Opcode::Kill, {}, dead);
  } else if (results.size() == 1) {
    code_.emit(Opcode::Move, {dst, results[0]});
  } else {
    code_.emit(Opcode::AllocTuple, {dst}, results);
  }
  for (const Var* var : vars) free_register(register_of(var));
}

// The body, then its results into the variables. A result may be another variable's old value, so
// all results are in registers of their own before the first variable is written.
void FunctionEmitter::emit_loop_step(const Loop& loop) {
  const Bindings& bindings = loop.body->bindings;
  std::vector<const Var*> vars;
  for (const VarRef& var : loop.vars) vars.push_back(var.get());
  std::vector<uint32_t> next;
  if (vars.size() == 1) {
    next = emit_into_registers(bindings, {loop.body->result}, vars);
  } else {
    // The tuple that ends the body need not be made when the body makes it last.
    auto* tuple = bindings.empty() ? nullptr : bindings.back()->value.as<Tuple>();
    if (tuple && loop.body->result == bindings.back()->var) {
      next =
          emit_into_registers(std::vector<Ref<const Binding>>(bindings.begin(), bindings.end() - 1),
                              {tuple->fields.begin(), tuple->fields.end()}, vars);
    } else {
      const uint32_t packed = emit_into_registers(bindings, {loop.body->result}, vars)[0];
      for (size_t i = 0; i < vars.size(); ++i) {
        next.push_back(new_register());
        code_.emit(Opcode::GetField,
                   {Arg::reg(next.back()), Arg::reg(packed), Arg::imm(static_cast<int64_t>(i))});
      }
      const Arg dead[] = {Arg::reg(packed)};
      code_.emit(Opcode::Kill, {}, dead);
      free_register(packed);
    }
  }
  for (size_t i = 0; i < next.size(); ++i) {
    const uint32_t reg = register_of(vars[i]);
    if (next[i] == reg) continue;  // it keeps its value
    code_.emit(Opcode::Move, {Arg::reg(reg), Arg::last(next[i])});
    free_register(next[i]);
  }
}

std::vector<uint32_t> FunctionEmitter::emit_into_registers(const Bindings& bindings,
                                                           const std::vector<Operand>& results,
                                                           const std::vector<const Var*>& vars) {
  const auto outer_sizes = sizes_;
  const auto outer_symbols = symbols_;
  emit_bindings(bindings, results, vars, false);
  std::vector<uint32_t> registers;
  for (size_t i = 0; i < results.size(); ++i) {
    auto* var = results[i].as<Var>();
    if (var && i < vars.size() && var == vars[i]) {
      registers.push_back(register_of(var));
      continue;
    }
    const bool own = std::any_of(bindings.begin(), bindings.end(),
                                 [&](const auto& b) { return b->var.get() == var; });
    const bool again = std::any_of(results.begin() + static_cast<int64_t>(i) + 1, results.end(),
                                   [&](const Operand& later) { return later.get() == var; });
    if (var && own && !again && registers_.contains(var)) {
      registers.push_back(register_of(var));
    } else {
      registers.push_back(new_register());
      code_.emit(Opcode::Move, {Arg::reg(registers.back()), value(results[i])});
    }
  }
  sizes_ = outer_sizes;
  symbols_ = outer_symbols;
  return registers;
}

}  // namespace tenon::codegen
