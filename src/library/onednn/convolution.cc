#include "library/onednn/convolution.h"

#include <algorithm>
#include <array>
#include <vector>

#include "library/onednn/constant_product.h"
#include "library/onednn/functions.h"
#include "library/onednn/primitive_cache.h"
#include "library/onednn/team.h"
#include "library/onednn/winograd.h"
#include "support/poll.h"

namespace tenon::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

constexpr const library::Signature& kSignature = library::signature("onednn.convolution");
constexpr Position at{kSignature};
constexpr Failure fail{kSignature};

Convolution read(const AnyView* args, int32_t count) {
  require_arity(kSignature, count);
  return {in_place<Tensor>(args[at("x")]),        in_place<Tensor>(args[at("weights")]),
          optional_tensor(args[at("bias")]),      optional_tensor(args[at("residual")]),
          in_place<Tensor>(args[at("out")]),      in_place<Shape>(args[at("strides")]),
          in_place<Shape>(args[at("dilations")]), in_place<Shape>(args[at("pads")]),
          args[at("groups")].as<int64_t>(),       args[at("activation")].as<library::Activation>(),
          args[at("alpha")].as<float>(),          args[at("beta")].as<float>(),
          args[at("winograd")].as<int64_t>() != 0};
}

void check_tensors(const Convolution& c) {
  require_f32(kSignature, c.x, "x");
  const int64_t rank = c.x.rank(), spatial = rank - 2;
  if (spatial < 1 || spatial > 3) fail(cat("x has rank ", rank, ", expected 3 to 5"));
  require_f32(kSignature, c.weights, "weights", rank);
  require_f32(kSignature, c.out, "out", rank);
  if (c.bias) require_f32(kSignature, c.bias, "bias", 1);
  if (c.residual) require_f32(kSignature, c.residual, "residual", rank);
  require_output(kSignature, c.out);
}

// How far a window extends along a spatial axis.
int64_t extent_of(const Convolution& c, int32_t axis) {
  return (c.weights.dim(axis) - 1) * c.dilations[static_cast<size_t>(axis)] + 1;
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
    const int64_t window = extent_of(c, axis);
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

// Multiplications for one element of the result.
int64_t window_of(const Convolution& c) {
  return c.weights.count() / c.weights.dim(c.weights.rank() - 1);
}

// Whether a window reads nothing but padding, along some axis.
bool has_window_in_padding(const Convolution& c) {
  for (size_t i = 0; i < c.strides.size(); ++i) {
    const auto axis = static_cast<int32_t>(i);
    const int64_t size = c.x.dim(axis + 1), window = c.weights.dim(axis);
    const int64_t step = c.dilations[i];
    for (int64_t out = 0; out < c.out.dim(axis + 1); ++out) {
      const int64_t from = out * c.strides[i] - c.pads[i];
      const int64_t before = from < 0 ? (-from + step - 1) / step : 0;  // steps in front of x
      if (before >= window || from + before * step >= size) return true;
    }
  }
  return false;
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
  plan.threads =
      threads_worth(static_cast<double>(c.out.count()) * static_cast<double>(window_of(c)),
                    plan.given_weights.get_size());
  const TeamScope team(plan.threads);

  const size_t spatial = c.strides.size();
  Dims strides(c.strides.begin(), c.strides.end()), dilations, begin, end;
  for (size_t i = 0; i < spatial; ++i) {
    dilations.push_back(c.dilations[i] - 1);
    begin.push_back(c.pads[i]);
    end.push_back(c.pads[spatial + i]);
  }
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const memory::desc weights = any_form(plan.given_weights);
  using Forward = dnnl::convolution_forward;
  const Forward::desc description =
      c.bias ? Forward::desc(kind, algorithm, plan.source, weights, plan.bias, plan.out, strides,
                             dilations, begin, end)
             : Forward::desc(kind, algorithm, plan.source, weights, plan.out, strides, dilations,
                             begin, end);
  const auto is_by = [](const Forward::primitive_desc& chosen, std::string_view algorithm) {
    return std::string_view(chosen.impl_info_str()).find(algorithm) != std::string_view::npos;
  };
  // oneDNN 2.6.3's brgconv applies post-operations to such windows wrongly or not at all, and reads
  // their constants from wild addresses.
  const bool skips_brgconv = c.residual && has_window_in_padding(c);
  const auto choose = [&] {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_post_ops(post_operations(plan, bool(c.residual), c.activation, c.alpha, c.beta));
    Forward::primitive_desc chosen(description, attributes, cpu_engine());
    while (skips_brgconv && is_by(chosen, "brgconv") && chosen.next_impl()) {
    }
    return chosen;
  };
  Forward::primitive_desc chosen = choose();
  // oneDNN 2.6.3's convolutions by gemm misread another operand of the result's size.
  if (c.residual && is_by(chosen, "gemm")) {
    plan.adds_to_out = true;
    chosen = choose();
  }
  plan.primitive = Forward(chosen);
  plan.weights = chosen.weights_desc();
  plan.scratchpad_bytes = chosen.scratchpad_desc().get_size();
  return plan;
}

void run_whole(const Convolution& c) {
  Key key(kSignature);
  for (const Tensor* t : {&c.x, &c.weights, &c.bias, &c.residual, &c.out}) key.add(*t);
  for (const Shape* s : {&c.strides, &c.dilations, &c.pads}) key.add(s->dims());
  key.add(c.groups);
  key.add(static_cast<int64_t>(c.activation));
  key.add(double{c.alpha});
  key.add(double{c.beta});
  run_planned(key, [&] { return make(c); },
              {data_of(c.x), data_of(c.bias), data_of(c.residual), data_of(c.out), c.weights});
}

// The same convolution of a part of the images; the result lives no longer than its arguments.
Convolution with_parts(const Convolution& c, const Tensor& x, const Tensor& residual,
                       const Tensor& out, const Shape& pads) {
  return {.x = x,
          .weights = c.weights,
          .bias = c.bias,
          .residual = residual,
          .out = out,
          .strides = c.strides,
          .dilations = c.dilations,
          .pads = pads,
          .groups = c.groups,
          .activation = c.activation,
          .alpha = c.alpha,
          .beta = c.beta,
          .winograd = c.winograd};
}

// `count` items of an axis from the place `at` on: of the first axis, or of the second in one item
// of the first. They are dense in memory.
Tensor part_of(const Tensor& tensor, std::span<const int64_t> at, int64_t count) {
  if (!tensor) return {};
  std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  int64_t offset = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    offset += at[i] * tensor.strides()[i];
    shape[i] = i + 1 < at.size() ? 1 : count;
  }
  return Tensor::view(tensor.data_as<float>() + offset, shape, tensor.dtype(), tensor.ref(),
                      /*read_only=*/false);
}

