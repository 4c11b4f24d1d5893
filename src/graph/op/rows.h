// Reductions over some axes of a buffer, for reduction operators and normalisations.
//
//   x[a, b, c] reduced over {1}:  out[a, c], or out[a, 1, c] with the axes kept
#pragma once

#include "graph/op/index.h"

namespace tenon::graph {

class Rows {
 public:
  // Axes are sorted and within the rank.
  Rows(const std::vector<Dim>& dims, const std::vector<int64_t>& axes, bool keepdims);

  const std::vector<Dim>& reduced_dims() const { return reduced_dims_; }  // of a result
  const std::vector<Dim>& extents() const { return extents_; }            // of the axes reduced
  // The number of elements in a row.
  Dim count() const { return product(extents_); }

  // The index of an element, from its row's index and its index within the row.
  Indices element(const Indices& row, const Indices& place) const;
  // The index of the row of an element.
  Indices row(const Indices& element) const;

  BufferRef buffer(std::string_view name, DataType dtype) const {
    return loop::buffer(name, dtype, reduced_dims_);
  }
  // out[row] = the reduction of body(element).
  StageRef reduce(const BufferRef& out, loop::Reduction reduction,
                  const std::function<Scalar(const Indices& element)>& body) const;

 private:
  std::vector<bool> is_reduced_;
  bool keepdims_;
  std::vector<Dim> reduced_dims_, extents_;
};

}  // namespace tenon::graph
