#include "library/onednn/functions.h"
#include "library/onednn/primitive_cache.h"
#include "object/shape.h"
#include "support/error.h"

namespace tenon::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

constexpr const char* kName = "onednn.convolution";

struct Convolution {
  Tensor x, weights, bias, residual, out;
  Shape strides, dilations, pads;
  int64_t groups = 1;
  OneDnnActivation activation = OneDnnActivation::kNone;
  float alpha = 0, beta = 0;
};

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::Runtime, cat(kName, ": ", what));
}

Convolution read(const AnyView* args, int32_t count) {
  if (count != 12) fail(cat("takes 12 arguments, got ", count));
  Convolution c;
  c.x = args[0].as<Tensor>();
  c.weights = args[1].as<Tensor>();
  if (!args[2].is_none()) c.bias = args[2].as<Tensor>();
  if (!args[3].is_none()) c.residual = args[3].as<Tensor>();
  c.out = args[4].as<Tensor>();
  c.strides = args[5].as<Shape>();
  c.dilations = args[6].as<Shape>();
  c.pads = args[7].as<Shape>();
  c.groups = args[8].as<int64_t>();
  c.activation = static_cast<OneDnnActivation>(args[9].as<int64_t>());
  c.alpha = args[10].as<float>();
  c.beta = args[11].as<float>();
  return c;
}

// Everything that oneDNN would take on trust.
void check(const Convolution& c) {
  require_f32(c.x, kName, "x");
  const int64_t rank = c.x.rank(), spatial = rank - 2;
  if (spatial < 1 || spatial > 3) fail(cat("x has rank ", rank, ", expected 3 to 5"));
  require_f32(c.weights, kName, "weights", rank);
  require_f32(c.out, kName, "out", rank);
  if (c.bias) require_f32(c.bias, kName, "bias", 1);
  if (c.residual) require_f32(c.residual, kName, "residual", rank);
  if (c.out->layout & LayoutWord::kReadOnly) fail("'out' is read-only");
  const int64_t channels = c.x.dim(static_cast<int32_t>(rank - 1));
  const int64_t filters = c.weights.dim(static_cast<int32_t>(rank - 1));
  if (c.groups < 1 || channels % c.groups != 0 || filters % c.groups != 0 ||
      c.weights.dim(static_cast<int32_t>(rank - 2)) != channels / c.groups) {
    fail("channels of x and weights do not fit the groups");
  }
  if (c.out.dim(0) != c.x.dim(0) || c.out.dim(static_cast<int32_t>(rank - 1)) != filters ||
      (c.bias && c.bias.dim(0) != filters)) {
    fail("out or bias does not fit x and weights");
  }
  if (static_cast<int64_t>(c.strides.size()) != spatial ||
      static_cast<int64_t>(c.dilations.size()) != spatial ||
      static_cast<int64_t>(c.pads.size()) != 2 * spatial) {
    fail("strides, dilations or pads do not fit the rank");
  }
  for (int64_t i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(i);
    const auto axis = static_cast<int32_t>(i);
    const int64_t begin = c.pads[at], end = c.pads[at + static_cast<size_t>(spatial)];
    // So that no sum or product below overflows; oneDNN itself counts windows in 32 bits.
    auto within = [](int64_t v, int64_t least) { return v >= least && v <= INT32_MAX; };
    if (!within(c.strides[at], 1) || !within(c.dilations[at], 1) || !within(begin, 0) ||
        !within(end, 0) || !within(c.weights.dim(axis), 1) || !within(c.x.dim(axis + 1), 0)) {
      fail("a stride, dilation, pad or size is out of range");
    }
    const int64_t window = (c.weights.dim(axis) - 1) * c.dilations[at] + 1;
    const int64_t room = c.x.dim(axis + 1) + begin + end - window;
    if (room < 0 || c.out.dim(axis + 1) != room / c.strides[at] + 1) {
      fail(cat("out has size ", c.out.dim(axis + 1), " on axis ", i + 1));
    }
  }
  if (c.residual && !std::equal(c.residual.shape().begin(), c.residual.shape().end(),
                                c.out.shape().begin(), c.out.shape().end())) {
    fail("residual has another shape than out");
  }
}

