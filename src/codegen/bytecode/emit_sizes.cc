// Sizes: expressions of symbols in registers, the matches that bind symbols, and checks.
#include <algorithm>

#include "codegen/bytecode/function_emitter.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file speaks of graph IR only
using vm::Arg;
using vm::DimPattern;

bool FunctionEmitter::is_bound(const Dim& dim) const {
  std::vector<std::string> names;
  tenon::collect_symbols(dim, &names);
  return std::all_of(names.begin(), names.end(),
                     [this](const std::string& name) { return symbols_.contains(name); });
}

Arg FunctionEmitter::size(const Dim& dim) {
  if (auto constant = dim.as_const(); constant && vm::fits_immediate(*constant)) {
    return Arg::imm(*constant);
  }
  if (dim.kind() == DimKind::kSymbol) {
    auto it = symbols_.find(std::string(dim.node().name));
    TENON_ASSERT(it != symbols_.end(), "symbol ", dim.node().name, " is used before it is bound");
    return Arg::reg(it->second);
  }
  const std::string key = tenon::to_text(dim);
  if (auto it = sizes_.find(key); it != sizes_.end()) return Arg::reg(it->second);
  const Arg result = compute_size(dim);
  sizes_[key] = result.index();
  return result;
}

Arg FunctionEmitter::compute_size(const Dim& dim) {
  const uint32_t dst = register_count_++;  // never reused
  if (auto constant = dim.as_const()) {
    code_.load_int(*unit_, dst, *constant);
    return Arg::reg(dst);
  }
  Opcode opcode = Opcode::AddChecked;
  switch (dim.kind()) {
    case DimKind::kAdd:
      opcode = Opcode::AddChecked;
      break;
    case DimKind::kMul:
      opcode = Opcode::MulChecked;
      break;
    case DimKind::kFloorDiv:
      opcode = Opcode::FloorDiv;
      break;
    case DimKind::kMod:
      opcode = Opcode::FloorMod;
      break;
    case DimKind::kMin:
      opcode = Opcode::Min;
      break;
    case DimKind::kMax:
      opcode = Opcode::Max;
      break;
    case DimKind::kBcast:
      opcode = Opcode::Bcast;
      break;
    case DimKind::kConst:
    case DimKind::kSymbol:
      TENON_ASSERT(false, "a leaf is no instruction");
  }
  const auto& args = dim.node().args;
  Arg left = size(Dim(args[0]));
  for (size_t i = 1; i < args.size(); ++i) {
    const Arg right = size(Dim(args[i]));
    code_.emit(opcode, {Arg::reg(dst), left, right});
    left = Arg::reg(dst);
  }
  return left;
}

std::vector<Arg> FunctionEmitter::sizes(const Array<Dim>& dims) {
  std::vector<Arg> args;
  for (const Dim& dim : dims) args.push_back(size(dim));
  return args;
}

std::vector<DimPattern> FunctionEmitter::patterns(const Array<Dim>& dims,
                                                  std::vector<size_t>* later) {
  std::vector<DimPattern> out;
  std::vector<std::pair<std::string, uint32_t>> fresh;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& dim = dims[i];
    if (auto constant = dim.as_const(); constant && vm::fits_immediate(*constant)) {
      out.push_back(DimPattern::equals(*constant));
    } else if (dim.kind() == DimKind::kSymbol && !is_bound(dim)) {
      const std::string name(dim.node().name);
      auto known = std::find_if(fresh.begin(), fresh.end(),
                                [&](const auto& entry) { return entry.first == name; });
      if (known != fresh.end()) {  // [n, n]: the second one is compared once the first is stored
        out.push_back(DimPattern::ignore());
        later->push_back(i);
      } else {
        fresh.emplace_back(name, register_count_++);
        out.push_back(DimPattern::store(fresh.back().second));
      }
    } else if (is_bound(dim)) {
      const Arg arg = size(dim);
      out.push_back(arg.is_register() ? DimPattern::equals_register(arg.index())
                                      : DimPattern::equals(arg.value()));
    } else {
      out.push_back(DimPattern::ignore());
      later->push_back(i);
    }
  }
  for (const auto& [name, reg] : fresh) symbols_[name] = reg;
  return out;
}

// ---- matches ----

void FunctionEmitter::match_dims(Arg value, const Array<Dim>& dims,
                                 std::vector<Postponed>* postponed) {
  std::vector<size_t> later;
  code_.match_shape(value, patterns(dims, &later));
  if (!later.empty()) postponed->push_back({value, dims, later, {}});
}

