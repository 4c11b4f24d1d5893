// What a node's translation sees: the node's operands and attributes, and the builder.
//
// Reading an attribute marks it as supported; the importer refuses a node with unread attributes.
// Axes and shapes are read as integers or as symbolic sizes: `values` returns the elements that the
// type carries; `elements` binds them with a match if the type doesn't.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "import/onnx/model.h"
#include "import/onnx/op_table.h"

namespace tenon::onnx {

using graph::Operand;
using Operands = std::vector<Operand>;

// The sizes of a tensor. Indexing it checks the axis, because ranks come from the model and may be
// smaller than a translation expects.
class Dims : public std::vector<Dim> {
 public:
  using std::vector<Dim>::vector;
  Dims(std::vector<Dim> dims) : std::vector<Dim>(std::move(dims)) {}  // NOLINT: implicit on purpose
  Dim& operator[](size_t i) {
    require(i);
    return data()[i];
  }
  const Dim& operator[](size_t i) const {
    require(i);
    return data()[i];
  }
  const Dim& at(size_t i) const { return (*this)[i]; }
  Dim& back() { return (*this)[size() - 1]; }
  const Dim& back() const { return (*this)[size() - 1]; }

 private:
  void require(size_t i) const {
    if (i < size()) return;
    throw Error(ErrorKind::Usage, "an operand's rank is not what the operator requires")
        .found(cat("rank ", size()))
        .expected(cat("more than ", i == SIZE_MAX ? 0 : i));
  }
};

using Ints = std::vector<int64_t>;

// Walks a graph inside the node: binds the names of its inputs to `inputs` and returns its outputs,
// or nullopt if a node in it can't be imported.
using InnerGraph =
    std::function<std::optional<Operands>(const Graph& graph, const Operands& inputs)>;

class NodeContext {
 public:
  NodeContext(graph::Builder& builder, const Node& node, Operands inputs, int64_t version,
              InnerGraph inner_graph)
      : b(builder),
        node_(node),
        inputs_(std::move(inputs)),
        version_(version),
        inner_graph_(std::move(inner_graph)) {}

  graph::Builder& b;
  const Node& node() const { return node_; }
  int64_t version() const { return version_; }  // of the node's domain
  std::optional<Operands> run_graph(const Graph& graph, const Operands& inputs) {
    return inner_graph_(graph, inputs);
  }

  // ---- operands ----
  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  Operand in(size_t i) const;   // throws if absent
  Operand opt(size_t i) const;  // null if absent
  const Operands& all() const { return inputs_; }
  // Replaces the operands of one element type by casts to another.
  void cast_inputs(DataType from, DataType to);
  bool wants(size_t output) const;  // whether the node names that output
  size_t outputs() const { return node_.outputs.size(); }

  // The sizes of operand i; throws unless it is a tensor of known rank.
  Dims dims(size_t i) const { return dims(in(i)); }
  int64_t rank(size_t i) const { return static_cast<int64_t>(dims(i).size()); }
  DataType dtype(size_t i) const { return dtype(in(i)); }
  Dims dims(const Operand& x) const;
  int64_t rank(const Operand& x) const { return static_cast<int64_t>(dims(x).size()); }
  DataType dtype(const Operand& x) const;

  // ---- operands as data ----
  // The elements of a small integer tensor, if its type carries them or it takes them from one
  // whose type does.
  std::optional<Dims> values(const Operand& x) const;
  // The same if all are constant; also works for long constant lists whose elements fit an i64.
  std::optional<Ints> ints(const Operand& x) const;
  // The same for operand i; refuses the node if they are computed at run time. `what` names them.
  Ints const_ints(size_t i, const char* what) const;
  // The elements, carried by the type or bound by a match, which requires them to be >= 0.
  Dims elements(const Operand& x) const;
  // The same of a tensor that must have `count` elements, also where its shape doesn't say so.
  Dims elements(const Operand& x, size_t count) const;
  // The element of a constant with one element; nullopt if it is computed.
  std::optional<double> number(const Operand& x) const;
  double const_number(size_t i, const char* what, double otherwise) const;
  // A number in the model, truncated; throws for NaN and numbers that don't fit an i64.
  int64_t to_integer(double value, const char* what) const;
  // The tensor of a constant; null if it is computed.
  Tensor constant_of(const Operand& x) const;

