#include "codegen/bytecode/lower_sizes.h"

#include <algorithm>

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only
using vm::Arg;
using vm::DimPattern;
using vm::Opcode;

// ---- sizes ----

void SizeLowering::know(const Dim& dim, Arg size) {
  known_.emplace(dim, size);
  in_scope_.push_back(dim);
}

void SizeLowering::forget(size_t begin) {
  for (; in_scope_.size() > begin; in_scope_.pop_back()) known_.erase(in_scope_.back());
}

bool SizeLowering::is_bound(const Dim& dim) const {
  if (dim.is_const()) return true;
  if (dim.kind() == DimKind::kSymbol) return known_.contains(dim);
  return std::ranges::all_of(dim.node().args,
                             [this](const auto& arg) { return is_bound(Dim(arg)); });
}

Arg SizeLowering::size(const Dim& dim) {
  if (auto constant = dim.as_const(); constant && vm::fits_immediate(*constant)) {
    return Arg::imm(*constant);
  }
  if (auto it = known_.find(dim); it != known_.end()) return it->second;
  const Arg result = compute(dim);
  know(dim, result);
  return result;
}

Arg SizeLowering::compute(const Dim& dim) {
  if (auto constant = dim.as_const()) {
    const Arg result = code_.make(/*owns=*/false);
    code_.emit(Opcode::LoadConst, {result, Arg::constant(constants_.of_value(Any(*constant)))});
    return result;
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
      TENON_ASSERT(false, "the size ", to_text(dim), " is used before it is bound");
  }
  const auto& args = dim.node().args;
  Arg left = size(Dim(args[0]));
  for (size_t i = 1; i < args.size(); ++i) {
    const Arg right = size(Dim(args[i])), result = code_.make(/*owns=*/false);
    code_.emit(opcode, {result, left, right});
    left = result;
  }
  return left;
}

std::vector<Arg> SizeLowering::sizes(const Array<Dim>& dims) {
  std::vector<Arg> args;
  args.reserve(dims.size());
  for (const Dim& dim : dims) args.push_back(size(dim));
  return args;
}

// ---- matches ----

