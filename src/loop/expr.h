// Scalar expressions: what a kernel computes for one element.
//
// Expressions are immutable trees that may share nodes; a shared node is computed once per point of
// the loop nest that holds it. Every node has a dtype. Index arithmetic is i64.
#pragma once

#include "loop/dim.h"
#include "loop/scalar_ops.h"
#include "object/dtype.h"

namespace tenon::loop {

// A region of elements, row-major and compact. Identity is the node: two buffers of the same name
// are two buffers.
struct Buffer : Object {
  String name;
  DataType dtype;
  Array<Dim> shape;

  TENON_TYPE(TypeIndex::LoopBegin + 0x1);
};

enum class ExprKind : uint8_t {
  kVar,
  kLiteral,
  kDimValue,
  kLoad,
  kUnary,
  kBinary,
  kSelect,
  kCast,
  kCheckedIndex,
};

struct Expr : Object {
  const ExprKind kind;  // which of the structs below this is
  DataType dtype;

  TENON_BASE_TYPE(TypeIndex::LoopBegin + 0x10, TypeIndex::LoopBegin + 0x1f);

 protected:
  explicit Expr(ExprKind which) : kind(which) {}
};
using ExprRef = Ref<const Expr>;

// A loop index or a Let-bound scalar. Identity is the node.
struct Var : Expr {
  Var() : Expr(ExprKind::kVar) {}
  String name;

  TENON_TYPE(TypeIndex::LoopBegin + 0x11);
};

// A literal. Integers and booleans are in `bits` by their value (i8 -1 is -1, u8 255 is 255; u64 by
// its bits); floats as the bits of a double, which holds every f16 and f32 exactly. The semantics
// of operations on this form are in loop/scalar.h.
struct Literal : Expr {
  Literal() : Expr(ExprKind::kLiteral) {}
  int64_t bits = 0;

  TENON_TYPE(TypeIndex::LoopBegin + 0x12);
};

// A size as a scalar, i64.
struct DimValue : Expr {
  DimValue() : Expr(ExprKind::kDimValue) {}
  Dim dim;

  TENON_TYPE(TypeIndex::LoopBegin + 0x13);
};

// buffer[indices], indices i64 and in range by construction. One index per dimension; in a kernel
// also a single one for a buffer of any other rank: the row-major offset in elements.
struct Load : Expr {
  Load() : Expr(ExprKind::kLoad) {}
  Ref<const Buffer> buffer;
  Array<ExprRef> indices;

  TENON_TYPE(TypeIndex::LoopBegin + 0x14);
};

struct Unary : Expr {
  Unary() : Expr(ExprKind::kUnary) {}
  UnaryOp op = UnaryOp::kNeg;
  ExprRef a;

  TENON_TYPE(TypeIndex::LoopBegin + 0x15);
};

struct Binary : Expr {
  Binary() : Expr(ExprKind::kBinary) {}
  BinaryOp op = BinaryOp::kAdd;
  ExprRef a, b;

  TENON_TYPE(TypeIndex::LoopBegin + 0x16);
};

// Only the chosen side is evaluated where a side loads: a guard of an out-of-range access is
// written as a Select.
struct Select : Expr {
  Select() : Expr(ExprKind::kSelect) {}
  ExprRef condition;  // bool
  ExprRef if_true, if_false;

  TENON_TYPE(TypeIndex::LoopBegin + 0x17);
};

// Float to integer truncates, saturates, NaN gives 0; to bool is != 0.
struct Cast : Expr {
  Cast() : Expr(ExprKind::kCast) {}
  ExprRef a;

  TENON_TYPE(TypeIndex::LoopBegin + 0x18);
};

// An index that came from data: -extent <= index < extent, a negative one counts from the end;
// anything else stops the kernel with an index-out-of-range error. Result: 0 <= i64 < extent.
struct CheckedIndex : Expr {
  CheckedIndex() : Expr(ExprKind::kCheckedIndex) {}
  ExprRef index;
  Dim extent;

  TENON_TYPE(TypeIndex::LoopBegin + 0x19);
};

// Constructors; they check dtypes (TENON_ASSERT) and fold literals. Operands of a Binary agree in
// dtype.
Ref<const Var> var(std::string_view name, DataType dtype);
ExprRef literal(DataType dtype, double value);
ExprRef literal_int(DataType dtype, int64_t value);
ExprRef literal_from_memory(DataType dtype,
                            const void* element);  // one element as a tensor holds it
ExprRef index(int64_t value);                      // an i64 literal
ExprRef dim_value(const Dim& d);
ExprRef load(const Ref<const Buffer>& buffer, Array<ExprRef> indices);
ExprRef unary(UnaryOp op, ExprRef a);
ExprRef binary(BinaryOp op, ExprRef a, ExprRef b);
ExprRef select(ExprRef condition, ExprRef if_true, ExprRef if_false);
ExprRef cast(DataType dtype, ExprRef a);
ExprRef checked_index(ExprRef index, Dim extent);

// The value of an integer or boolean literal; nullopt for all else.
std::optional<int64_t> as_int(const ExprRef& e);
// The Dim of an i64 literal or DimValue.
std::optional<Dim> as_dim(const ExprRef& e);

// An expression on one line, for messages; shared parts are named: `t0 * t0 where t0 = x[i] + 1`.
std::string to_text(const ExprRef& e);

// The identities of kMax and kMin: -infinity and infinity for floats, else the extreme integers.
ExprRef lowest(DataType dtype);
ExprRef highest(DataType dtype);

}  // namespace tenon::loop
