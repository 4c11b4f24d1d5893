// The slow path's instructions on shapes: matching them, dtypes and integers, with errors that name
// the mismatched input, and making and reading them.
#include <unistd.h>

#include <span>

#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/operand_values.h"
#include "vm/interp/slow_path.h"

namespace tenon::vm::slow_path {
namespace {

std::string value_text(const AnyView& v) {
  if (v.type_index == TypeIndex::Tensor) return to_text(payload_as<Tensor>(v));
  if (v.type_index == TypeIndex::Shape) return cat("shape", to_text(payload_as<Shape>(v)));
  if (is_integer(v)) return cat(v.v.i);
  return type_name(v.type_index);
}

// Where the register's value comes from, as far as the code before the instruction at `offset`
// tells without following jumps.
struct Source {
  enum class Kind : uint8_t { Unknown, Parameter, Instruction };
  Kind kind = Kind::Unknown;
  Instruction writer;  // of an Instruction, with its offset and the operand that names the register
  uint32_t offset = 0, operand = 0;
};

[[gnu::cold]] Source source_of(const FunctionUnit& unit, uint32_t reg, uint32_t offset) {
  Source source;
  if (reg < unit.params.size()) source.kind = Source::Kind::Parameter;
  Instruction in;
  for (uint32_t at = 0; at < offset; at += in.words()) {
    decode(unit.code, at, &in);
    if (in.info->jumps()) source.kind = Source::Kind::Unknown;
    // Backwards: an instruction's result comes first, and may replace its last argument.
    for (uint32_t i = static_cast<uint32_t>(in.operands.size()); i-- > 0;) {
      const Arg arg = in.arg(i);
      if (arg == Arg::last(reg)) source.kind = Source::Kind::Unknown;
      if (arg == Arg::reg(reg) && role_of(in, i) == OperandRole::Writes) {
        source = {Source::Kind::Instruction, in, at, i};
      }
    }
  }
  return source;
}

// The operand that a match compares, in the same place for each of these instructions.
const ValueRef& matched(const Op& op) {
  constexpr uint32_t kPlace = value_operand(Opcode::MatchShape, "value");
  static_assert(kPlace == value_operand(Opcode::MatchTensor, "value") &&
                kPlace == value_operand(Opcode::MatchDtype, "value") &&
                kPlace == value_operand(Opcode::MatchPrimValue, "value"));
  return op.operands->args[kPlace];
}

// The function that runs the instruction, and the instruction's offset in its code.
struct Place {
  const FunctionUnit* unit = nullptr;
  uint32_t offset = 0;
};

[[gnu::cold]] Place place_of(Machine& m, const Op& op) {
  Place place;
  const FunctionCode* code = m.running_program().decoded().locate(&op, &place.offset);
  if (code) place.unit = &m.running_program().function_unit(*code);
  return place;
}

// The parameters up to the one that the instruction matches; empty if it matches something else.
[[gnu::cold]] std::span<const Param> params_up_to_matched(Machine& m, const Op& op) {
  const Place place = place_of(m, op);
  const ValueRef& ref = matched(op);
  if (!place.unit || ref.constant || !place.unit->exported || !m.is_called_by_host()) return {};
  const auto reg = static_cast<uint32_t>(ref.reg);
  if (source_of(*place.unit, reg, place.offset).kind != Source::Kind::Parameter) return {};
  return std::span<const Param>(place.unit->params).first(reg + 1);
}

// The packed function whose result, or a field of it, the instruction matches: "function 'f'
// returned ", with the field's index. Empty if it matches something else.
[[gnu::cold]] std::string matched_result(Machine& m, const Op& op) {
  Place place = place_of(m, op);
  const ValueRef& ref = matched(op);
  if (!place.unit || ref.constant) return {};
  std::string which;
  for (auto reg = static_cast<uint32_t>(ref.reg);;) {
    const Source source = source_of(*place.unit, reg, place.offset);
    if (source.kind != Source::Kind::Instruction) return {};
    const Instruction& in = source.writer;
    if (in.opcode() == Opcode::GetField) {
      which = cat("as result ", in.arg(operand(Opcode::GetField, "index")).value(), " ");
      reg = in.arg(operand(Opcode::GetField, "object")).index();
      place.offset = source.offset;
      continue;
    }
    if (in.opcode() != Opcode::CallPacked) return {};
    const uint32_t callee = in.arg(operand(Opcode::CallPacked, "callee")).index();
    return cat("function '", printable(m.running_program().unit().packed[callee].name),
               "' returned ", which);
  }
}

// The size that a tensor parameter declares for an axis; null if it declares none.
const SignatureDim* declared_dim(const Param& param, size_t axis) {
  const SignatureType& type = param.type;
  if (type.kind != SignatureType::Kind::Tensor || !type.dims_known || axis >= type.dims.size()) {
    return nullptr;
  }
  return type.dims[axis].is_constant() ? nullptr : &type.dims[axis];
}

// The size that a parameter declares whose match stored it in the register; null if none did.
[[gnu::cold]] const SignatureDim* stored_dim(const Place& place, uint32_t reg) {
  const Source size = source_of(*place.unit, reg, place.offset);
  if (size.kind != Source::Kind::Instruction || size.writer.info->op_class != OpClass::Match) {
    return nullptr;
  }
  const uint32_t of = size.writer.arg(0).index();
  if (source_of(*place.unit, of, size.offset).kind != Source::Kind::Parameter) return nullptr;
  return declared_dim(place.unit->params[of],
                      (size.operand - size.writer.info->fixed_words) / words_of(OperandKind::Dim));
}

// The parameter that bound the size of that name, among all but the last of `params`.
const Param* binder_of(std::span<const Param> params, const std::string& size) {
  for (const Param& param : params.first(params.size() - 1)) {
    for (size_t i = 0; i < param.type.dims.size(); ++i) {
      const SignatureDim* dim = declared_dim(param, i);
      if (dim && dim->text == size) return &param;
    }
  }
  return nullptr;
}

constexpr size_t kNoAxis = SIZE_MAX;

// Throws an error that names the parameter or packed function that the value comes from, if any,
// and the parameter that bound the mismatched axis's size.
[[noreturn, gnu::cold]] void mismatch(Machine& m, const Op& op, const AnyView& value,
                                      std::string_view note, std::string_view expected,
                                      size_t axis = kNoAxis) {
  const std::span<const Param> params = params_up_to_matched(m, op);
  std::string what, bound, help;
  if (params.empty()) {
    what = matched_result(m, op);
    what += what.empty() ? "a value does not match what the program expects here"
                         : "a value that doesn't fit its declared type";
  } else {
    const std::string program = printable(m.running_program().name());
    what = cat("input '", printable(params.back().name), "' does not fit ", program);
    const SignatureDim* size = declared_dim(params.back(), axis);
    const Param* binder = size ? binder_of(params, size->text) : nullptr;
    if (binder) {
      bound = cat("bound by '", printable(binder->name), "'");
      help = cat("give both inputs the same ", printable(size->text));
    } else if (!value.is_object() && params.back().type.kind == SignatureType::Kind::Tensor) {
      help = "a number is passed as a tensor of rank 0";
    }
    // A program that comes from memory or a pipe has no file to inspect.
    if ((binder || help.empty()) && access(program.c_str(), F_OK) == 0) {
      help += cat(binder ? "; " : "", "see `tenon inspect ", program, "`");
    }
  }
  Error error(params.empty() ? ErrorKind::Runtime : ErrorKind::Usage, what);
  error.expected(expected, bound).found(value_text(value), note);
  if (!help.empty()) error.help(help);
  if (params.empty()) throw error;
  throw InputError(error);
}

// The expected number; "*" for any.
std::string pattern_text(const DimCheck& check, const AnyView* base) {
  switch (check.match) {
    case DimMatch::EqualsImmediate:
      return cat(check.value);
    case DimMatch::EqualsRegister:
      return is_integer(base[check.reg]) ? cat(base[check.reg].v.i) : cat("%", check.reg);
    default:
      return "*";
  }
}

// With the names of sizes that parameters declare: "tensor[batch=2, seq; i64]".
[[gnu::cold]] std::string expected_shape(Machine& m, const Op& op, const AnyView* base) {
  const std::span<const Param> params = params_up_to_matched(m, op);
  const Place place = place_of(m, op);
  std::string sizes;
  size_t axis = 0;
  for (const DimCheck& check : op.as<OpClass::Match>().dims) {
    std::string size = pattern_text(check, base);
    const SignatureDim* named = !params.empty() ? declared_dim(params.back(), axis)
                                : place.unit && check.match == DimMatch::EqualsRegister
                                    ? stored_dim(place, static_cast<uint32_t>(check.reg))
                                    : nullptr;
    if (named) size = size == "*" ? printable(named->text) : cat(printable(named->text), "=", size);
    sizes += cat(axis++ ? ", " : "", size);
  }
  const DataType dtype = op.operands->dtype;
  return dtype.is_void() ? cat("shape[", sizes, "]") : tensor_type_text(sizes, dtype);
}

[[noreturn, gnu::cold]] void shape_mismatch(Machine& m, const Op& op, const AnyView* base,
                                            const AnyView& value) {
  mismatch(m, op, value, "", expected_shape(m, op, base));
}
[[noreturn, gnu::cold]] void rank_mismatch(Machine& m, const Op& op, const AnyView* base,
                                           const AnyView& value, size_t rank) {
  mismatch(m, op, value, cat("rank ", rank), expected_shape(m, op, base));
}
[[noreturn, gnu::cold]] void axis_mismatch(Machine& m, const Op& op, const AnyView* base,
                                           const AnyView& value, size_t axis) {
  mismatch(m, op, value, cat("axis ", axis), expected_shape(m, op, base), axis);
}
[[noreturn, gnu::cold]] void number_mismatch(Machine& m, const Op& op, const AnyView* base,
                                             const AnyView& value) {
  const DimCheck& check = op.as<OpClass::Match>().dims.front();
  const bool is_known =
      check.match == DimMatch::EqualsImmediate || check.match == DimMatch::EqualsRegister;
  mismatch(m, op, value, "",
           is_known ? cat("the integer ", pattern_text(check, base)) : "an integer");
}
[[noreturn, gnu::cold]] void dtype_mismatch(Machine& m, const Op& op, const AnyView& value) {
  mismatch(m, op, value, "", cat("a tensor of ", op.operands->dtype));
}

// Whether `dim` passes the check. A Store always does; the caller performs it.
bool satisfies(const DimCheck& check, int64_t dim, const AnyView* base) {
  switch (check.match) {
    case DimMatch::EqualsImmediate:
      return dim == check.value;
    case DimMatch::EqualsRegister:
      return is_integer(base[check.reg]) && base[check.reg].v.i == dim;
    default:
      return true;
  }
}

void store(AnyView* base, int32_t reg, int64_t dim) {
  AnyView v;
  v.type_index = TypeIndex::Int;
  v.v.i = dim;
  put(base[reg], v);
}

// The matched value may be in a register that is stored to: the caller keeps it alive.
void match_dims(Machine& m, const Op& op, AnyView* base, const AnyView& value,
                std::span<const int64_t> dims) {
  const std::vector<DimCheck>& checks = op.as<OpClass::Match>().dims;
  if (dims.size() != checks.size()) [[unlikely]] {
    rank_mismatch(m, op, base, value, dims.size());
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!satisfies(checks[i], dims[i], base)) [[unlikely]]
      axis_mismatch(m, op, base, value, i);
    if (checks[i].match == DimMatch::Store) store(base, checks[i].reg, dims[i]);
  }
}

}  // namespace

