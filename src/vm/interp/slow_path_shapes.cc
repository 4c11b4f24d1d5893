// The slow path's instructions on shapes: matching them, dtypes and integers, with errors that name
// the mismatched input, and making and reading them.
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

// Whether the register holds its parameter until the instruction at `offset`: nothing before that
// jumps, writes the register or moves the value out.
bool still_holds_parameter(const FunctionUnit& unit, uint32_t reg, uint32_t offset) {
  for (uint32_t at = 0; at < offset;) {
    Instruction in;
    decode(unit.code, at, &in);
    if (in.info->jumps()) return false;
    for (uint32_t i = 0; i < in.operands.size(); ++i) {
      const Arg arg = in.arg(i);
      if (arg == Arg::last(reg)) return false;
      if (arg == Arg::reg(reg) && role_of(in, i) == OperandRole::Writes) return false;
    }
    at += in.words();
  }
  return true;
}

// The operand that a match compares, in the same place for each of these instructions.
const ValueRef& matched(const Op& op) {
  constexpr uint32_t kPlace = value_operand(Opcode::MatchShape, "value");
  static_assert(kPlace == value_operand(Opcode::MatchTensor, "value") &&
                kPlace == value_operand(Opcode::MatchDtype, "value") &&
                kPlace == value_operand(Opcode::MatchPrimValue, "value"));
  return op.operands->args[kPlace];
}

// The parameters up to the one that the instruction matches; empty if it matches something else.
[[gnu::cold]] std::span<const Param> params_up_to_matched(Machine& m, const Op& op) {
  uint32_t offset = 0;
  const FunctionCode* code = m.running_program().decoded().locate(&op, &offset);
  const ValueRef& ref = matched(op);
  if (!code || ref.constant || ref.reg >= code->params) return {};
  const FunctionUnit& unit = m.running_program().function_unit(*code);
  if (!still_holds_parameter(unit, static_cast<uint32_t>(ref.reg), offset)) return {};
  return std::span<const Param>(unit.params).first(static_cast<size_t>(ref.reg) + 1);
}

// The size that a tensor parameter declares for an axis; null if it declares none.
const SignatureDim* declared_dim(const Param& param, size_t axis) {
  const SignatureType& type = param.type;
  if (type.kind != SignatureType::Kind::Tensor || !type.dims_known || axis >= type.dims.size()) {
    return nullptr;
  }
  return type.dims[axis].is_constant() ? nullptr : &type.dims[axis];
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

// Throws an error that names the parameter that holds the value, if any, and the parameter that
// bound the mismatched axis's size.
[[noreturn, gnu::cold]] void mismatch(Machine& m, const Op& op, const AnyView& value,
                                      std::string_view note, std::string_view expected,
                                      size_t axis = kNoAxis) {
  const std::span<const Param> params = params_up_to_matched(m, op);
  if (params.empty()) {
    Error error(ErrorKind::Runtime, "a value does not match what the program expects here");
    throw error.expected(expected).found(value_text(value), note);
  }
  const std::string program = printable(m.running_program().name());
  // A program that comes from memory or a pipe has no file to inspect.
  const std::string inspect =
      program.starts_with('<') ? "" : cat("see `tenon inspect ", program, "`");
  Error error(ErrorKind::Usage,
              cat("input '", printable(params.back().name), "' does not fit ", program));
  const SignatureDim* size = declared_dim(params.back(), axis);
  const Param* binder = size ? binder_of(params, size->text) : nullptr;
  if (!binder) {
    error.expected(expected).found(value_text(value), note);
    if (!value.is_object() && params.back().type.kind == SignatureType::Kind::Tensor) {
      error.help("a number is passed as a tensor of rank 0");
    } else if (!inspect.empty()) {
      error.help(inspect);
    }
    throw InputError(error);
  }
  throw InputError(error.expected(expected, cat("bound by '", printable(binder->name), "'"))
                       .found(value_text(value), note)
                       .help(cat("give both inputs the same ", printable(size->text),
                                 inspect.empty() ? "" : "; ", inspect)));
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

// For a parameter, with the names of its sizes: "tensor[batch=2, seq; i64]".
[[gnu::cold]] std::string expected_shape(Machine& m, const Op& op, const AnyView* base,
                                         DataType dtype) {
  const std::span<const Param> params = params_up_to_matched(m, op);
  std::string sizes;
  size_t axis = 0;
  for (const DimCheck& check : op.as<OpClass::Match>().dims) {
    std::string size = pattern_text(check, base);
    const SignatureDim* named = params.empty() ? nullptr : declared_dim(params.back(), axis);
    if (named) size = size == "*" ? printable(named->text) : cat(printable(named->text), "=", size);
    sizes += cat(axis++ ? ", " : "", size);
  }
  return dtype.is_void() ? cat("shape[", sizes, "]") : tensor_type_text(sizes, dtype);
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
                std::span<const int64_t> dims, DataType dtype) {
  const std::vector<DimCheck>& checks = op.as<OpClass::Match>().dims;
  if (dims.size() != checks.size()) [[unlikely]] {
    mismatch(m, op, value, cat("rank ", dims.size()), expected_shape(m, op, base, dtype));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!satisfies(checks[i], dims[i], base)) [[unlikely]]
      mismatch(m, op, value, cat("axis ", i), expected_shape(m, op, base, dtype), i);
    if (checks[i].match == DimMatch::Store) store(base, checks[i].reg, dims[i]);
  }
}

// Whether a Store writes the register that holds the value itself.
bool overwrites(const Op& op) {
  const ValueRef& value = matched(op);
  if (value.constant) return false;
  for (const DimCheck& check : op.as<OpClass::Match>().dims) {
    if (check.match == DimMatch::Store && check.reg == value.reg) return true;
  }
  return false;
}

}  // namespace