void FunctionEmitter::match_elements(Arg source, const TypeRef& type, const Array<Dim>& dims,
                                     std::vector<Postponed>* postponed) {
  if (type.as<ShapeType>()) return match_dims(source, dims, postponed);
  // Each element is read into a register, then matched as a value.
  std::vector<uint32_t> elements;
  for (size_t i = 0; i < dims.size(); ++i) elements.push_back(register_count_++);
  if (type.as<ScalarType>()) {
    code_.emit(Opcode::Move, {Arg::reg(elements[0]), source});
  } else {
    std::vector<Arg> registers;
    registers.reserve(elements.size());
    for (uint32_t element : elements) registers.push_back(Arg::reg(element));
    code_.emit(Opcode::ReadElements, {source}, registers);
  }
  std::vector<size_t> later;
  const auto found = patterns(dims, &later);
  for (size_t i = 0; i < elements.size(); ++i) {
    code_.match_prim_value(Arg::reg(elements[i]), found[i]);
    if (found[i].match == vm::DimMatch::Store) {
      const uint32_t test = new_register();
      code_.emit(Opcode::Ge, {Arg::reg(test), Arg::reg(elements[i]), Arg::imm(0)});
      const Arg operand[] = {Arg::reg(elements[i])};
      code_.emit(Opcode::Check,
                 {Arg::last(test),
                  Arg::constant(constants_->of_text("a size computed from data is negative: {}"))},
                 operand);
      free_register(test);
    }
  }
  if (!later.empty()) postponed->push_back({source, dims, later, elements});
}

void FunctionEmitter::match_postponed(const std::vector<Postponed>& all) {
  for (const Postponed& p : all) {
    std::vector<DimPattern> dims(p.dims.size(), DimPattern::ignore());
    for (size_t i : p.later) {
      dims[i] = DimPattern::equals_register(size(p.dims[i]).index());
      if (!p.elements.empty()) code_.match_prim_value(Arg::reg(p.elements[i]), dims[i]);
    }
    if (p.elements.empty()) code_.match_shape(p.value, dims);
  }
}

void FunctionEmitter::emit_match_shape(const MatchShape& match) {
  std::vector<Postponed> postponed;
  if (match.elements) {
    match_elements(value(match.value), type_of(match.value), match.dims, &postponed);
  } else {
    match_dims(value(match.value), match.dims, &postponed);
  }
  match_postponed(postponed);
}

// ---- parameters ----

void FunctionEmitter::match_type(Arg value, const TypeRef& type, std::vector<Postponed>* postponed,
                                 std::vector<uint32_t>* fields) {
  if (auto* tensor = type.as<TensorType>()) {
    if (tensor->dims_known) {
      std::vector<size_t> later;
      code_.match_tensor(value, tensor->dtype, patterns(tensor->dims, &later));
      if (!later.empty()) postponed->push_back({value, tensor->dims, later, {}});
    } else if (tensor->rank != kUnknownRank) {
      code_.match_tensor(value, tensor->dtype,
                         std::vector<DimPattern>(tensor->rank, DimPattern::ignore()));
    } else {
      code_.emit(Opcode::MatchDtype, {value, Arg::dtype(tensor->dtype)});
    }
    if (tensor->value_known) match_elements(value, type, tensor->values, postponed);
  } else if (auto* shape = type.as<ShapeType>(); shape && shape->dims_known) {
    match_dims(value, shape->dims, postponed);
  } else if (auto* scalar = type.as<ScalarType>(); scalar && scalar->value_known) {
    match_elements(value, type, {scalar->value}, postponed);
  } else if (auto* tuple = type.as<TupleType>()) {
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      fields->push_back(register_count_++);
      const Arg field = Arg::reg(fields->back());
      code_.emit(Opcode::GetField, {field, value, Arg::imm(static_cast<int64_t>(i))});
      match_type(field, tuple->fields[i], postponed, fields);
    }
  }
}

void FunctionEmitter::emit_parameter_checks() {
  std::vector<Postponed> postponed;
  std::vector<uint32_t> fields;
  for (const VarRef& param : function_.params) {
    auto* unit = param->type.as<TupleType>();
    if (unit && unit->fields.empty()) continue;
    match_type(Arg::reg(register_of(param.get())), param->type, &postponed, &fields);
  }
  // What a later parameter binds may stand in an earlier one's expression.
  match_postponed(postponed);
  std::vector<Arg> dead;
  for (uint32_t field : fields) {
    dead.push_back(Arg::reg(field));
    free_register(field);
  }
  if (!dead.empty()) code_.emit(Opcode::Kill, {}, dead);
}

// ---- checks ----

void FunctionEmitter::emit_check(const Check& check) {
  const Arg left = size(check.left), right = size(check.right);
  const uint32_t test = new_register();
  const Arg operands[] = {left, right};
  if (check.kind == CheckKind::kBroadcast) {
    code_.emit(Opcode::Eq, {Arg::reg(test), left, right});
    const uint32_t one = new_register();
    for (const Arg side : operands) {
      code_.emit(Opcode::Eq, {Arg::reg(one), side, Arg::imm(1)});
      code_.emit(Opcode::Or, {Arg::reg(test), Arg::reg(test), Arg::reg(one)});
    }
    free_register(one);
  } else {
    code_.emit(check.kind == CheckKind::kEqual ? Opcode::Eq : Opcode::Le,
               {Arg::reg(test), left, right});
  }
  const char* relation = check.kind == CheckKind::kEqual       ? "must be equal"
                         : check.kind == CheckKind::kLessEqual ? "must not decrease"
                                                               : "must be equal or one of them 1";
  code_.emit(Opcode::Check,
             {Arg::last(test), Arg::constant(constants_->of_text(cat(
                                   check.message.empty() ? "a check fails" : check.message.view(),
                                   ": found {} (", tenon::to_text(check.left), ") and {} (",
                                   tenon::to_text(check.right), "), which ", relation)))},
             operands);
  free_register(test);
}

}  // namespace tenon::codegen