  // ---- attributes ----
  bool has_attr(const char* name) const;
  int64_t attr_int(const char* name, int64_t otherwise) const;
  int64_t attr_int(const char* name) const;  // required
  bool attr_bool(const char* name, bool otherwise) const;
  double attr_float(const char* name, double otherwise) const;
  std::string attr_string(const char* name, const char* otherwise) const;
  Ints attr_ints(const char* name, Ints otherwise = {}) const;
  std::vector<double> attr_floats(const char* name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> attr_strings(const char* name) const;
  Tensor attr_tensor(const char* name) const;             // null if absent
  const SparseData* attr_sparse(const char* name) const;  // null if absent
  const Graph& attr_graph(const char* name) const;
  const ValueType* attr_type(const char* name) const;  // null if absent
  DataType attr_dtype(const char* name, DataType otherwise) const;
  // Marks an attribute that has no effect as read.
  void ignore(const char* name) const { read_.insert(name); }
  // The first unread attribute, or null.
  const Attribute* unread() const;

  // ---- other translations ----
  // What ONNX's operator of that name computes from the node's attributes and other operands.
  Operands as_onnx(const char* op, Operands inputs) const;

  // ---- failures ----
  [[noreturn]] void unsupported(const std::string& reason) const;
  // Gives up because a node in an inner graph, which is already listed, can't be imported.
  [[noreturn]] void give_up() const { unsupported(""); }
  // Throws the error for a node that breaks ONNX's rules.
  [[noreturn]] void invalid(const std::string& found, const std::string& expected) const;
  // Maps an axis in [-rank, rank) to [0, rank); throws for others.
  int64_t axis(int64_t value, int64_t rank) const;
  Ints axes(const Ints& values, int64_t rank) const;
  static Ints axes_below(int64_t rank);  // 0, 1, ... rank - 1

  // The result of `make` for the axis that a tensor of one integer names at run time, which is
  // checked to be one of the candidates. All candidates must yield the same type except for sizes.
  Operand for_axis(const Operand& axis, int64_t rank, const Ints& candidates,
                   const std::function<Operand(int64_t axis)>& make) const;

  // bool[rank]: the axes that a list of integers names at run time.
  Operand axes_mask(const Operand& axes, int64_t rank) const;
  // x without the axes of the mask, whose size must be 1, and with new axes of size 1, such that
  // the result has the mask's axes. The mask is checked to have `count`.
  Operand remove_masked(const Operand& x, const Operand& mask, size_t count) const;
  Operand insert_masked(const Operand& x, const Operand& mask, size_t count) const;

  // ---- building ----
  Operand op(std::string_view name, const Operands& args, graph::Attrs attrs = {}) const {
    return b.op(name, args, std::move(attrs));
  }
  Operand reshape(const Operand& x, const Dims& shape) const;
  Operand transpose(const Operand& x, const Ints& perm) const;
  Operand cast(const Operand& x, DataType dtype) const;
  Operand expand(const Operand& x, const Dims& shape) const;
  Operand unsqueeze(const Operand& x, const Ints& axes) const;  // of the result, >= 0
  Operand squeeze(const Operand& x, const Ints& axes) const;    // of x, >= 0
  Operand concat(const Operands& parts, int64_t axis) const;
  // Elements [start, start + size) of one axis.
  Operand slice(const Operand& x, int64_t axis, const Dim& start, const Dim& size) const;
  // x with its first axis moved to `axis`.
  Operand with_first_at(const Operand& x, int64_t axis) const;
  // x with symbols for its sizes if only its rank is known, so that users know which sizes it has,
  // and for those that many symbols make.
  Operand with_symbols(const Operand& x) const;
  // The elements in reverse order along `axis`.
  Operand reversed(const Operand& x, int64_t axis) const;
  Operand reduce(std::string_view name, const Operand& x, const Ints& axes, bool keepdims) const;
  // The value as an element; of strings, the empty one.
  Operand scalar(DataType dtype, double value) const;
  Operand string(std::string_view value) const;                          // string[]
  Operand strings_tensor(const std::vector<std::string>& values) const;  // string[n]
  Operand scalar_like(const Operand& x, double value) const { return scalar(dtype(x), value); }
  Operand integer(int64_t value) const;  // i64[]
  Operand full(DataType dtype, double value, const Dims& shape) const;
  Operand ints_tensor(const Ints& values) const;  // i64[n]
  // A tensor i64[n] of sizes, or i64[] for one size; a constant if the sizes are constant.
  Operand dims_tensor(const Dims& values) const;
  Operand dim_scalar(const Dim& value) const;
  Operand add(const Operand& x, const Operand& y) const { return op("add", {x, y}); }
  Operand sub(const Operand& x, const Operand& y) const { return op("sub", {x, y}); }
  Operand mul(const Operand& x, const Operand& y) const { return op("mul", {x, y}); }
  Operand div(const Operand& x, const Operand& y) const { return op("div", {x, y}); }

 private:
  void require_axes(const Operand& mask, size_t count) const;
  const Attribute* attr(const char* name, Attribute::Kind kind) const;

  const Node& node_;
  Operands inputs_;
  int64_t version_;
  InnerGraph inner_graph_;
  mutable std::set<std::string, std::less<>> read_;
};

// A translation that computes booleans as the integers 0 and 1, for which any other is true.
template <Translate Make>
Operands with_booleans(NodeContext& cx) {
  if (cx.count() == 0 || !cx.has(0) || !cx.dtype(0).is_bool()) return Make(cx);
  cx.cast_inputs(boolean, i32);
  Operands out = Make(cx);
  for (Operand& y : out) y = cx.cast(y, boolean);
  return out;
}

// A translation that computes float16 and bfloat16 operands in float32 and rounds once at the end,
// as runtimes do, for compositions that would otherwise round at every step.
template <Translate Make>
Operands widened(NodeContext& cx) {
  if (cx.count() == 0 || !cx.has(0) || !cx.dtype(0).is_narrow_float()) return Make(cx);
  const DataType narrow = cx.dtype(0);
  cx.cast_inputs(narrow, f32);
  Operands out = Make(cx);
  for (Operand& y : out) {
    if (y && cx.dtype(y) == f32) y = cx.cast(y, narrow);
  }
  return out;
}

// The quotient of two products of sizes, with common factors cancelled.
Dim divide(const Dims& dividend, const Dims& divisor);
// A constant tensor of doubles converted to `dtype` as by `cast`.
Tensor make_tensor(DataType dtype, const Ints& shape, const std::vector<double>& values);
// Element i of a tensor on the CPU.
double element(const Tensor& t, int64_t i);

}  // namespace tenon::onnx