void op_match_tensor(Machine& m, const Op& op, AnyView* base) {
  const MatchOperands& o = op.as<Opcode::MatchTensor>();
  Any keep;
  if (o.overwrites) [[unlikely]]
    keep = Any(value_of(matched(op), base));
  const AnyView& value = o.overwrites ? keep : value_of(matched(op), base);
  std::span<const int64_t> dims;
  if (value.type_index == TypeIndex::Tensor) [[likely]] {
    const Tensor& t = payload_as<Tensor>(value);
    if (t.dtype() != o.dtype && !o.dtype.is_void()) [[unlikely]]
      shape_mismatch(m, op, base, value);
    dims = t.shape();
  } else if (value.type_index == TypeIndex::Shape && o.dtype.is_void()) {
    dims = payload_as<Shape>(value).dims();
  } else {
    shape_mismatch(m, op, base, value);
  }
  match_dims(m, op, base, value, dims);
  if (!o.overwrites) release_last_uses(o, base);
}

// Has no dtype, so that the operands' is void.
void op_match_shape(Machine& m, const Op& op, AnyView* base) {
  op_match_tensor(m, op, base);
}

[[gnu::cold]] void op_match_dtype(Machine& m, const Op& op, AnyView* base) {
  const Operands& o = *op.operands;
  const AnyView value = value_of(matched(op), base);
  if (value.type_index != TypeIndex::Tensor || payload_as<Tensor>(value).dtype() != o.dtype) {
    dtype_mismatch(m, op, value);
  }
  release_last_uses(o, base);
}

