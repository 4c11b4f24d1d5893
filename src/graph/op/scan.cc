// Running sums and products along an axis. f16 is summed in f32.
#include "graph/op/families.h"
#include "graph/op/rule.h"
#include "graph/op/stages.h"

namespace tenon::graph {
namespace {

TypeRef infer_scan(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  cx.axis(cx.attr_int("axis"), x.rank);
  return tensor_type(x.dtype, dims_of(x));
}

// The running result of `kOp`, starting from `kFirst`.
template <BinaryOp kOp, int kFirst>
loop::ComputeRef lower_scan(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &y = cx.output();
  int64_t axis = info.axis(info.attr_int("axis"), info.tensor(0).rank);
  size_t a = static_cast<size_t>(axis);
  bool exclusive = info.attr_bool("exclusive"), reverse = info.attr_bool("reverse");
  DataType dtype = wide(x->dtype);
  // A reversed scan runs over the reversed axis, and its result is read in reverse.
  auto turned = [&](Indices i) {
    if (reverse) i[a] = size(x->shape[a] - 1) - i[a];
    return i;
  };
  bool direct = !reverse && dtype == y->dtype;
  BufferRef running = direct ? y : loop::buffer("running", dtype, dims_of(x));
  std::vector<StageRef> stages = {scan_stage(running, axis, [&](const Indices& i) {
    Indices before = i;
    before[a] = i[a] - index(1);
    Scalar element = as(dtype, load(x, turned(exclusive ? before : i)));
    Scalar next = binary(kOp, load(running, before), element);
    return select(lt(index(0), i[a]), next, exclusive ? number(dtype, kFirst) : element);
  })};
  if (!direct) {
    stages.push_back(
        map_stage(y, [&](const Indices& i) { return as(y->dtype, load(running, turned(i))); }));
  }
  return cx.compute(stages);
}

Sample sample_scan(const Operator& op, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(shape.size());
  return {{sample_tensor(random.dtype(op.operands[0].dtypes), shape)},
          attrs({{"axis", random.between(-rank, rank - 1)},
                 {"exclusive", random.coin()},
                 {"reverse", random.coin()}})};
}

}  // namespace

void register_scan(OperatorTable& table) {
  auto scan = [&](const char* name, const char* summary, LowerFn lower) {
    table.add({.name = name,
               .kind = OpKind::kOpaque,
               .operands = {{"x", kNumbers}},
               .attrs = {{"axis", AttrKind::kInt, nullptr, "to run along"},
                         {"exclusive", AttrKind::kBool, "false", "leaves out the element itself"},
                         {"reverse", AttrKind::kBool, "false", "from the end"}},
               .summary = summary,
               .infer = infer_scan,
               .lower = lower,
               .sample = sample_scan});
  };
  scan("cumsum", "running sums along an axis", lower_scan<BinaryOp::kAdd, 0>);
  scan("cumprod", "running products along an axis", lower_scan<BinaryOp::kMul, 1>);
}

}  // namespace tenon::graph
