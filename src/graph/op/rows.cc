#include "graph/op/rows.h"

namespace tenon::graph {

Rows::Rows(const std::vector<Dim>& dims, const std::vector<int64_t>& axes, bool keepdims)
    : is_reduced_(dims.size(), false), keepdims_(keepdims) {
  for (int64_t a : axes) is_reduced_[static_cast<size_t>(a)] = true;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (is_reduced_[i]) {
      extents_.push_back(dims[i]);
      if (keepdims) reduced_dims_.push_back(1);
    } else {
      reduced_dims_.push_back(dims[i]);
    }
  }
}

Indices Rows::element(const Indices& row, const Indices& place) const {
  Indices out;
  size_t r = 0, p = 0;
  for (bool reduced : is_reduced_) {
    out.push_back(reduced ? place[p++] : row[r]);
    if (!reduced || keepdims_) ++r;
  }
  return out;
}

Indices Rows::row(const Indices& element) const {
  Indices out;
  for (size_t i = 0; i < element.size(); ++i) {
    if (!is_reduced_[i]) {
      out.push_back(element[i]);
    } else if (keepdims_) {
      out.push_back(index(0));
    }
  }
  return out;
}

StageRef Rows::reduce(const BufferRef& out, loop::Reduction reduction,
                      const std::function<Scalar(const Indices& element)>& body) const {
  return loop::reduce_stage(
      out, reduction, extents_,
      [&](const Indices& row, const Indices& place) { return body(element(row, place)); });
}

}  // namespace tenon::graph
