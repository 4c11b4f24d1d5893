// Matching shapes, dtypes and integers, and the errors that say which input doesn't fit.
#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/slow_path.h"
#include "vm/isa/limits.h"

namespace tenon::vm::slow_path {
namespace {

void release_last(const Op& op, AnyView* base) {
  if (!op.extra->releases) return;
  for (const ValueRef& ref : op.extra->args) {
    if (ref.last) put(base[ref.reg], AnyView());
  }
}

std::string value_text(const AnyView& v) {
  if (v.type_index == TypeIndex::Tensor) return to_text(payload_as<Tensor>(v));
  if (v.type_index == TypeIndex::Shape) return cat("shape ", to_text(payload_as<Shape>(v)));
  if (is_integer(v)) return cat(v.v.i);
  return type_name(v.type_index);
}

// An error that names the parameter that the value is, where it is one, with its declared type.
Error mismatch(Machine& m, const Op& op, const AnyView& value, std::string note,
               std::string expected) {
  uint32_t offset = 0;
  const FunctionCode* code = m.program().locate(&op, &offset);
  const ValueRef& ref = op.extra->args[0];
  bool is_param = code && !ref.constant && ref.reg < code->params;
  std::string bound;
  std::string message = "a value does not fit what the program expects here";
  if (is_param) {
    const FunctionUnit& unit = m.program().function_unit(*code);
    const Param& p = unit.params[static_cast<size_t>(ref.reg)];
    message = cat("input '", printable(p.name), "' does not fit ", printable(m.program().name()));
    bound = cat("declared ", printable(to_text(p.type)));
  }
  Error error(is_param ? ErrorKind::Usage : ErrorKind::Runtime, std::move(message));
  error.expected(std::move(expected), std::move(bound)).found(value_text(value), std::move(note));
  return error;
}

// The name under which a symbol's register was bound: "batch=2", or the number alone.
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

std::string expected_shape(const OpExtra& e, const AnyView* base, DataType dtype) {
  std::string out = dtype.is_void() ? "shape [" : cat(to_text(dtype), "[");
  for (size_t i = 0; i < e.values.size(); ++i) {
    out +=
        cat(i ? ", " : "", pattern_text(e.numbers[2 * i], e.numbers[2 * i + 1], e.values[i], base));
  }
  return out + "]";
}

void match_dims(Machine& m, const Op& op, AnyView* base, const AnyView& value,
                std::span<const int64_t> dims, DataType dtype) {
  const OpExtra& e = *op.extra;
  size_t rank = e.values.size();
  if (dims.size() != rank) [[unlikely]] {
    throw mismatch(m, op, value, cat("rank ", dims.size()), expected_shape(e, base, dtype));
  }
  const int32_t* pattern = e.numbers.data();
  for (size_t i = 0; i < rank; ++i, pattern += 2) {
    int64_t dim = dims[i];
    switch (static_cast<DimMatch>(pattern[0])) {
      case DimMatch::Ignore:
        break;
      case DimMatch::EqualsImmediate:
        if (dim != e.values[i]) [[unlikely]]
          throw mismatch(m, op, value, cat("axis ", i), expected_shape(e, base, dtype));
        break;
      case DimMatch::EqualsRegister:
        if (!is_integer(base[pattern[1]]) || base[pattern[1]].v.i != dim) [[unlikely]]
          throw mismatch(m, op, value, cat("axis ", i), expected_shape(e, base, dtype));
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
    throw mismatch(m, op, value, "", expected_shape(e, base, {}));
  }
  if (!overwrites(e)) release_last(op, base);
}

void match_tensor(Machine& m, const Op& op, AnyView* base) {
  const OpExtra& e = *op.extra;
  Any keep;
  bool over = overwrites(e);
  if (over) [[unlikely]]
    keep = Any(value_of(e.args[0], base));
  const AnyView value = value_of(e.args[0], base);
  if (value.type_index != TypeIndex::Tensor) [[unlikely]] {
    throw mismatch(m, op, value, "", expected_shape(e, base, e.dtype));
  }
  const Tensor& t = payload_as<Tensor>(value);
  if (t.dtype() != e.dtype) [[unlikely]] {
    throw mismatch(m, op, value, "", expected_shape(e, base, e.dtype));
  }
  match_dims(m, op, base, value, t.shape(), e.dtype);
  if (!over) release_last(op, base);
}

void match_dtype(Machine& m, const Op& op, AnyView* base) {
  const AnyView value = value_of(op.extra->args[0], base);
  DataType wanted = op.extra->dtype;
  if (value.type_index != TypeIndex::Tensor || payload_as<Tensor>(value).dtype() != wanted) {
    throw mismatch(m, op, value, "", cat("a tensor of ", wanted));
  }
  release_last(op, base);
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
      put(base[e.numbers[1]], number);
      break;
  }
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
  release_last(op, base);
  put_result(base, op.a, Any(dim));
}

void rank_of(Machine&, const Op& op, AnyView* base) {
  auto rank = static_cast<int64_t>(dims_of(value_of(op.extra->args[0], base), "rank_of").size());
  release_last(op, base);
  put_result(base, op.a, Any(rank));
}

}  // namespace tenon::vm::slow_path
