// For tests and benchmarks: the compute of a convolution as the compiler makes it.
#pragma once

#include "loop/schedule.h"

namespace tenon::loop {

// 3 by 3 with stride 1. 0 images are any number.
struct ConvolutionForm {
  ConvolutionShape shape;
  int64_t pad = 1;
  int64_t panel = 0;        // the width of panels of weights; 0: [3, 3, channels, filters]
  bool relu_first = false;  // of x, before it is padded
};

// y = max(conv(x, w) + bias + residual, 0), channels last.
inline ComputeRef convolution(const ConvolutionForm& f) {
  const auto& [images, height, width, channels, filters] = f.shape;
  const int64_t in_height = height + 2 - 2 * f.pad, in_width = width + 2 - 2 * f.pad;
  const int64_t panels = f.panel > 0 ? (filters + f.panel - 1) / f.panel : 1;
  const Dim batch = images > 0 ? Dim(images) : Dim::symbol("n");
  const std::vector<Dim> shape = {batch, Dim(height), Dim(width), Dim(filters)};
  const auto x = buffer("x", f32, {batch, Dim(in_height), Dim(in_width), Dim(channels)}),
             w = f.panel > 0
                     ? buffer("w", f32, {Dim(panels), Dim(3), Dim(3), Dim(channels), Dim(f.panel)})
                     : buffer("w", f32, {Dim(3), Dim(3), Dim(channels), Dim(filters)}),
             bias = buffer("bias", f32, {Dim(filters)}), residual = buffer("residual", f32, shape),
             total = buffer("total", f32, shape), y = buffer("y", f32, shape);
  using Indices = std::vector<ExprRef>;
  const auto add = [](const ExprRef& a, const ExprRef& b) { return binary(BinaryOp::kAdd, a, b); };
  const auto both = [](const ExprRef& a, const ExprRef& b) { return binary(BinaryOp::kAnd, a, b); };
  const auto inside = [&](const ExprRef& e, int64_t extent) {
    return both(binary(BinaryOp::kLe, index(0), e), binary(BinaryOp::kLt, e, index(extent)));
  };
  const auto products = make<Stage>(*reduce_stage(
      total, Reduction::kSum, {Dim(3), Dim(3), Dim(channels)},
      [&](const Indices& i, const Indices& k) {
        const ExprRef row = add(add(i[1], k[0]), index(-f.pad)),
                      column = add(add(i[2], k[1]), index(-f.pad));
        ExprRef element = load(x, {i[0], row, column, k[2]});
        if (f.relu_first) element = binary(BinaryOp::kMax, element, literal(f32, 0));
        if (f.pad > 0) {
          element =
              select(both(inside(row, in_height), inside(column, in_width)), element, zero(f32));
        }
        const ExprRef weight =
            f.panel > 0 ? load(w, {binary(BinaryOp::kFloorDiv, i[3], index(f.panel)), k[0], k[1],
                                   k[2], binary(BinaryOp::kMod, i[3], index(f.panel))})
                        : load(w, {k[0], k[1], k[2], i[3]});
        return binary(BinaryOp::kMul, element, weight);
      }));
  products->padding_is_skippable = true;
  products->may_use_winograd = true;
  const auto result = map_stage(y, [&](const Indices& i) {
    const ExprRef biased = add(load(total, Array<ExprRef>(i)), load(bias, {i[3]}));
    return binary(BinaryOp::kMax, add(biased, load(residual, Array<ExprRef>(i))), literal(f32, 0));
  });
  return whole_kernel({x, w, bias, residual}, {products, result}, {y}, /*in_bounds=*/true);
}

}  // namespace tenon::loop
