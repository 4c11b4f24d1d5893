#include "graph/ir/operators_testing.h"

namespace tenon::graph {

namespace {

TypeRef infer_same(InferContext& cx) {
  return without_values(share(&cx.tensor(0)));
}

TypeRef infer_broadcast(InferContext& cx) {
  std::vector<std::vector<Dim>> shapes;
  for (size_t i = 0; i < cx.arg_count(); ++i) {
    if (cx.tensor(i).dtype != cx.tensor(0).dtype) cx.fail("operands differ in element type");
    shapes.push_back(cx.tensor(i).dims.to_vector());
  }
  return tensor_type(cx.tensor(0).dtype, cx.broadcast_shapes(shapes));
}

TypeRef infer_less(InferContext& cx) {
  TypeRef t = infer_broadcast(cx);
  return tensor_type(boolean, type_as<TensorType>(t)->dims.to_vector());
}

TypeRef infer_matmul(InferContext& cx) {
  const TensorType &a = cx.tensor(0), &b = cx.tensor(1);
  if (a.rank != 2 || b.rank != 2) cx.fail("operands must have rank 2");
  cx.require_equal(a.dims[1], b.dims[0], "inner sizes");
  return tensor_type(a.dtype, {a.dims[0], b.dims[1]});
}

TypeRef infer_nonzero(InferContext& cx) {
  return tensor_type(i64, {cx.tensor(0).rank, cx.fresh("nonzero")});
}

TypeRef infer_reshape(InferContext& cx) {
  std::vector<Dim> shape = cx.attr_dims("shape");
  cx.require_equal(product(cx.tensor(0).dims.to_vector()), product(shape), "number of elements");
  return tensor_type(cx.tensor(0).dtype, shape);
}

TypeRef infer_shape_of(InferContext& cx) {
  return tensor_type(i64, {cx.tensor(0).rank});
}

TypeRef infer_softmax(InferContext& cx) {
  cx.axis(cx.attr_int("axis"), cx.tensor(0).rank);
  return infer_same(cx);
}

TypeRef infer_split(InferContext& cx) {
  int64_t axis = cx.axis(cx.attr_int("axis"), cx.tensor(0).rank);
  std::vector<TypeRef> parts;
  for (const Dim& size : cx.attr_dims("sizes")) {
    std::vector<Dim> dims = cx.tensor(0).dims.to_vector();
    dims[static_cast<size_t>(axis)] = size;
    parts.push_back(tensor_type(cx.tensor(0).dtype, dims));
  }
  return tuple_type(parts);
}

TypeRef infer_clip(InferContext& cx) {
  return infer_same(cx);
}

TypeRef infer_unique(InferContext& cx) {
  Dim n = cx.fresh("unique");
  return tuple_type({tensor_type(cx.tensor(0).dtype, {n}), tensor_type(i64, {n})});
}

using Values = std::optional<std::vector<Dim>>;

Values value_shape_of(const InferContext& cx, const TensorType&) {
  return cx.tensor(0).dims.to_vector();
}

template <class F>
Values each(const InferContext& cx, F f) {
  const TensorType &a = cx.tensor(0), &b = cx.tensor(1);
  if (!a.value_known || !b.value_known || a.values.size() != b.values.size()) return std::nullopt;
  std::vector<Dim> out;
  for (size_t i = 0; i < a.values.size(); ++i) out.push_back(f(a.values[i], b.values[i]));
  return out;
}

Values value_add(const InferContext& cx, const TensorType&) {
  return each(cx, [](const Dim& a, const Dim& b) { return a + b; });
}
Values value_sub(const InferContext& cx, const TensorType&) {
  return each(cx, [](const Dim& a, const Dim& b) { return a - b; });
}

Operator entry(const char* name, OpKind kind, std::vector<OperandSpec> operands, InferFn infer,
               std::vector<AttrSpec> attrs = {}) {
  Operator op{name, kind, std::move(operands), std::move(attrs), "of tests", infer};
  op.lower = [](const LowerContext&) { return loop::ComputeRef(); };  // never called
  return op;
}

}  // namespace

void register_test_operators() {
  OperatorTable& table = OperatorTable::global();
  if (table.find("relu")) return;
  using A = OperandSpec;
  table.add(entry("relu", OpKind::kElementwise, {{"x"}}, infer_same));
  for (const char* name : {"add", "sub", "mul", "less"}) {
    std::string_view n = name;
    Operator op =
        entry(name, OpKind::kBroadcast, {{"a"}, {"b"}}, n == "less" ? infer_less : infer_broadcast);
    op.element = [](const InferContext&, const std::vector<loop::ExprRef>& x) { return x[0]; };
    if (n == "add") op.value = value_add;
    if (n == "sub") op.value = value_sub;
    table.add(std::move(op));
  }
  table.add(entry("matmul", OpKind::kContraction, {{"a"}, {"b"}}, infer_matmul));
  table.add(entry("nonzero", OpKind::kOpaque, {{"x"}}, infer_nonzero));
  table.add(entry("unique", OpKind::kOpaque, {{"x"}}, infer_unique));
  table.add(entry("reshape", OpKind::kMovement, {{"x"}}, infer_reshape,
                  {{"shape", AttrKind::kDims, nullptr, "sizes of the result"}}));
  Operator shape_of = entry("shape_of", OpKind::kMovement, {{"x"}}, infer_shape_of,
                            {{"start", AttrKind::kInt, "0"}, {"end", AttrKind::kInt, "()"}});
  shape_of.value = value_shape_of;
  table.add(std::move(shape_of));
  table.add(entry("softmax", OpKind::kNormalization, {{"x"}}, infer_softmax,
                  {{"axis", AttrKind::kInt, "-1"}}));
  table.add(entry("split", OpKind::kMovement, {{"x"}}, infer_split,
                  {{"axis", AttrKind::kInt, nullptr}, {"sizes", AttrKind::kDims, nullptr}}));
  table.add(entry("clip", OpKind::kElementwise,
                  {{"x"}, {"min", kAny, A::kOptional}, {"max", kAny, A::kOptional}}, infer_clip));
  // One attribute of every kind.
  table.add(entry("tagged", OpKind::kElementwise, {{"x"}}, infer_same,
                  {{"i", AttrKind::kInt, "1"},
                   {"f", AttrKind::kFloat, "0.5"},
                   {"b", AttrKind::kBool, "false"},
                   {"s", AttrKind::kString, "\"none\""},
                   {"t", AttrKind::kDType, "f32"},
                   {"is", AttrKind::kInts, "[]"},
                   {"fs", AttrKind::kFloats, "[1, 2.5]"},
                   {"d", AttrKind::kDim, "0"},
                   {"ds", AttrKind::kDims, "[]"}}));
}

}  // namespace tenon::graph
