// Expressions of graph IR, in A-normal form.
//
//   function = parameters, block        block = bindings `x = e`, result operand
//   operand  = variable | constant      e = call | fn | closure | if | match | loop | tuple | field
//                                           | constructor | size | match_shape | check
//
// Nodes are immutable and may be shared between modules. Names of variables are only hints; the
// node is the variable's identity. Equality ignores spans and names. A null operand is an absent
// optional operand, `()` in text. Walks recurse only over nesting, which readers limit to
// kMaxNesting, never over bindings.
#pragma once

#include "graph/ir/type.h"
#include "object/any.h"
#include "object/map.h"
#include "object/tensor.h"
#include "support/error.h"

namespace tenon::graph {

inline constexpr int kMaxNesting = 100;

struct Expr : Object {
  TENON_BASE_TYPE(TypeIndex::GraphExpr, TypeIndex::GraphExprLast);
};
using ExprRef = Ref<const Expr>;

// ---- operands ----

struct Var : Expr {
  String name;
  TypeRef type;
  TENON_TYPE(TypeIndex::GraphVar);
};
using VarRef = Ref<const Var>;

struct Constant : Expr {
  Any value;     // Tensor, integer, float, boolean, String or Shape; never copied
  TypeRef type;  // carries the elements of small integer tensors
  String name;   // of the weight it came from; may be empty
  TENON_TYPE(TypeIndex::GraphConstant);
};

using Operand = ExprRef;  // Var, Constant, or null: absent

// ---- blocks ----

struct Binding : Object {
  VarRef var;
  ExprRef value;  // a right-hand side, below
  Span span;
  TENON_TYPE(TypeIndex::GraphBinding);
};

struct Block : Object {
  Array<Ref<const Binding>> bindings;
  Operand result;
  TENON_TYPE(TypeIndex::GraphBlock);
};
using BlockRef = Ref<const Block>;

// ---- right-hand sides ----

enum class CalleeKind : uint8_t {
  kOperator,  // callee: name in the operator table; attrs: checked against its entry
  kGlobal,    // callee: a function of the module
  kClosure,   // closure: the function value
  kKernel,    // callee: a kernel of the module; args: inputs; results by value before explicit
              // allocation, then destinations follow the inputs; attrs: kIntegersAttr
  kPacked,    // callee: registered name; result_type: stated
};

// Named attribute values, in the order of the operator's entry; AttrKind in op.h lists the types of
// values.
using Attrs = Map<String, Any>;
// Adds the symbols in dimensions among the values.
void collect_symbols(const Attrs& attrs, SymbolSet* symbols);

struct Call : Expr {
  CalleeKind kind = CalleeKind::kOperator;
  String callee;
  Operand closure;
  Array<Operand> args;
  Attrs attrs;
  TypeRef result_type;  // stated for kernels and packed functions; else null
  // Of a global with type parameters; if it is empty, the arguments determine them.
  Array<TypeRef> type_args;
  TENON_TYPE(TypeIndex::GraphCall);
};

// The attributes with the sizes in them replaced.
Attrs substitute(const Attrs& attrs, const DimSubstitution& map);

// The one attribute of a kernel call: an Array<Dim>, the kernel's integers.
inline constexpr char kIntegersAttr[] = "integers";
Array<Dim> kernel_integers(const Call& call);  // empty if the call has none

// The attributes of functions.
inline constexpr char kPrimitiveAttr[] = "primitive";  // true: lowered to one kernel
inline constexpr char kFusedAttr[] = "fused";          // true: a primitive that fusion made
inline constexpr char kExportAttr[] = "export";        // false: not callable from outside
inline constexpr char kInlineAttr[] = "inline";        // false: calls are not replaced by the body
inline constexpr char kResultsAttr[] = "results";      // names of the result, or of its fields
// All of them; no function has others.
inline constexpr std::string_view kFunctionAttrs[] = {kPrimitiveAttr, kFusedAttr, kExportAttr,
                                                      kInlineAttr, kResultsAttr};

struct FunctionExpr : Expr {
  String name;  // a hint: the name of a literal, or of a global, whose name is the module's key
  VarRef self;  // the variable for recursive literals, visible in body; else null
  Array<String> type_params;
  Array<VarRef> params;
  TypeRef result_type;
  BlockRef body;
  Attrs attrs;
  Span span;

