#include "library/onednn/functions.h"
#include "library/onednn/primitive_cache.h"
#include "library/onednn/team.h"
#include "object/shape.h"
#include "support/error.h"

namespace tenon::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

constexpr const library::Signature& kSignature = library::signature("onednn.convolution");
constexpr std::string_view kName = kSignature.name;

consteval size_t at(std::string_view argument) {
  return library::argument(kSignature, argument);
}

struct Convolution {
  const Tensor &x, &weights, &bias, &residual, &out;
  const Shape &strides, &dilations, &pads;
  int64_t groups = 1;
  library::Activation activation = library::Activation::None;
  float alpha = 0, beta = 0;
};

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::Runtime, cat(kName, ": ", what));
}

Convolution read(const AnyView* args, int32_t count) {
  require_arity(kSignature, count);
  return {in_place<Tensor>(args[at("x")]),        in_place<Tensor>(args[at("weights")]),
          optional_tensor(args[at("bias")]),      optional_tensor(args[at("residual")]),
          in_place<Tensor>(args[at("out")]),      in_place<Shape>(args[at("strides")]),
          in_place<Shape>(args[at("dilations")]), in_place<Shape>(args[at("pads")]),
          args[at("groups")].as<int64_t>(),       args[at("activation")].as<library::Activation>(),
          args[at("alpha")].as<float>(),          args[at("beta")].as<float>()};
}

void check_tensors(const Convolution& c) {
  require_f32(c.x, kName, "x");
  const int64_t rank = c.x.rank(), spatial = rank - 2;
  if (spatial < 1 || spatial > 3) fail(cat("x has rank ", rank, ", expected 3 to 5"));
  require_f32(c.weights, kName, "weights", rank);
  require_f32(c.out, kName, "out", rank);
  if (c.bias) require_f32(c.bias, kName, "bias", 1);
  if (c.residual) require_f32(c.residual, kName, "residual", rank);
  if (c.out->layout & LayoutWord::kReadOnly) fail("'out' is read-only");
}

// Checks everything else that oneDNN doesn't check. Depends only on the key.
void check_sizes(const Convolution& c) {
  const int64_t rank = c.x.rank(), spatial = rank - 2;
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
    // Keeps sums and products below from overflowing; oneDNN itself counts windows in 32 bits.
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

// [N, s..., C] in oneDNN's order of axes, N C s..., channels-last in memory.
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

Plan make(const Convolution& c) {
  check_sizes(c);
  Plan plan;
  plan.source = image(c.x);
  plan.given_weights = filter(c.weights, c.groups);
  plan.out = image(c.out);
  if (c.bias) {
    plan.bias = {{c.bias.dim(0)}, memory::data_type::f32, memory::format_tag::a};
  }
  const int64_t window = c.weights.count() / c.weights.dim(c.weights.rank() - 1);
  plan.threads = threads_worth(static_cast<double>(c.out.count()) * static_cast<double>(window));
  const TeamScope team(plan.threads);

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
      post_operations(c.residual ? &plan.out : nullptr, c.activation, c.alpha, c.beta));
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const memory::desc weights = any_form(plan.given_weights);
  using Forward = dnnl::convolution_forward;
  const Forward::desc description =
      c.bias ? Forward::desc(kind, algorithm, plan.source, weights, plan.bias, plan.out, strides,
                             dilations, begin, end)
             : Forward::desc(kind, algorithm, plan.source, weights, plan.out, strides, dilations,
                             begin, end);
  Forward::primitive_desc chosen(description, attributes, cpu_engine());
  plan.primitive = Forward(chosen);
  plan.weights = chosen.weights_desc();
  plan.scratchpad_bytes = chosen.scratchpad_desc().get_size();
  return plan;
}

void run(const Convolution& c) {
  Key key(1);
  for (const Tensor* t : {&c.x, &c.weights, &c.bias, &c.residual, &c.out}) key.add(*t);
  for (const Shape* s : {&c.strides, &c.dilations, &c.pads}) key.add(s->dims());
  key.add(c.groups);
  key.add(static_cast<int64_t>(c.activation));
  key.add(double{c.alpha});
  key.add(double{c.beta});
  run_planned(key, [&] { return make(c); }, {c.x, c.weights, c.bias, c.residual, c.out});
}

}  // namespace

void convolution(const AnyView* args, int32_t count, Any*) {
  const Convolution c = read(args, count);
  check_tensors(c);
  if (c.out.count() == 0) return check_sizes(c);
  try {
    run(c);
  } catch (const dnnl::error& error) {
    fail(error.what());
  }
}

}  // namespace tenon::onednn
