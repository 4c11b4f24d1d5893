// The operator table: everything that the compiler knows of an operator, in one entry.
//
// Nothing else lists operators. Shapes are attributes of kind kDims, not operands: whoever builds a
// call reads them from an operand's carried values, or binds them with match_shape first.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir/dtype_set.h"
#include "graph/ir/module.h"
#include "loop/compute.h"

namespace tenon::graph {

class Builder;

enum class OpKind : uint8_t {
  kElementwise,  // a result element depends on the operands' elements at its index, on nothing else
  kBroadcast,    // the same, operands broadcast to each other
  kReduction,
  kNormalization,  // several stages over rows: softmax, layer norm
  kContraction,
  kMovement,  // each result element is a copy of an operand's element (or a fill)
  kOpaque,
};

// How a call follows when the axes of operand 0 are permuted.
enum class LayoutRule : uint8_t {
  kByKind,  // elementwise and broadcast operators don't mind; others stay as they are
  // Its attributes name the axes and follow them: `axis`, `axes` (kept as 1), `before` and `after`
  // (one size per axis); operands of operand 0's rank are permuted alike, others stay.
  kNamedAxes,
  kImage,  // has an attribute `layout`: channels first (NCHW, weights OIHW) or last (NHWC, HWIO)
};

enum class AttrKind : uint8_t {
  kInt,
  kFloat,
  kBool,
  kString,
  kDType,  // Any: int, float, bool, String, DataType
  kInts,
  kFloats,  // Any: Array<int64_t>, Array<double>
  kDim,
  kDims,  // Any: Dim, Array<Dim>
};

struct AttrSpec {
  const char* name;
  AttrKind kind;
  // The default as text in IR syntax ("[1, 1]", "0", "false", "NCHW"); "()": absent unless given;
  // null: required.
  const char* default_text = nullptr;
  const char* meaning = "";
  Any default_value = {};  // default_text, read by OperatorTable::add
};

struct OperandSpec {
  const char* name;
  DtypeSet dtypes = kAny;  // of a tensor or scalar; relations between operands are the type rule's
  enum Arity : uint8_t { kOne, kOptional, kVariadic /* last; one or more */ } arity = kOne;
};

struct Operator;

// What a type rule sees and reports.
class InferContext {
 public:
  // `call` is of an operator of the table.
  InferContext(const Call& call, std::function<Dim(std::string_view hint)> fresh);

  const Call& call() const { return call_; }
  const Operator& op() const { return op_; }
  size_t arg_count() const { return call_.args.size(); }
  bool has(size_t i) const;
  // Operand i as a tensor of known dims; errors name the operator and the operand. A scalar is
  // taken as a tensor of rank 0.
  const TensorType& tensor(size_t i) const;
  TypeRef type(size_t i) const;
  // "operand 'x'", or "operand 'x' 2" of a variadic one: operand i in messages.
  std::string operand_text(size_t i) const;
  // Fails unless each tensor or scalar operand has a dtype that its spec takes.
  void require_dtypes() const;

  int64_t attr_int(const char* name) const;
  double attr_float(const char* name) const;
  bool attr_bool(const char* name) const;
  String attr_string(const char* name) const;
  DataType attr_dtype(const char* name) const;
  std::vector<int64_t> attr_ints(const char* name) const;
  std::vector<double> attr_floats(const char* name) const;
  Dim attr_dim(const char* name) const;
  std::vector<Dim> attr_dims(const char* name) const;
  bool has_attr(const char* name) const;  // false where it is absent, see AttrSpec::default_text

  // Throws Error (Usage) that names the operator.
  [[noreturn]] void fail(const std::string& what) const;
  // An axis in [-rank, rank), made >= 0; fails otherwise.
  int64_t axis(int64_t value, int64_t rank) const;

  // A new symbol for a size that is known only at run time; the builder binds it by match_shape.
  Dim fresh(std::string_view hint);
  // Requires the condition: proved, refuted (fails), or left to a `check` binding.
  void require_equal(const Dim& a, const Dim& b, const std::string& message);
  void require_less_equal(const Dim& a, const Dim& b, const std::string& message);
  // The broadcast of two sizes; a require of kBroadcast where unproved.
  Dim broadcast(const Dim& a, const Dim& b, const std::string& message);
  std::vector<Dim> broadcast_shapes(const std::vector<std::vector<Dim>>& shapes);