// Runs rows [first, end) of the first spatial axis of an image of the result.
void run_rows(const Convolution& c, int64_t image, int64_t first, int64_t end) {
  const int64_t size = c.x.dim(1), stride = c.strides[0];
  const int64_t window = extent_of(c, 0);
  const int64_t from = first * stride - c.pads[0];
  const int64_t to = (end - 1) * stride - c.pads[0] + window;
  std::vector<int64_t> pads(c.pads.dims().begin(), c.pads.dims().end());
  pads[0] = std::max<int64_t>(0, -from);
  pads[c.strides.size()] = std::max<int64_t>(0, to - size);
  const int64_t in_first = std::max<int64_t>(0, from);
  const std::array<int64_t, 2> in{image, in_first}, out{image, first};
  const Tensor x = part_of(c.x, in, std::min(to, size) - in_first);
  const Tensor residual = part_of(c.residual, out, end - first);
  const Tensor result = part_of(c.out, out, end - first);
  const Shape part_pads{std::span<const int64_t>(pads)};
  run_whole(with_parts(c, x, residual, result, part_pads));
}

// In parts of some images, or of some rows of one: those are dense, and oneDNN is fast only then.
void run_in_parts(const Convolution& c) {
  check_sizes(c);
  const int64_t images = c.out.dim(0), rows = c.out.dim(1);
  const double of_image = static_cast<double>(c.out.count()) / static_cast<double>(images) *
                          static_cast<double>(window_of(c));
  const int64_t window = extent_of(c, 0);
  const bool has_rows = c.pads[0] < window && c.pads[c.strides.size()] < window;
  const int64_t some_images = at_most(kMostBetweenPolls / of_image, images);
  const int64_t some_rows =
      has_rows ? at_most(kMostBetweenPolls / of_image * static_cast<double>(rows), rows) : rows;
  for (int64_t image = 0; image < images; image += some_images) {
    if (some_rows == rows) {
      const std::array<int64_t, 1> at{image};
      const int64_t count = std::min(some_images, images - image);
      const Tensor x = part_of(c.x, at, count), residual = part_of(c.residual, at, count);
      const Tensor out = part_of(c.out, at, count);
      poll();
      run_whole(with_parts(c, x, residual, out, c.pads));
      continue;
    }
    for (int64_t row = 0; row < rows; row += some_rows) {
      poll();
      run_rows(c, image, row, std::min(rows, row + some_rows));
    }
  }
}

void run_directly(const Convolution& c) {
  const double work = static_cast<double>(c.out.count()) * static_cast<double>(window_of(c));
  work > kMostBetweenPolls ? run_in_parts(c) : run_whole(c);
}

// Whether each pixel is multiplied with one constant matrix; then computes that in our own loops,
// unless oneDNN's are better.
bool run_by_pixel(const Convolution& c) {
  const int32_t last = c.x.rank() - 1;
  const int64_t channels = c.x.dim(last), filters = c.out.dim(last);
  if (c.groups != 1 || c.weights.count() != channels * filters) return false;
  const auto all = [](const Shape& shape, int64_t value) {
    return std::ranges::all_of(shape.dims(), [&](int64_t v) { return v == value; });
  };
  if (!all(c.strides, 1) || !all(c.pads, 0)) return false;
  check_sizes(c);
  const ConstantProduct product{.rows = c.out.count() / filters,
                                .depth = channels,
                                .columns = filters,
                                .left = floats_of(c.x),
                                .constant = c.weights,
                                .transposed = false,
                                .bias = floats_of(c.bias),
                                .residual = floats_of(c.residual),
                                .activation = c.activation,
                                .alpha = c.alpha,
                                .beta = c.beta,
                                .out = floats_of(c.out)};
  if (!is_fast_constant_product(product)) return false;
  run_constant_product(product);
  return true;
}

void run(const Convolution& c) {
  if (run_by_pixel(c)) return;
  if (c.winograd) {
    check_sizes(c);
    const WinogradKernels* kernels = choose_winograd(c);
    if (kernels && run_winograd(c, *kernels)) return;
  }
  run_directly(c);
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
