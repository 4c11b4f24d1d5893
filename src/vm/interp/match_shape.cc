// Matching shapes, dtypes and integers, and the errors that say which input doesn't fit.
#include <span>

#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/slow_path.h"
#include "vm/isa/limits.h"

namespace tenon::vm::slow_path {
namespace {

std::string value_text(const AnyView& v) {
  if (v.type_index == TypeIndex::Tensor) return to_text(payload_as<Tensor>(v));
  if (v.type_index == TypeIndex::Shape) return cat("shape ", to_text(payload_as<Shape>(v)));
  if (is_integer(v)) return cat(v.v.i);
  return type_name(v.type_index);
}

// The parameters up to the one that the instruction matches; none when it matches something else.
std::span<const Param> params_up_to_matched(Machine& m, const Op& op) {
  uint32_t offset = 0;
  const FunctionCode* code = m.program().locate(&op, &offset);
  const ValueRef& ref = op.extra->args[0];
  if (!code || ref.constant || ref.reg >= code->params) return {};
  const FunctionUnit& unit = m.program().function_unit(*code);
  return std::span<const Param>(unit.params).first(static_cast<size_t>(ref.reg) + 1);
}

// The size that a tensor parameter is declared with at an axis; null when it names none.
const SignatureDim* declared_dim(const Param& param, size_t axis) {
  const SignatureType& type = param.type;
  if (type.kind != SignatureType::Kind::Tensor || !type.dims_known || axis >= type.dims.size()) {
    return nullptr;
  }
  return type.dims[axis].is_constant() ? nullptr : &type.dims[axis];
}

// The parameter among `params` that bound the size of that name, the last one apart.
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

// An error that names the parameter that the value is, where it is one, and the one that bound the
// size of the axis that differs.
Error mismatch(Machine& m, const Op& op, const AnyView& value, std::string_view note,
               std::string_view expected, size_t axis = kNoAxis) {
  const std::span<const Param> params = params_up_to_matched(m, op);
  if (params.empty()) {
    Error error(ErrorKind::Runtime, "a value does not fit what the program expects here");
    return error.expected(expected).found(value_text(value), note);
  }
  const std::string program = printable(m.program().name());
  Error error(ErrorKind::Usage,
              cat("input '", printable(params.back().name), "' does not fit ", program));
  const SignatureDim* size = declared_dim(params.back(), axis);
  const Param* binder = size ? binder_of(params, size->text) : nullptr;
  if (!binder) {
    return error.expected(expected)
        .found(value_text(value), note)
        .help(cat("see `tenon inspect ", program, "`"));
  }
  return error.expected(expected, cat("bound by '", printable(binder->name), "'"))
      .found(value_text(value), note)
      .help(cat("give both inputs the same ", printable(size->text), "; see `tenon inspect ",
                program, "`"));
}

// The number that is expected; "*" for any.
std::string pattern_text(int32_t code, int32_t reg, int64_t imm, const AnyView* base) {
  switch (static_cast<DimMatch>(code)) {
    case DimMatch::EqualsImmediate:
      return cat(imm);
    case DimMatch::EqualsRegister:
      return is_integer(base[reg]) ? cat(base[reg].v.i) : cat("%", reg);
    default:
      return "*";
  }
}

// "int64[batch=2, seq]": of a parameter with the names of its sizes.
std::string expected_shape(Machine& m, const Op& op, const AnyView* base, DataType dtype) {
  const OpExtra& e = *op.extra;
  const std::span<const Param> params = params_up_to_matched(m, op);
  std::string out = dtype.is_void() ? "shape [" : cat(to_text(dtype), "[");
  for (size_t i = 0; i < e.values.size(); ++i) {
    std::string size = pattern_text(e.numbers[2 * i], e.numbers[2 * i + 1], e.values[i], base);
    const SignatureDim* named = params.empty() ? nullptr : declared_dim(params.back(), i);
    if (named) size = size == "*" ? printable(named->text) : cat(printable(named->text), "=", size);
    out += cat(i ? ", " : "", size);
  }
  return out + "]";
}

void match_dims(Machine& m, const Op& op, AnyView* base, const AnyView& value,
                std::span<const int64_t> dims, DataType dtype) {
  const OpExtra& e = *op.extra;
  size_t rank = e.values.size();
  if (dims.size() != rank) [[unlikely]] {
    throw mismatch(m, op, value, cat("rank ", dims.size()), expected_shape(m, op, base, dtype));
  }
  const int32_t* pattern = e.numbers.data();
  for (size_t i = 0; i < rank; ++i, pattern += 2) {
    int64_t dim = dims[i];
    switch (static_cast<DimMatch>(pattern[0])) {
      case DimMatch::Ignore:
        break;
      case DimMatch::EqualsImmediate:
        if (dim != e.values[i]) [[unlikely]]
          throw mismatch(m, op, value, cat("axis ", i), expected_shape(m, op, base, dtype), i);
        break;
      case DimMatch::EqualsRegister:
        if (!is_integer(base[pattern[1]]) || base[pattern[1]].v.i != dim) [[unlikely]]
          throw mismatch(m, op, value, cat("axis ", i), expected_shape(m, op, base, dtype), i);
        break;
      case DimMatch::Store: {
        // The value that is matched may lie in that register: it is kept by the caller.
        AnyView v;
        v.type_index = TypeIndex::Int;
        v.v.i = dim;
        put(base[pattern[1]], v);
        break;
      }
    }
  }
}

// True when a Store goes to the register that holds the value itself.
bool overwrites(const OpExtra& e) {
  if (e.args[0].constant) return false;
  for (size_t i = 0; i < e.values.size(); ++i) {
    if (e.numbers[2 * i] == static_cast<int32_t>(DimMatch::Store) &&
        e.numbers[2 * i + 1] == e.args[0].reg) {
      return true;
    }
  }
  return false;
}

}  // namespace

void match_shape(Machine& m, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  Any keep;
  if (overwrites(e)) [[unlikely]]
    keep = Any(value_of(e.args[0], base));
  const AnyView value = value_of(e.args[0], base);
  if (value.type_index == TypeIndex::Tensor) {
    match_dims(m, op, base, value, payload_as<Tensor>(value).shape(), {});
  } else if (value.type_index == TypeIndex::Shape) {
    match_dims(m, op, base, value, payload_as<Shape>(value).dims(), {});
  } else {
    throw mismatch(m, op, value, "", expected_shape(m, op, base, {}));
  }
  if (!overwrites(e)) release_last_uses(*op.extra, base);
}

void match_tensor(Machine& m, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  Any keep;
  bool over = overwrites(e);
  if (over) [[unlikely]]
    keep = Any(value_of(e.args[0], base));
  const AnyView value = value_of(e.args[0], base);
  if (value.type_index != TypeIndex::Tensor) [[unlikely]] {
    throw mismatch(m, op, value, "", expected_shape(m, op, base, e.dtype));
  }
  const Tensor& t = payload_as<Tensor>(value);
  if (t.dtype() != e.dtype) [[unlikely]] {
    throw mismatch(m, op, value, "", expected_shape(m, op, base, e.dtype));
  }
  match_dims(m, op, base, value, t.shape(), e.dtype);
  if (!over) release_last_uses(*op.extra, base);
}

void match_dtype(Machine& m, const Op& op, AnyView* base) {
  const AnyView value = value_of(op.extra->args[0], base);
  DataType wanted = op.extra->dtype;
  if (value.type_index != TypeIndex::Tensor || payload_as<Tensor>(value).dtype() != wanted) {
    throw mismatch(m, op, value, "", cat("a tensor of ", wanted));
  }
  release_last_uses(*op.extra, base);
}

void match_prim_value(Machine& m, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  const AnyView value = value_of(e.args[0], base);
  auto expected = [&] {
    return cat("an integer", e.numbers[0] == 1 || e.numbers[0] == 2 ? " of " : "",
               pattern_text(e.numbers[0], e.numbers[1], e.values[0], base));
  };
  if (!is_integer(value)) throw mismatch(m, op, value, "", expected());
  AnyView number;
  number.type_index = TypeIndex::Int;
  number.v.i = value.v.i;
  switch (static_cast<DimMatch>(e.numbers[0])) {
    case DimMatch::Ignore:
      break;
    case DimMatch::EqualsImmediate:
      if (number.v.i != e.values[0]) throw mismatch(m, op, value, "", expected());
      break;
    case DimMatch::EqualsRegister:
      if (!is_integer(base[e.numbers[1]]) || base[e.numbers[1]].v.i != number.v.i) {
        throw mismatch(m, op, value, "", expected());
      }
      break;
    case DimMatch::Store:
      break;
  }
  release_last_uses(e, base);
  if (e.numbers[0] == static_cast<int32_t>(DimMatch::Store)) put(base[e.numbers[1]], number);
}

void make_shape(Machine&, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  int64_t dims[kMaxRank];
  size_t rank = e.args.size();
  for (size_t i = 0; i < rank; ++i) {
    const AnyView& v = value_of(e.args[i], base);
    if (!is_integer(v) || v.v.i < 0) [[unlikely]] {
      throw Error(ErrorKind::Runtime, "a shape's dimension is no size")
          .found(cat(value_text(v), " for axis ", i))
          .expected("an integer that is not negative");
    }
    dims[i] = v.v.i;
  }
  put_result(base, op.a, Any(Shape(std::span<const int64_t>(dims, rank))));
}

namespace {

std::span<const int64_t> dims_of(const AnyView& v, const char* what) {
  if (v.type_index == TypeIndex::Tensor) return payload_as<Tensor>(v).shape();
  if (v.type_index == TypeIndex::Shape) return payload_as<Shape>(v).dims();
  throw Error(ErrorKind::Runtime, cat(what, " needs a shape or tensor"))
      .found(type_name(v.type_index));
}

}  // namespace

void get_dim(Machine&, const Op& op, AnyView* base) {
  std::span<const int64_t> dims = dims_of(value_of(op.extra->args[0], base), "get_dim");
  const AnyView& axis = value_of(op.extra->args[1], base);
  if (!is_integer(axis) || axis.v.i < 0 || axis.v.i >= static_cast<int64_t>(dims.size())) {
    throw Error(ErrorKind::Runtime, "an axis is out of range")
        .found(value_text(axis))
        .expected(cat("an axis of a value of rank ", dims.size()));
  }
  int64_t dim = dims[static_cast<size_t>(axis.v.i)];
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(dim));
}

void rank_of(Machine&, const Op& op, AnyView* base) {
  auto rank = static_cast<int64_t>(dims_of(value_of(op.extra->args[0], base), "rank_of").size());
  release_last_uses(*op.extra, base);
  put_result(base, op.a, Any(rank));
}

}  // namespace tenon::vm::slow_path
