// The slow path's instructions on shapes: matching them, dtypes and integers, and making and
// reading them.
#include <span>

#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/operand_values.h"
#include "vm/interp/slow_path.h"

namespace tenon::vm::slow_path {
namespace {

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
    shape_mismatch(m, op, base, value, Difference::Rank, dims.size());
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    // A shape from the host may hold any integers.
    const bool stores = checks[i].match == DimMatch::Store;
    if (stores ? dims[i] < 0 : !satisfies(checks[i], dims[i], base)) [[unlikely]]
      shape_mismatch(m, op, base, value, Difference::Axis, i);
    if (stores) store(base, checks[i].reg, dims[i]);
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
      shape_mismatch(m, op, base, value, Difference::Kind, 0);
    dims = t.shape();
  } else if (value.type_index == TypeIndex::Shape && o.dtype.is_void()) {
    dims = payload_as<Shape>(value).dims();
  } else {
    shape_mismatch(m, op, base, value, Difference::Kind, 0);
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
  fail_no_shape(what, v);
}

}  // namespace

void op_get_dim(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::GetDim> in(op);
  const std::span<const int64_t> dims = dims_of(value_of(in["value"], base), in.mnemonic);
  const AnyView& axis = value_of(in["axis"], base);
  if (!is_integer(axis) || axis.v.i < 0 || axis.v.i >= static_cast<int64_t>(dims.size())) {
    fail_axis(axis, dims.size());
  }
  finish(op, base, Any(dims[static_cast<size_t>(axis.v.i)]));
}

void op_rank_of(Machine&, const Op& op, AnyView* base) {
  const Values<Opcode::RankOf> in(op);
  const size_t rank = dims_of(value_of(in["value"], base), in.mnemonic).size();
  finish(op, base, Any(static_cast<int64_t>(rank)));
}

}  // namespace tenon::vm::slow_path
