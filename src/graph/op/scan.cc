// Running sums and products along an axis. f16 is summed in f32.
#include "graph/op/families.h"
#include "graph/op/rule.h"
#include "graph/op/stages.h"

namespace tenon::graph {
namespace {

TypeRef infer_scan(InferContext& cx) {
  const TensorType& x = tensor_of(cx, 0, kNumbers);
  cx.axis(cx.attr_int("axis"), x.rank);
  return tensor_type(x.dtype, dims_of(x));
}

loop::ComputeRef lower_scan(const LowerContext& cx) {
  const InferContext& info = cx.info();
  const BufferRef &x = cx.input(0), &y = cx.output();
  int64_t axis = info.axis(info.attr_int("axis"), info.tensor(0).rank);
  size_t a = static_cast<size_t>(axis);
  bool exclusive = info.attr_bool("exclusive"), reverse = info.attr_bool("reverse");
  bool sums = std::string_view(info.call().callee) == "cumsum";
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
    Scalar sum = load(running, before);
    sum = sums ? sum + element : sum * element;
    return select(lt(index(0), i[a]), sum, exclusive ? number(dtype, sums ? 0 : 1) : element);
  })};
  if (!direct) {
    stages.push_back(
        map_stage(y, [&](const Indices& i) { return as(y->dtype, load(running, turned(i))); }));
  }
  return cx.compute(stages);
}

Sample sample_scan(uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> shape = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(shape.size());
  return {{sample_tensor(random.dtype(kNumbers), shape)},
          attrs({{"axis", random.between(-rank, rank - 1)},
                 {"exclusive", random.coin()},
                 {"reverse", random.coin()}})};
}

}  // namespace

void register_scan(OperatorTable& table) {
  for (const char* name : {"cumsum", "cumprod"}) {
    table.add({.name = name,
               .kind = OpKind::kOpaque,
               .operands = {{"x"}},
               .attrs = {{"axis", AttrKind::kInt, nullptr, "along which to run"},
                         {"exclusive", AttrKind::kBool, "false", "an element's own is left out"},
                         {"reverse", AttrKind::kBool, "false", "from the end"}},
               .summary = std::string_view(name) == "cumsum" ? "running sums along an axis"
                                                             : "running products along an axis",
               .infer = infer_scan,
               .lower = lower_scan,
               .sample = sample_scan});
  }
}

}  // namespace tenon::graph
