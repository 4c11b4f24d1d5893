// Scalar expressions: what a kernel computes for one element.
//
// Expressions are immutable trees that may share nodes; a shared node is computed once per point of
// its loop nest. Every node has a dtype. Index arithmetic is i64.
#pragma once

#include "loop/dim.h"
#include "loop/scalar_ops.h"
#include "object/dtype.h"

namespace tenon::loop {

// A region of elements, row-major and compact. Identified by the node: two buffers of the same name
// are distinct.
struct Buffer : Object {
  String name;
  DataType dtype;
  Array<Dim> shape;

  TENON_TYPE(TypeIndex::LoopBuffer);
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

  TENON_BASE_TYPE(TypeIndex::LoopExpr, TypeIndex::LoopExprLast);

 protected:
  explicit Expr(ExprKind which) : kind(which) {}
};
using ExprRef = Ref<const Expr>;

// A loop index or a Let-bound scalar. Identified by the node.
struct Var : Expr {
  Var() : Expr(ExprKind::kVar) {}
  String name;

  TENON_TYPE(TypeIndex::LoopVar);
};

// A literal. `bits` holds integers and booleans by value (i8 -1 is -1, u8 255 is 255; u64 as its
// bits) and floats as the bits of a double, which represents every f16 and f32 exactly. The only
// literal of complex numbers, which are moved but not computed with, is 0.
// loop/scalar.h defines operations on this form.
struct Literal : Expr {
  Literal() : Expr(ExprKind::kLiteral) {}
  int64_t bits = 0;

  TENON_TYPE(TypeIndex::LoopLiteral);
};

// A size as an i64 scalar.
struct DimValue : Expr {
  DimValue() : Expr(ExprKind::kDimValue) {}
  Dim dim;

  TENON_TYPE(TypeIndex::LoopDimValue);
};

// buffer[indices], with i64 indices in range by construction. One index per dimension; in a kernel,
// alternatively a single index for a buffer of any rank: the row-major offset in elements.
struct Load : Expr {
  Load() : Expr(ExprKind::kLoad) {}
  Ref<const Buffer> buffer;
  Array<ExprRef> indices;

  TENON_TYPE(TypeIndex::LoopLoad);
};

struct Unary : Expr {
  Unary() : Expr(ExprKind::kUnary) {}
  UnaryOp op = UnaryOp::kNeg;
  ExprRef a;

  TENON_TYPE(TypeIndex::LoopUnary);
};

struct Binary : Expr {
  Binary() : Expr(ExprKind::kBinary) {}
  BinaryOp op = BinaryOp::kAdd;
  ExprRef a, b;

  TENON_TYPE(TypeIndex::LoopBinary);
};

// If a side contains a load, only the chosen side is evaluated: an access that may be out of range
// is guarded by a Select.
struct Select : Expr {
  Select() : Expr(ExprKind::kSelect) {}
  ExprRef condition;  // bool
  ExprRef if_true, if_false;

  TENON_TYPE(TypeIndex::LoopSelect);
};

// Float to integer truncates and saturates, and NaN gives 0; conversion to bool is != 0. Complex
// numbers have no conversions; the bits of a c64 may be kept.
struct Cast : Expr {
  Cast() : Expr(ExprKind::kCast) {}
  ExprRef a;
  // Instead of the value, the bits are kept: both dtypes have one width, and neither is bool.
  bool keeps_bits = false;

  TENON_TYPE(TypeIndex::LoopCast);
};

// An index from data: -extent <= index < extent; a negative index counts from the end, and any
// other value stops the kernel with an index-out-of-range error. Result: 0 <= i64 < extent.
struct CheckedIndex : Expr {
  CheckedIndex() : Expr(ExprKind::kCheckedIndex) {}
  ExprRef index;
  Dim extent;

  TENON_TYPE(TypeIndex::LoopCheckedIndex);
};

// Constructors: they check dtypes (TENON_ASSERT) and fold literals. The operands of a Binary have
// the same dtype.
Ref<const Var> var(std::string_view name, DataType dtype);
ExprRef literal(DataType dtype, double value);
ExprRef literal_int(DataType dtype, int64_t value);
ExprRef zero(DataType dtype);  // 0 or false, of any dtype
ExprRef literal_from_memory(DataType dtype,
                            const void* element);  // one element as stored in a tensor
ExprRef index(int64_t value);                      // an i64 literal
ExprRef dim_value(const Dim& d);
ExprRef load(const Ref<const Buffer>& buffer, Array<ExprRef> indices);
ExprRef unary(UnaryOp op, ExprRef a);
ExprRef binary(BinaryOp op, ExprRef a, ExprRef b);
// kRounded of a product of floats, perhaps negated; others as they are.
ExprRef rounded(const ExprRef& e);
ExprRef select(ExprRef condition, ExprRef if_true, ExprRef if_false);
ExprRef cast(DataType dtype, ExprRef a);
ExprRef bit_cast(DataType dtype, ExprRef a);
ExprRef checked_index(ExprRef index, Dim extent);

// The value of an integer or boolean literal; nullopt for anything else.
std::optional<int64_t> as_int(const ExprRef& e);
// The value of an integer or boolean literal, or of a size that is constant.
std::optional<int64_t> known_int(const Expr& e);
// The Dim of an i64 literal or DimValue.
std::optional<Dim> as_dim(const ExprRef& e);

// Whether an evaluation of this operation, with its operands, can stop the kernel.
bool can_fail(const Binary& operation);
// Whether the node itself, excluding its operands, can stop a kernel that is in bounds.
bool can_fail(const Expr& e);

// One line of text, for messages; shared parts get names: `t0 * t0 where t0 = x[i] + 1`.
std::string to_text(const ExprRef& e);

// The identities of kMax and kMin: -infinity and infinity for floats, otherwise the extreme
// integers.
ExprRef lowest(DataType dtype);
ExprRef highest(DataType dtype);

}  // namespace tenon::loop