// [N, s..., C] as oneDNN counts axes, N C s..., channels-last in memory.
memory::desc image(const Tensor& tensor) {
  const int32_t rank = tensor.rank();
  Dims dims{tensor.dim(0), tensor.dim(rank - 1)}, strides{tensor.strides()[0], 1};
  for (int32_t i = 1; i + 1 < rank; ++i) {
    dims.push_back(tensor.dim(i));
    strides.push_back(tensor.strides()[static_cast<size_t>(i)]);
  }
  return {dims, memory::data_type::f32, strides};
}

// [k..., C/groups, M] as (groups,) M, C, k... .
memory::desc filter(const Tensor& weights, int64_t groups) {
  const int32_t rank = weights.rank();
  const int64_t filters = weights.dim(rank - 1);
  Dims dims, strides;
  if (groups > 1) {
    dims = {groups, filters / groups};
    strides = {filters / groups, 1};
  } else {
    dims = {filters};
    strides = {1};
  }
  dims.push_back(weights.dim(rank - 2));
  strides.push_back(filters);
  for (int32_t i = 0; i + 2 < rank; ++i) {
    dims.push_back(weights.dim(i));
    strides.push_back(weights.strides()[static_cast<size_t>(i)]);
  }
  return {dims, memory::data_type::f32, strides};
}

memory::desc any_form(const memory::desc& desc) {
  return {desc.dims(), memory::data_type::f32, memory::format_tag::any};
}

Primitive make(const Convolution& c, const memory::desc& source, const memory::desc& weights,
               const memory::desc& bias, const memory::desc& out) {
  const size_t spatial = c.strides.size();
  Dims strides(c.strides.begin(), c.strides.end()), dilations, begin, end;
  for (size_t i = 0; i < spatial; ++i) {
    dilations.push_back(c.dilations[i] - 1);
    begin.push_back(c.pads[i]);
    end.push_back(c.pads[spatial + i]);
  }
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(
      post_operations(c.residual ? &out : nullptr, c.activation, c.alpha, c.beta));
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  using Forward = dnnl::convolution_forward;
  const Forward::desc description = c.bias
                                        ? Forward::desc(kind, algorithm, source, any_form(weights),
                                                        bias, out, strides, dilations, begin, end)
                                        : Forward::desc(kind, algorithm, source, any_form(weights),
                                                        out, strides, dilations, begin, end);
  Forward::primitive_desc chosen(description, attributes, cpu_engine());
  return {Forward(chosen), chosen.weights_desc(), chosen.scratchpad_desc().get_size()};
}

void run(const Convolution& c) {
  const memory::desc source = image(c.x), weights = filter(c.weights, c.groups), out = image(c.out);
  const memory::desc bias =
      c.bias ? memory::desc({c.bias.dim(0)}, memory::data_type::f32, memory::format_tag::a)
             : memory::desc();
  Key key;
  key.add(int64_t{1});
  key.add(c.x.shape());
  key.add(c.weights.shape());
  key.add(c.out.shape());
  key.add(c.strides.dims());
  key.add(c.dilations.dims());
  key.add(c.pads.dims());
  key.add(c.groups);
  key.add(static_cast<int64_t>(c.activation));
  key.add(static_cast<double>(c.alpha));
  key.add(static_cast<double>(c.beta));
  key.add(int64_t{(c.bias ? 1 : 0) + (c.residual ? 2 : 0)});
  const int64_t window = c.weights.count() / c.weights.dim(c.weights.rank() - 1);
  auto primitive =
      cached_primitive(key, static_cast<double>(c.out.count()) * static_cast<double>(window),
                       [&] { return make(c, source, weights, bias, out); });
  std::shared_ptr<void> holder;
  void* packed = packed_weights(c.weights, weights, primitive->weights, &holder);
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, memory(source, cpu_engine(), c.x.data())},
      {DNNL_ARG_WEIGHTS, memory(primitive->weights, cpu_engine(), packed)},
      {DNNL_ARG_DST, memory(out, cpu_engine(), c.out.data())},
  };
  if (c.bias) arguments.emplace(DNNL_ARG_BIAS, memory(bias, cpu_engine(), c.bias.data()));
  if (c.residual) {
    arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                      memory(out, cpu_engine(), c.residual.data()));
  }
  execute(*primitive, std::move(arguments));
}

}  // namespace

void convolution(const AnyView* args, int32_t count, Any*) {
  const Convolution c = read(args, count);
  check(c);
  if (c.out.count() == 0) return;
  try {
    run(c);
  } catch (const dnnl::error& error) {
    fail(error.what());
  }
}

}  // namespace tenon::onednn
