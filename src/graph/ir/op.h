// The operator table: everything that the compiler knows about an operator, in one entry.
//
// Passes know some by name (operator_name.h). Shapes are attributes of kind kDims, not operands: a
// call's builder reads them from an operand's carried values or binds them with match_shape first.
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

// How a call changes if the axes of operand 0 are permuted.
enum class LayoutRule : uint8_t {
  kByKind,  // elementwise and broadcast operators don't change; others can't be permuted
  // Attributes that name axes are permuted: `axis`, `axes` (kept as size 1), and those of one value
  // per axis, `before`, `after`, `sizes` and `scales`. Operands of the rank of operand 0 are
  // permuted too, others are not.
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
  // The default as text in IR syntax ("[1, 1]", "0", "false", "NCHW"). "()" means optional without
  // a default, null means required.
  const char* default_text = nullptr;
  const char* meaning = "";
  Any default_value = {};  // default_text, parsed by OperatorTable::add
};

struct OperandSpec {
  const char* name;
  DtypeSet dtypes = kAny;  // of a tensor or scalar; the type rule checks relations between operands
  enum Arity : uint8_t { kOne, kOptional, kVariadic /* last; one or more */ } arity = kOne;
};

struct Operator;

// The context of a type rule: the call, and requirements that the rule states.
class InferContext {
 public:
  // `call` must call an operator of the table.
  InferContext(const Call& call, std::function<Dim(std::string_view hint)> fresh);

  const Call& call() const { return call_; }
  const Operator& op() const { return op_; }
  size_t arg_count() const { return call_.args.size(); }
  bool has(size_t i) const;
  // Operand i as a tensor of known dimensions; errors name the operator and the operand. A scalar
  // counts as a tensor of rank 0.
  const TensorType& tensor(size_t i) const;
  TypeRef type(size_t i) const;
  // Operand i in messages: "operand 'x'", or "operand 'x' 2" if variadic.
  std::string operand_text(size_t i) const;
  // Throws unless each tensor or scalar operand has a dtype that its spec allows.
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
  bool has_attr(const char* name) const;  // false if it is absent (AttrSpec::default_text)

  // Throws a Usage error that names the operator.
  [[noreturn]] void fail(const std::string& what) const;
  // Maps an axis in [-rank, rank) to [0, rank); throws otherwise.
  int64_t axis(int64_t value, int64_t rank) const;

  // A new symbol for a size that is known only at run time; the builder binds it with match_shape.
  Dim fresh(std::string_view hint);
  // Requires the condition: throws if it is refuted, and leaves it to a `check` binding if it is
  // neither proved nor refuted.
  void require_equal(const Dim& a, const Dim& b, const std::string& message);
  void require_less_equal(const Dim& a, const Dim& b, const std::string& message);
  // The broadcast of two sizes; requires that they can be broadcast.
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

// The context of a lowering. Buffers of tensor operands and results have the dimensions of their
// types.
class LowerContext {
 public:
  // One input per operand, null if it is absent.
  LowerContext(const Call& call, std::vector<Ref<const loop::Buffer>> inputs,
               std::vector<Ref<const loop::Buffer>> outputs);
  // Attribute access and has() as in InferContext.
  const InferContext& info() const { return info_; }
  // The buffer of operand i, which must be present.
  const Ref<const loop::Buffer>& input(size_t i) const;
  const Ref<const loop::Buffer>& output(size_t i = 0) const;
  // A Compute over all present inputs and all outputs.
  loop::ComputeRef compute(const std::vector<Ref<const loop::Stage>>& stages) const;

 private:
  InferContext info_;
  std::vector<Ref<const loop::Buffer>> inputs_, outputs_;
};

using InferFn = TypeRef (*)(InferContext& cx);
// A result element as an expression of one element of each operand (null if absent).
using ElementFn = loop::ExprRef (*)(const InferContext& cx,
                                    const std::vector<loop::ExprRef>& operands);
using LowerFn = loop::ComputeRef (*)(const LowerContext& cx);
// Rewrites the call into other operators; returns its result (a tuple for several).
using ExpandFn = Operand (*)(Builder& b, const Call& call);
// The elements of a small integer result as expressions, or nullopt.
using ValueFn = std::optional<std::vector<Dim>> (*)(const InferContext& cx,
                                                    const TensorType& result);
// A random valid call, for tests and program generators: attributes and operand types.
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
  // the evaluator and in bytecode) and its cost are derived from it.
  ElementFn element = nullptr;
  // Exactly one of these three defines how the operator is computed.
  LowerFn lower = nullptr;
  ExpandFn expand = nullptr;
  const char* packed = nullptr;  // a registered function: called with the operands, then the
                                 // attributes in order; allocates its results
  ValueFn value = nullptr;
  SampleFn sample = nullptr;
  const char* no_sample = nullptr;  // why there is no sample
  // For elementwise and broadcast operators without `element`: recomputing a result element costs
  // no more than reading it back.
  bool cheap = false;
  LayoutRule layout = LayoutRule::kByKind;
  bool view = false;  // the result is operand 0's elements in order: no data moves
  // A contraction reads through it at the cost of index arithmetic alone, so that it is fused into
  // one and never folded.
  bool read_through = false;
  // The infix sign that other languages have for it, which errors explain: "+".
  const char* sign = "";
};

// Checks the attributes of a call against the entry and returns them in the entry's order, with
// defaults filled in. Accepts an int for a float and numbers for dimensions. Throws a Usage error
// that names the operator and the attribute.
Attrs complete_attrs(const Operator& op, const Attrs& given);
// The error for an attribute that the operator doesn't have.
Error unknown_attribute(const Operator& op, std::string_view name);
const char* kind_name(AttrKind kind);  // "int", "list of ints"

// register_operators() of graph/op fills the table once, before any use.
class OperatorTable {
 public:
  static OperatorTable& global();
  void add(Operator op);                                   // asserts the entry's own rules
  const Operator* find(std::string_view name) const;       // null if unknown
  const Operator& get(std::string_view name) const;        // throws Usage with the nearest name
  const Operator* find_sign(std::string_view sign) const;  // null if no operator has it
  std::vector<const Operator*> all() const;                // by name

 private:
  Map<String, int64_t> index_;
  std::vector<std::unique_ptr<Operator>> entries_;
};

}  // namespace tenon::graph
