#include "vm/interp/slow_path_errors.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>

#include "object/shape.h"
#include "object/tensor.h"
#include "support/failures.h"
#include "support/poll.h"
#include "support/text.h"
#include "vm/isa/limits.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm::slow_path {
namespace {

std::string value_text(const AnyView& v) {
  return is_integer(v) ? cat(v.v.i) : found_text(v);
}

// Where the register's value comes from at the instruction at `offset`, as far as the code tells
// that runs straight to it.
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
  uint32_t begin = 0;
  poll();
  for (uint32_t at = 0; at < unit.code.size(); at += in.words()) {
    decode(unit.code, at, &in);
    if (!in.info->jumps()) continue;
    for (const Word word : in.operands) {
      const Arg arg(word);
      if (!arg.is(ArgKind::Label) || arg.index() > offset) continue;
      begin = std::max(begin, arg.index());
      source.kind = Source::Kind::Unknown;
    }
  }
  for (uint32_t at = begin; at < offset; at += in.words()) {
    decode(unit.code, at, &in);
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

// Values are traced through so many fields within each other; a hostile program may have millions.
constexpr int kDeepestField = 64;

// Whether two instructions come from the same place of the program's text, as far as that is known.
// A value's declared type is checked where the value comes from, and a match that the program
// itself makes of it has a place of its own.
[[gnu::cold]] bool is_same_place(const FunctionUnit& unit, uint32_t a, uint32_t b) {
  const CodeSpan *x = Program::span_at(unit, a), *y = Program::span_at(unit, b);
  return !x || !y || x->span == y->span;
}

// What is wrong with a value that didn't come in as an argument: names the packed function whose
// result it is, or a field of it.
[[gnu::cold]] std::string other_misfit(Machine& m, const Op& op) {
  Place place = place_of(m, op);
  const ValueRef& ref = matched(op);
  auto reg = static_cast<uint32_t>(ref.reg);
  int64_t field = -1;
  const uint32_t here = place.offset;
  const char* what = "a value does not match what the program expects here";
  for (int depth = 0; depth < kDeepestField && place.unit && !ref.constant; ++depth) {
    const Source source = source_of(*place.unit, reg, place.offset);
    const Instruction& in = source.writer;
    if (source.kind != Source::Kind::Instruction) break;
    if (depth == 0 && !is_same_place(*place.unit, source.offset, here)) break;
    if (in.opcode() == Opcode::CallPacked) {
      const uint32_t callee = in.arg(operand(Opcode::CallPacked, "callee")).index();
      return returned_text(m.running_program().unit().packed[callee].name, field,
                           kMisfitsDeclaration);
    }
    if (in.opcode() != Opcode::GetField) break;
    what = "a tuple, array or cell holds a value that doesn't fit its declared type";
    const Arg index = in.arg(operand(Opcode::GetField, "index"));
    if (index.is_register()) break;
    field = index.value();
    reg = in.arg(operand(Opcode::GetField, "object")).index();
    place.offset = source.offset;
  }
  return what;
}

// The size that a type declares for an axis; null if it declares none or a constant.
const SignatureDim* declared_dim(const SignatureType& type, size_t axis) {
  if (!type.dims_known || axis >= type.dims.size()) return nullptr;
  return type.dims[axis].is_constant() ? nullptr : &type.dims[axis];
}

// The size that a parameter declares whose match stored it in the register; null if none did.
[[gnu::cold, gnu::noinline]] const SignatureDim* stored_dim(const Place& place, uint32_t reg) {
  const Source size = source_of(*place.unit, reg, place.offset);
  if (size.kind != Source::Kind::Instruction || size.writer.info->op_class != OpClass::Match) {
    return nullptr;
  }
  const uint32_t of = size.writer.arg(0).index();
  if (source_of(*place.unit, of, size.offset).kind != Source::Kind::Parameter) return nullptr;
  return declared_dim(place.unit->params[of].type,
                      (size.operand - size.writer.info->fixed_words) / words_of(OperandKind::Dim));
}

// The parameter that bound the size of that name, among all but the last of `params`.
const Param* binder_of(std::span<const Param> params, const std::string& size) {
  for (const Param& param : params.first(params.size() - 1)) {
    for (size_t i = 0; i < param.type.dims.size(); ++i) {
      const SignatureDim* dim = declared_dim(param.type, i);
      if (dim && dim->text == size) return &param;
    }
  }
  return nullptr;
}

constexpr size_t kNoAxis = SIZE_MAX;

// An argument that doesn't fit its parameter.
struct Misfit {
  std::span<const Param> params;        // up to this one; empty: something else is matched
  const SignatureType* type = nullptr;  // of the parameter, or of the part of a tuple
};

// Whether the type itself asks for what the instruction found the value not to have. The function's
// body may match it, too.
[[gnu::cold]] bool is_declared(const Place& place, const Op& op, const SignatureType& type,
                               const AnyView& value, size_t axis) {
  if (type.kind != SignatureType::Kind::Tensor && type.kind != SignatureType::Kind::Shape)
    return true;
  if (!fits(type, value)) return true;
  const SignatureDim* dim = declared_dim(type, axis);
  if (!dim) return false;
  const DimCheck& check = op.as<OpClass::Match>().dims[axis];
  if (check.match == DimMatch::Store) return true;  // a negative size
  if (check.match != DimMatch::EqualsRegister) return false;
  const SignatureDim* stored = stored_dim(place, static_cast<uint32_t>(check.reg));
  return !stored || stored->text == dim->text;
}

// The type of the parameter that the register holds, or of the part of it, a tuple; null for other
// values. `param` is the parameter's index.
[[gnu::cold]] const SignatureType* declared_type(const FunctionUnit& unit, uint32_t reg,
                                                 uint32_t offset, uint32_t* param, int depth = 0) {
  const Source source = source_of(unit, reg, offset);
  if (source.kind == Source::Kind::Parameter) {
    *param = reg;
    return &unit.params[reg].type;
  }
  const bool is_field =
      source.kind == Source::Kind::Instruction && source.writer.opcode() == Opcode::GetField;
  if (!is_field || depth == kDeepestField) return nullptr;
  const Arg object = source.writer.arg(operand(Opcode::GetField, "object"));
  const Arg index = source.writer.arg(operand(Opcode::GetField, "index"));
  const SignatureType* tuple = declared_type(unit, object.index(), source.offset, param, depth + 1);
  const bool has_part = tuple && tuple->kind == SignatureType::Kind::Tuple &&
                        !index.is_register() &&
                        static_cast<size_t>(index.value()) < tuple->parts.size();
  return has_part ? &tuple->parts[static_cast<size_t>(index.value())] : nullptr;
}

[[gnu::cold, gnu::noinline]] Misfit misfit(Machine& m, const Op& op, const AnyView& value,
                                           size_t axis) {
  const Place place = place_of(m, op);
  const ValueRef& ref = matched(op);
  if (!place.unit || ref.constant || !place.unit->exported || !m.is_called_by_host()) return {};
  uint32_t param = 0;
  const auto* type =
      declared_type(*place.unit, static_cast<uint32_t>(ref.reg), place.offset, &param);
  if (!type || !is_declared(place, op, *type, value, axis)) return {};
  return {std::span<const Param>(place.unit->params).first(param + 1), type};
}

// Throws an error that names the parameter or packed function that the value comes from, if any,
// and the parameter that bound the mismatched axis's size.
[[noreturn, gnu::cold]] void mismatch(Machine& m, const Op& op, const AnyView& value,
                                      std::string_view note, std::string_view expected,
                                      size_t axis = kNoAxis) {
  const auto [params, type] = misfit(m, op, value, axis);
  std::string what, bound, help;
  if (params.empty()) {
    what = other_misfit(m, op);
  } else {
    const std::string program = printable(m.running_program().name());
    what = cat("input '", printable(params.back().name), "' does not fit ", program);
    const SignatureDim* size = declared_dim(*type, axis);
    const Param* binder = size ? binder_of(params, size->text) : nullptr;
    if (binder) {
      bound = cat("bound by '", printable(binder->name), "'");
      help = cat("give both inputs the same ", printable(size->text));
    } else if ((is_integer(value) || value.type_index == TypeIndex::Float) &&
               type->kind == SignatureType::Kind::Tensor) {
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

// With the names of sizes that parameters declare: "tensor[batch=2, seq; i64]". Where only the rank
// is matched, "tensor[rank=2; i64]".
[[gnu::cold]] std::string expected_shape(Machine& m, const Op& op, const AnyView* base,
                                         const AnyView& value, size_t at) {
  const Misfit found = misfit(m, op, value, at);
  const Place place = place_of(m, op);
  std::string sizes;
  size_t axis = 0;
  bool has_size = false;
  for (const DimCheck& check : op.as<OpClass::Match>().dims) {
    std::string size = pattern_text(check, base);
    const SignatureDim* named = found.type ? declared_dim(*found.type, axis)
                                : place.unit && check.match == DimMatch::EqualsRegister
                                    ? stored_dim(place, static_cast<uint32_t>(check.reg))
                                    : nullptr;
    if (named) size = size == "*" ? printable(named->text) : cat(printable(named->text), "=", size);
    has_size |= size != "*";
    sizes += cat(axis++ ? ", " : "", size);
  }
  if (axis && !has_size) sizes = cat("rank=", axis);
  const DataType dtype = op.operands->dtype;
  return dtype.is_void() ? cat("shape[", sizes, "]") : tensor_type_text(sizes, dtype);
}

}  // namespace

void fail_type(const char* wanted, const char* what, const AnyView& found) {
  throw_failure(cat(wanted, " is required for ", what), type_name(found.type_index));
}
void fail_no_cell(const char* message, const AnyView& found) {
  throw_failure(message, type_name(unborrowed(found).type_index));
}
void fail_no_shape(const char* what, const AnyView& found) {
  throw_failure(cat(what, " needs a shape or tensor"), type_name(found.type_index));
}
void fail_index(int64_t index, int64_t size) {
  throw index_out_of_range(index, static_cast<size_t>(size));
}
void fail_axis(const AnyView& axis, size_t rank) {
  throw_failure("an axis is out of range", value_text(axis),
                cat("an axis of a value of rank ", rank));
}
void fail_negative(const char* what, size_t axis, int64_t found) {
  throw_failure(cat("a dimension of ", what, " is negative"), cat(found, " for axis ", axis),
                "an integer that is not negative");
}
void fail_storage_size(int64_t size) {
  throw_failure("invalid storage size", cat(size, " bytes"), cat("0 to ", kMaxStorageBytes));
}
void fail_offset(int64_t offset) {
  throw_failure("a tensor's offset is negative", cat(offset));
}
void fail_element_count(size_t wanted, const Tensor& found) {
  throw wrong_element_count(wanted, to_text(found));
}
void fail_element_type(DataType dtype) {
  throw_failure("a register can't hold elements of this type", to_text(dtype));
}
void fail_element(DataType dtype, const AnyView& found) {
  throw_failure("an element of make_tensor is of another type", type_name(found.type_index),
                to_text(dtype));
}

void shape_mismatch(Machine& m, const Op& op, const AnyView* base, const AnyView& value,
                    Difference in, size_t number) {
  const size_t axis = in == Difference::Axis ? number : kNoAxis;
  std::string note;
  if (in != Difference::Kind) note = cat(in == Difference::Axis ? "axis " : "rank ", number);
  mismatch(m, op, value, note, expected_shape(m, op, base, value, axis), axis);
}
void number_mismatch(Machine& m, const Op& op, const AnyView* base, const AnyView& value) {
  const DimCheck& check = op.as<OpClass::Match>().dims.front();
  const bool is_known =
      check.match == DimMatch::EqualsImmediate || check.match == DimMatch::EqualsRegister;
  mismatch(m, op, value, "",
           is_known ? cat("the integer ", pattern_text(check, base)) : "an integer");
}
void dtype_mismatch(Machine& m, const Op& op, const AnyView& value) {
  mismatch(m, op, value, "", cat("a tensor of ", op.operands->dtype));
}

}  // namespace tenon::vm::slow_path
