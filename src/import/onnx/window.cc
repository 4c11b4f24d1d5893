#include "import/onnx/window.h"

#include <algorithm>
#include <iterator>

namespace tenon::onnx {

namespace {

Ints positive(NodeContext& cx, const char* name, size_t rank) {
  Ints out = cx.attr_ints(name);
  if (out.empty()) out.assign(rank, 1);
  if (out.size() != rank)
    cx.invalid(cat(name, " has ", out.size(), " entries"),
               cat(rank, ", one for each spatial axis"));
  for (int64_t v : out) {
    if (v <= 0 || v > INT32_MAX) cx.invalid(cat(name, " holds ", v), "positive numbers of 32 bits");
  }
  return out;
}

}  // namespace

graph::Attrs Window::attrs() const {
  return graph::attrs({{"strides", graph::attr_ints(strides)},
                       {"dilations", graph::attr_ints(dilations)},
                       {"pads", graph::attr_dims(pads)}});
}

Window read_window(NodeContext& cx, const Dims& kernel, const Dims& spatial) {
  Window w;
  size_t rank = kernel.size();
  w.kernel = kernel;
  if (rank != spatial.size()) {
    cx.invalid(cat("a kernel of ", rank, " axes"),
               cat(spatial.size(), ", one for each spatial axis"));
  }
  for (const Dim& size : kernel) {
    const std::optional<int64_t> k = size.as_const();
    if (k && (*k <= 0 || *k > INT32_MAX))
      cx.invalid(cat("a kernel of size ", *k), "positive sizes of 32 bits");
  }
  w.strides = positive(cx, "strides", rank);
  w.dilations = positive(cx, "dilations", rank);
  std::string how = cx.attr_string("auto_pad", "NOTSET");
  Ints pads = cx.attr_ints("pads");
  if (how == "SAME_UPPER" || how == "SAME_LOWER") {
    w.pads.assign(2 * rank, Dim(0));
    for (size_t i = 0; i < rank; ++i) {
      Dim out = ceildiv(spatial[i], w.strides[i]);
      Dim reach = (out - 1) * w.strides[i] + (kernel[i] - 1) * w.dilations[i] + 1;
      Dim total = max(reach - spatial[i], 0);
      Dim small = floordiv(total, 2);
      w.pads[i] = how == "SAME_UPPER" ? small : total - small;
      w.pads[rank + i] = how == "SAME_UPPER" ? total - small : small;
    }
    return w;
  }
  if (how == "VALID" || pads.empty()) pads.assign(2 * rank, 0);
  if (how != "VALID" && how != "NOTSET" && !how.empty())
    cx.invalid(cat("auto_pad=", how), "NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  if (pads.size() != 2 * rank)
    cx.invalid(cat("pads has ", pads.size(), " entries"),
               cat(2 * rank, ", two for each spatial axis"));
  for (int64_t p : pads) {
    if (p < INT32_MIN || p > INT32_MAX) cx.invalid(cat("pads holds ", p), "numbers of 32 bits");
    w.pads.push_back(p);
  }
  return w;
}

Dims pool_kernel(NodeContext& cx) {
  const Ints kernel = cx.attr_ints("kernel_shape");
  return Dims(kernel.begin(), kernel.end());
}

Dims conv_kernel(NodeContext& cx, const Operand& w) {
  const Dims dims = cx.dims(w);
  const Dims kernel(dims.begin() + std::min<std::ptrdiff_t>(2, std::ssize(dims)), dims.end());
  if (!cx.has_attr("kernel_shape")) return kernel;
  const Ints stated = cx.attr_ints("kernel_shape");
  auto fits = [&] {
    for (size_t i = 0; i < kernel.size(); ++i) {
      if (kernel[i].as_const().value_or(stated[i]) != stated[i]) return false;
    }
    return true;
  };
  if (stated.size() != kernel.size() || !fits()) {
    auto text = [](const auto& sizes) {
      std::vector<std::string> parts;
      for (const auto& size : sizes) parts.push_back(cat(size));
      return cat("[", join(parts, ", "), "]");
    };
    cx.invalid(cat("kernel_shape=", text(stated)), cat(text(kernel), ", as the weight has it"));
  }
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (!kernel[i].as_const())
      cx.b.check(graph::CheckKind::kEqual, kernel[i], stated[i],
                 cat("size of the weight on spatial axis ", i, " and kernel_shape"));
  }
  return Dims(stated.begin(), stated.end());
}

Ints constant_sizes(NodeContext& cx, const Operand& operand, size_t first, const char* what) {
  Ints out;
  Dims dims = cx.dims(operand);
  for (size_t i = first; i < dims.size(); ++i) {
    auto c = dims[i].as_const();
    if (!c) cx.unsupported(cat(what, " of a size known only at run time not implemented"));
    out.push_back(*c);
  }
  return out;
}

}  // namespace tenon::onnx