void op_match_prim_value(Machine& m, const Op& op, AnyView* base) {
  const MatchOperands& o = op.as<Opcode::MatchPrimValue>();
  const DimCheck& check = o.dims[0];
  const AnyView value = value_of(matched(op), base);
  if (!is_integer(value) || !satisfies(check, value.v.i, base)) {
    number_mismatch(m, op, base, value);
  }
  const int64_t number = value.v.i;
  release_last_uses(o, base);
  if (check.match == DimMatch::Store) store(base, check.reg, number);
}

void op_make_shape(Machine&, const Op& op, AnyView* base) {
  const std::span<const ValueRef> dims = Values<Opcode::MakeShape>(op).list("dims");
  int64_t* room;
  Ref<ShapeObj> made = ShapeObj::of_size(dims.size(), &room);
  read_dims(dims, base, "a shape", room);
  finish(op, base, std::move(made));
}

namespace {

std::span<const int64_t> dims_of(const AnyView& v, const char* what) {
  if (v.type_index == TypeIndex::Tensor) return payload_as<Tensor>(v).shape();
  if (v.type_index == TypeIndex::Shape) return payload_as<Shape>(v).dims();
  throw Error(ErrorKind::Runtime, cat(what, " needs a shape or tensor"))
      .found(type_name(v.type_index));
}

}  // namespace

void op_get_dim(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::GetDim> in(op);
  const std::span<const int64_t> dims = dims_of(value_of(in["value"], base), in.mnemonic);
  const AnyView& axis = value_of(in["axis"], base);
  if (!is_integer(axis) || axis.v.i < 0 || axis.v.i >= static_cast<int64_t>(dims.size())) {
    throw Error(ErrorKind::Runtime, "an axis is out of range")
        .found(value_text(axis))
        .expected(cat("an axis of a value of rank ", dims.size()));
  }
  finish(op, base, Any(dims[static_cast<size_t>(axis.v.i)]));
}

void op_rank_of(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::RankOf> in(op);
  const size_t rank = dims_of(value_of(in["value"], base), in.mnemonic).size();
  finish(op, base, Any(static_cast<int64_t>(rank)));
}

}  // namespace tenon::vm::slow_path