std::vector<DimPattern> SizeLowering::patterns(const Array<Dim>& dims, std::vector<size_t>* later) {
  std::vector<DimPattern> out;
  std::vector<std::pair<Dim, Arg>> fresh;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& dim = dims[i];
    if (auto constant = dim.as_const(); constant && vm::fits_immediate(*constant)) {
      out.push_back(DimPattern::equals(*constant));
    } else if (dim.kind() == DimKind::kSymbol && !is_bound(dim)) {
      if (std::ranges::find(fresh, dim, &std::pair<Dim, Arg>::first) != fresh.end()) {
        // [n, n]: the second one is compared after the first is stored.
        out.push_back(DimPattern::ignore());
        later->push_back(i);
      } else {
        fresh.emplace_back(dim, code_.make(/*owns=*/false));
        out.push_back(DimPattern::store(fresh.back().second.index()));
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
  for (const auto& [symbol, arg] : fresh) know(symbol, arg);
  return out;
}

void SizeLowering::match_dims(Arg value, const Array<Dim>& dims,
                              std::vector<Postponed>* postponed) {
  std::vector<size_t> later;
  const auto found = patterns(dims, &later);
  code_.match_shape(value, found);
  if (!later.empty()) postponed->push_back({value, dims, later, {}});
}

void SizeLowering::match_tensor(Arg value, DataType dtype, const Array<Dim>& dims,
                                std::vector<Postponed>* postponed) {
  std::vector<size_t> later;
  const auto found = patterns(dims, &later);
  code_.match_tensor(value, dtype, found);
  if (!later.empty()) postponed->push_back({value, dims, later, {}});
}

void SizeLowering::match_elements(Arg source, const TypeRef& type, const Array<Dim>& dims,
                                  std::vector<Postponed>* postponed) {
  if (type.as<ShapeType>()) return match_dims(source, dims, postponed);
  // Each element is read into a register and then matched as a value.
  std::vector<Arg> elements;
  if (type.as<ScalarType>()) {
    elements.push_back(source);
  } else {
    for (size_t i = 0; i < dims.size(); ++i) elements.push_back(code_.make(/*owns=*/false));
    code_.emit(Opcode::ReadElements, {source}, elements);
  }
  std::vector<size_t> later;
  const auto found = patterns(dims, &later);
  for (size_t i = 0; i < elements.size(); ++i) {
    code_.match_prim_value(elements[i], found[i]);
    if (found[i].match == vm::DimMatch::Store) {
      const Arg test = code_.make(/*owns=*/false);
      code_.emit(Opcode::Ge, {test, elements[i], Arg::imm(0)});
      code_.emit(Opcode::Check, {test, Arg::constant(constants_.of_text(negative_size("{}")))},
                 {&elements[i], 1});
    }
  }
  if (!later.empty()) postponed->push_back({source, dims, later, elements});
}

void SizeLowering::match_postponed(const std::vector<Postponed>& all) {
  for (const Postponed& p : all) {
    std::vector<DimPattern> dims(p.dims.size(), DimPattern::ignore());
    for (size_t i : p.later) {
      dims[i] = DimPattern::equals_register(size(p.dims[i]).index());
      if (!p.elements.empty()) code_.match_prim_value(p.elements[i], dims[i]);
    }
    if (p.elements.empty()) code_.match_shape(p.value, dims);
  }
}

void SizeLowering::match_shape(const MatchShape& match, Arg value) {
  std::vector<Postponed> postponed;
  const TypeRef type = type_of(match.value);
  if (match.elements) {
    match_elements(value, type, match.dims, &postponed);
  } else if (const auto* tensor = type.as<TensorType>()) {
    // The dtype, too: the value may be what a packed function returned.
    match_tensor(value, tensor->dtype, match.dims, &postponed);
  } else {
    match_dims(value, match.dims, &postponed);
  }
  match_postponed(postponed);
}

void SizeLowering::match_type(Arg value, const TypeRef& type, std::vector<Postponed>* postponed) {
  if (auto* tensor = type.as<TensorType>()) {
    if (tensor->dims_known) {
      match_tensor(value, tensor->dtype, tensor->dims, postponed);
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
      const Arg field = code_.make(!tuple->fields[i].is<ScalarType>());
      code_.emit(Opcode::GetField, {field, value, Arg::imm(static_cast<int64_t>(i))});
      match_type(field, tuple->fields[i], postponed);
    }
  }
}

void SizeLowering::match_parameters(const Array<VarRef>& params, const std::vector<Arg>& values) {
  std::vector<Postponed> postponed;
  for (size_t i = 0; i < params.size(); ++i) match_type(values[i], params[i]->type, &postponed);
  // An earlier parameter's expression may use symbols that a later one binds.
  match_postponed(postponed);
}

void SizeLowering::match_result(Arg value, const TypeRef& type) {
  auto* scalar = type.as<ScalarType>();
  if (scalar && !scalar->value_known) {
    const DataType dtype = scalar->dtype;
    if (dtype.is_float()) return code_.emit(Opcode::RoundFloat, {value, value, Arg::dtype(dtype)});
    code_.match_prim_value(value, DimPattern::ignore());
    if (dtype.is_bool() || dtype.bits == 64) return;
    const Arg wrapped = code_.make(/*owns=*/false), test = code_.make(/*owns=*/false);
    code_.emit(Opcode::Narrow, {wrapped, value, Arg::dtype(dtype)});
    code_.emit(Opcode::Eq, {test, wrapped, value});
    code_.emit(Opcode::Check,
               {test, Arg::constant(constants_.of_text(cat("{} is not of type ", to_text(dtype))))},
               {&value, 1});
  } else if (auto* tuple = type.as<TupleType>()) {
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      if (is_unit(tuple->fields[i])) continue;
      const Arg field = code_.make(!tuple->fields[i].is<ScalarType>());
      code_.emit(Opcode::GetField, {field, value, Arg::imm(static_cast<int64_t>(i))});
      match_result(field, tuple->fields[i]);
    }
  } else {
    std::vector<Postponed> postponed;
    match_type(value, type, &postponed);
    TENON_ASSERT(postponed.empty(), "a size in ", to_text(type), " is not bound");
  }
}

// ---- checks ----

namespace {

// The text in the message of a `check` instruction, in which {} stands for a value and {{ for {.
std::string as_message(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == '{' ? 2 : 1, c);
  return out;
}

}  // namespace

void SizeLowering::check(const Check& check) {
  const Arg left = size(check.left), right = size(check.right);
  Arg test = code_.make(/*owns=*/false);
  if (check.kind == CheckKind::kBroadcast) {
    code_.emit(Opcode::Eq, {test, left, right});
    for (const Arg side : {left, right}) {
      const Arg one = code_.make(/*owns=*/false), either = code_.make(/*owns=*/false);
      code_.emit(Opcode::Eq, {one, side, Arg::imm(1)});
      code_.emit(Opcode::Or, {either, test, one});
      test = either;
    }
  } else {
    code_.emit(check.kind == CheckKind::kEqual ? Opcode::Eq : Opcode::Le, {test, left, right});
  }
  std::vector<Arg> found;
  const auto shown = [&](const Dim& size, Arg value) {
    if (size.is_const()) return to_text(size);
    found.push_back(value);
    return cat("{} (", as_message(to_text(size)), ")");
  };
  const std::string left_text = shown(check.left, left), right_text = shown(check.right, right);
  code_.emit(Opcode::Check,
             {test, Arg::constant(constants_.of_text(
                        check_failure(check, as_message(check.message), left_text, right_text)))},
             found);
}

}  // namespace tenon::codegen