void op_match_shape(Machine& m, const Op& op, AnyView* base) {
  const MatchOperands& o = op.as<Opcode::MatchShape>();
  Any keep;
  const bool over = overwrites(op);
  if (over) [[unlikely]]
    keep = Any(value_of(matched(op), base));
  const AnyView value = value_of(matched(op), base);
  if (value.type_index == TypeIndex::Tensor) {
    match_dims(m, op, base, value, payload_as<Tensor>(value).shape(), {});
  } else if (value.type_index == TypeIndex::Shape) {
    match_dims(m, op, base, value, payload_as<Shape>(value).dims(), {});
  } else {
    mismatch(m, op, value, "", expected_shape(m, op, base, {}));
  }
  if (!over) release_last_uses(o, base);
}

void op_match_tensor(Machine& m, const Op& op, AnyView* base) {
  const MatchOperands& o = op.as<Opcode::MatchTensor>();
  Any keep;
  const bool over = overwrites(op);
  if (over) [[unlikely]]
    keep = Any(value_of(matched(op), base));
  const AnyView value = value_of(matched(op), base);
  if (value.type_index != TypeIndex::Tensor) [[unlikely]] {
    mismatch(m, op, value, "", expected_shape(m, op, base, o.dtype));
  }
  const Tensor& t = payload_as<Tensor>(value);
  if (t.dtype() != o.dtype) [[unlikely]] {
    mismatch(m, op, value, "", expected_shape(m, op, base, o.dtype));
  }
  match_dims(m, op, base, value, t.shape(), o.dtype);
  if (!over) release_last_uses(o, base);
}

void op_match_dtype(Machine& m, const Op& op, AnyView* base) {
  const Operands& o = *op.operands;
  const AnyView value = value_of(matched(op), base);
  if (value.type_index != TypeIndex::Tensor || payload_as<Tensor>(value).dtype() != o.dtype) {
    mismatch(m, op, value, "", cat("a tensor of ", o.dtype));
  }
  release_last_uses(o, base);
}

void op_match_prim_value(Machine& m, const Op& op, AnyView* base) {
  const MatchOperands& o = op.as<Opcode::MatchPrimValue>();
  const DimCheck& check = o.dims[0];
  const AnyView value = value_of(matched(op), base);
  if (!is_integer(value) || !satisfies(check, value.v.i, base)) {
    const bool is_known =
        check.match == DimMatch::EqualsImmediate || check.match == DimMatch::EqualsRegister;
    mismatch(m, op, value, "",
             is_known ? cat("the integer ", pattern_text(check, base)) : "an integer");
  }
  const int64_t number = value.v.i;
  release_last_uses(o, base);
  if (check.match == DimMatch::Store) store(base, check.reg, number);
}

void op_make_shape(Machine&, const Op& op, AnyView* base) {
  const Dims dims(Values<Opcode::MakeShape>(op).list("dims"), base, "a shape");
  finish(op, base, Any(Shape(dims.span())));
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
