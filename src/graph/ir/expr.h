// Expressions of graph IR: A-normal form, always.
//
//   function = parameters, block        block = bindings `x = e`, result operand
//   operand  = variable | constant      e = call | fn | if | match | loop | tuple | field
//                                           | constructor | match_shape | check
//
// Every node is immutable and shared freely between modules. Names of variables are hints for
// people: identity is the node. Equality ignores spans and names. A null operand is an absent
// optional operand, `()` in text. Whoever walks recurses only over nesting, which readers limit to
// kMaxNesting; never over bindings.
#pragma once

#include "graph/ir/type.h"
#include "object/any.h"
#include "object/map.h"
#include "object/tensor.h"
#include "support/error.h"

namespace tenon::graph {

inline constexpr int kMaxNesting = 100;

struct Expr : Object {
  static const TypeInfo& type_info();
};
using ExprRef = Ref<const Expr>;

// ---- operands ----

struct Var : Expr {
  String name;
  TypeRef type;
  static const TypeInfo& type_info();
};
using VarRef = Ref<const Var>;

struct Constant : Expr {
  Any value;    // Tensor, integer, float, boolean, String or Shape; never copied
  TypeRef type;  // carries element values where small and integer
  String name;  // of the weight it came from; may be empty
  static const TypeInfo& type_info();
};

using Operand = ExprRef;  // Var, Constant, or null: absent

// ---- blocks ----

struct Binding : Object {
  VarRef var;
  ExprRef value;  // a right-hand side, below
  Span span;
  static const TypeInfo& type_info();
};

struct Block : Object {
  Array<Ref<const Binding>> bindings;
  Operand result;
  static const TypeInfo& type_info();
};
using BlockRef = Ref<const Block>;

// ---- right-hand sides ----

enum class CalleeKind : uint8_t {
  kOperator,  // callee: name in the operator table; attrs: checked against its entry
  kGlobal,    // callee: a function of the module
  kClosure,   // closure: the function value
  kKernel,    // callee: a kernel of the module; args: inputs; results by value before explicit
              // allocation, then destinations follow the inputs; attrs "integers": its Dims
  kPacked,    // callee: registered name; result_type: stated
};

// Named attribute values, in the order of the operator's entry; see AttrKind in op.h for what an
// Any may hold.
using Attrs = Map<String, Any>;

struct Call : Expr {
  CalleeKind kind = CalleeKind::kOperator;
  String callee;
  Operand closure;
  Array<Operand> args;
  Attrs attrs;
  TypeRef result_type;  // kernels and packed functions: stated; else null
  static const TypeInfo& type_info();
};

struct FunctionExpr : Expr {
  String name;  // a global's name, or the name by which a literal calls itself
  VarRef self;  // literals that call themselves: bound in body; else null
  Array<String> type_params;
  Array<VarRef> params;
  TypeRef result_type;
  BlockRef body;
  Attrs attrs;  // "primitive": a fused group, lowered to one kernel; "export": false hides it
  Span span;
  static const TypeInfo& type_info();
};
using FunctionRef = Ref<const FunctionExpr>;

struct If : Expr {
  Operand condition;  // bool scalar, or bool tensor of one element
  BlockRef then_block, else_block;
  static const TypeInfo& type_info();
};

// loop (x: T = init, ...) while { condition block } { body block yielding the next values }.
// Result: the variables when the condition turned false: one alone, several as a tuple.
struct Loop : Expr {
  Array<VarRef> vars;
  Array<Operand> init;
  BlockRef condition;
  BlockRef body;  // result: the next value, or a tuple of them
  static const TypeInfo& type_info();
};

struct Pattern : Object {
  String constructor;  // empty: matches anything
  Array<VarRef> fields;
  static const TypeInfo& type_info();
};

struct Match : Expr {
  Operand value;
  Array<Ref<const Pattern>> patterns;
  Array<BlockRef> arms;
  static const TypeInfo& type_info();
};

struct Tuple : Expr {
  Array<Operand> fields;
  static const TypeInfo& type_info();
};

struct Field : Expr {
  Operand tuple;
  int64_t index = 0;
  static const TypeInfo& type_info();
};

struct Construct : Expr {
  String constructor;
  Array<TypeRef> type_args;
  Array<Operand> fields;
  static const TypeInfo& type_info();
};

// Checks value's shape against `dims` and binds symbols that are new in `dims`; the result is the
// value with these dims. With `elements`, `dims` are the elements of a rank-0 or rank-1 integer
// tensor, a shape or a scalar instead, and the result's type carries them; symbols bound so are
// checked to be >= 0.
struct MatchShape : Expr {
  Operand value;
  Array<Dim> dims;
  bool elements = false;
  static const TypeInfo& type_info();
};

enum class CheckKind : uint8_t { kEqual, kLessEqual, kBroadcast /* equal, or one is 1 */ };

// A condition that inference could not prove; later code may assume it. Result: unit.
struct Check : Expr {
  CheckKind kind = CheckKind::kEqual;
  Dim left, right;
  String message;  // what fails, in the user's terms: "conv2d: channels of input and weight"
  static const TypeInfo& type_info();
};

// The type of an operand; the unit for an absent one.
TypeRef type_of(const Operand& operand);

Operand constant(Tensor value, std::string_view name = "");
Operand constant_int(int64_t value);  // an i64 scalar

}  // namespace tenon::graph