  // What the attributes say, once check.h has checked them.
  bool is_primitive() const;
  bool is_fused() const;
  bool is_exported() const;
  bool may_be_inlined() const;
  Array<String> result_names() const;  // of a tuple, one per field; empty if it has none
  TENON_TYPE(TypeIndex::GraphFunctionExpr);
};
using FunctionRef = Ref<const FunctionExpr>;

struct If : Expr {
  Operand condition;  // bool scalar, or bool tensor of one element
  BlockRef then_block, else_block;
  TENON_TYPE(TypeIndex::GraphIf);
};

// loop (x: T = init, ...) while { condition block } { body block yielding the next values }.
// Result: the variables when the condition became false; several variables as a tuple.
struct Loop : Expr {
  Array<VarRef> vars;
  Array<Operand> init;
  BlockRef condition;
  BlockRef body;  // result: the next value, or a tuple of them
  TENON_TYPE(TypeIndex::GraphLoop);
};

enum class PatternKind : uint8_t { kAny, kVariable, kConstant, kConstructor, kTuple };

// What a value must be for its arm: anything (with a variable for it), an integer or a boolean, or
// a constructor's value or a tuple whose fields fit patterns of their own.
struct Pattern : Object {
  PatternKind kind = PatternKind::kAny;
  VarRef var;                        // kVariable
  Operand constant;                  // kConstant: a Constant of type i64 or bool
  String constructor;                // kConstructor
  Array<Ref<const Pattern>> fields;  // kConstructor, kTuple
  TENON_TYPE(TypeIndex::GraphPattern);
};
using PatternRef = Ref<const Pattern>;

// The first arm whose pattern fits is evaluated; pattern.h has the rules.
struct Match : Expr {
  Operand value;
  Array<PatternRef> patterns;
  Array<BlockRef> arms;
  TENON_TYPE(TypeIndex::GraphMatch);
};

struct Tuple : Expr {
  Array<Operand> fields;
  TENON_TYPE(TypeIndex::GraphTuple);
};

struct Field : Expr {
  Operand tuple;
  int64_t index = 0;
  TENON_TYPE(TypeIndex::GraphField);
};

struct Construct : Expr {
  String constructor;
  Array<TypeRef> type_args;
  Array<Operand> fields;
  TENON_TYPE(TypeIndex::GraphConstruct);
};

// A function of the module as a value, with its first arguments: the function is called with them
// and then with the arguments of the call. A function with type parameters is instantiated: a value
// is never polymorphic.
struct Closure : Expr {
  String function;
  Array<TypeRef> type_args;
  Array<Operand> captures;
  TENON_TYPE(TypeIndex::GraphClosure);
};

// A size as an i64 scalar.
struct Size : Expr {
  Dim size;
  TENON_TYPE(TypeIndex::GraphSize);
};

// Checks the value's shape against `dims` and binds new symbols in `dims`; the result is the value
// with these dimensions. With `elements`, `dims` are the elements of an integer tensor of rank 0 or
// 1, a shape or a scalar instead, and the result's type carries them; symbols that are bound this
// way are checked to be >= 0.
struct MatchShape : Expr {
  Operand value;
  Array<Dim> dims;
  bool elements = false;
  TENON_TYPE(TypeIndex::GraphMatchShape);
};

enum class CheckKind : uint8_t { kEqual, kLessEqual, kBroadcast /* equal, or one is 1 */ };
inline constexpr const char* kCheckNames[] = {"equal", "less_equal", "broadcast"};

// Checks a condition that inference could not prove; later bindings may assume it. Result: the
// unit.
struct Check : Expr {
  CheckKind kind = CheckKind::kEqual;
  Dim left, right;
  String message;  // what is checked, for the user: "conv2d: channels of input and weight"
  TENON_TYPE(TypeIndex::GraphCheck);
};
// What a check that fails says; `message` is its own, and `left` and `right` are its sizes, as a
// user is to see them.
std::string check_failure(const Check& check, std::string_view message, std::string_view left,
                          std::string_view right);
// What is said of a size that match_elements reads; `size` is the number, as a user is to see it.
std::string negative_size(std::string_view size);

Ref<const Size> make_size(const Dim& size);

// A call of `callee`; `result_type` is for kernels and packed functions.
Ref<const Call> make_call(CalleeKind kind, std::string_view callee, Array<Operand> args,
                          Attrs attrs = {}, TypeRef result_type = {});

// The type of an operand; the unit for an absent one.
TypeRef type_of(const Operand& operand);
// The operand's type if it is a tensor of known dimensions; null for other types and absent
// operands.
const TensorType* known_tensor(const Operand& operand);

// A tensor constant; the type carries the elements of small integer and boolean tensors.
Operand constant(Tensor value, std::string_view name = "");
// An integer scalar; the value must fit the type, as the bits of a u64.
Operand constant_int(int64_t value, DataType dtype = i64);
Operand constant_bool(bool value);
Operand constant_float(DataType dtype, double value);  // a float scalar, rounded to the type
Operand constant_shape(const Shape& value);
Operand constant_string(std::string_view value);  // of type opaque["string"]

// The function's type: its parameters' and its result's.
TypeRef type_of(const FunctionExpr& function);

}  // namespace tenon::graph