  const std::vector<Ref<const Check>>& conditions() const { return conditions_; }

 private:
  Any attr(const char* name, AttrKind kind) const;
  void require(CheckKind kind, const Dim& a, const Dim& b, const std::string& message);

  const Call& call_;
  const Operator& op_;
  std::function<Dim(std::string_view)> fresh_;
  std::vector<Ref<const Check>> conditions_;
  mutable std::vector<Ref<const TensorType>> scalars_;  // scalar operands as tensors of rank 0
};

// What a lowering sees. Buffers of tensor operands and results have their types' dims.
class LowerContext {
 public:
  // One input per operand, null where it is absent.
  LowerContext(const Call& call, std::vector<Ref<const loop::Buffer>> inputs,
               std::vector<Ref<const loop::Buffer>> outputs);
  // Attribute access and has() as in InferContext.
  const InferContext& info() const { return info_; }
  // Operand i's buffer; absent operands have none (asserts).
  const Ref<const loop::Buffer>& input(size_t i) const;
  const Ref<const loop::Buffer>& output(size_t i = 0) const;
  // A Compute over all present inputs and all outputs.
  loop::ComputeRef compute(const std::vector<Ref<const loop::Stage>>& stages) const;

 private:
  InferContext info_;
  std::vector<Ref<const loop::Buffer>> inputs_, outputs_;
};

using InferFn = TypeRef (*)(InferContext& cx);
// One element of the result as an expression of one element of each operand (null: absent).
using ElementFn = loop::ExprRef (*)(const InferContext& cx,
                                    const std::vector<loop::ExprRef>& operands);
using LowerFn = loop::ComputeRef (*)(const LowerContext& cx);
// Rewrites the call into other operators; returns its result (a tuple for several).
using ExpandFn = Operand (*)(Builder& b, const Call& call);
// The elements of a small integer result as expressions, or nullopt.
using ValueFn = std::optional<std::vector<Dim>> (*)(const InferContext& cx,
                                                    const TensorType& result);
// A random valid call, for tests and generators of programs: attributes and operand types.
struct Sample {
  std::vector<TypeRef> operands;
  Attrs attrs;
};
using SampleFn = Sample (*)(const Operator& op, uint64_t seed);

struct Operator {
  const char* name;
  OpKind kind;
  std::vector<OperandSpec> operands;
  std::vector<AttrSpec> attrs;
  const char* summary;  // one line of docs/operators.md
  InferFn infer;
  // What an elementwise or broadcast operator computes. Its lowering, its meaning on scalars (in
  // the evaluator and in bytecode) and its cost follow from it.
  ElementFn element = nullptr;
  // Exactly one of the three says how it is computed.
  LowerFn lower = nullptr;
  ExpandFn expand = nullptr;
  const char* packed = nullptr;  // a registered function: called with the operands, then the
                                 // attributes in order; allocates its results
  ValueFn value = nullptr;
  SampleFn sample = nullptr;
  const char* no_sample = nullptr;  // why there is none
  bool scalars = false;             // also defined on scalars, in registers; needs `element`
  // Of an elementwise or broadcast operator without `element`: recomputing an element of the result
  // costs no more than reading it back.
  bool cheap = false;
  LayoutRule layout = LayoutRule::kByKind;
  bool view = false;  // the result is operand 0's elements in order: no data moves
  // A contraction reads through it at the cost of index arithmetic alone, so that it is fused into
  // one and never folded.
  bool read_through = false;
};

// The attributes of a call, checked against the entry, in its order, with defaults filled in. An
// int is accepted for a float, numbers for dims. Throws Error (Usage) that names operator and
// attribute.
Attrs complete_attrs(const Operator& op, const Attrs& given);
const char* kind_name(AttrKind kind);  // "int", "list of ints"

// The table is filled once, by register_operators() of graph/op, before any use.
class OperatorTable {
 public:
  static OperatorTable& global();
  void add(Operator op);                              // asserts the entry's own rules
  const Operator* find(std::string_view name) const;  // null: unknown
  std::vector<const Operator*> all() const;           // by name

 private:
  Map<String, int64_t> index_;
  std::vector<std::unique_ptr<Operator>> entries_;
};

}  // namespace tenon::graph
