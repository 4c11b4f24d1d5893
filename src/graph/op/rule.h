// Helpers of type rules: relations between operands, propagation of element values, and random
// operands for samples. Errors name the operator and the operand.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/ir/op.h"

namespace tenon::graph {

// ---- dtypes ----

// Fails unless operand i has the dtype of operand j.
void require_same_dtype(const InferContext& cx, size_t i, size_t j);
void require_rank(const InferContext& cx, size_t i, int64_t rank);
// Fails unless operand i has one element, whatever its rank.
void require_one_element(const InferContext& cx, size_t i);

// ---- attributes ----

// A string attribute; fails unless it is one of the names.
std::string one_of(const InferContext& cx, const char* attr, const std::vector<std::string>& names);

// ---- shapes ----

std::vector<Dim> dims_of(const TensorType& type);
// The axes as numbers >= 0, sorted; fails if one is out of range or given twice.
std::vector<int64_t> normalized_axes(const InferContext& cx, const std::vector<int64_t>& axes,
                                     int64_t rank);
// A list attribute with one entry per axis; an empty list means `fallback` for every axis.
std::vector<int64_t> per_axis(const InferContext& cx, const char* name, int64_t count,
                              int64_t fallback);

// ---- values ----

using Values = std::optional<std::vector<Dim>>;
// The elements of operand i, of rank 0 or 1, if its type carries them.
Values values_of(const InferContext& cx, size_t i);
// The number of elements of a result, if its type may carry them; none if its size is negative,
// which is refused later.
std::optional<int64_t> carried_count(const TensorType& type);
// The values if the dtype is an integer type that provably holds them all; for i32, unless one
// provably doesn't fit, since inference then inserts a check. Nothing if one is a size times more
// than 2^31, which may wrap.
Values fitting(DataType dtype, std::vector<Dim> values);

// ---- samples ----

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high);  // inclusive
  bool coin() { return between(0, 1) == 1; }
  DataType dtype(DtypeSet set);
  std::vector<int64_t> shape(int64_t min_rank, int64_t max_rank);  // sizes 1 to 4, rarely 0
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(between(0, static_cast<int64_t>(from.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

TypeRef sample_tensor(DataType dtype, const std::vector<int64_t>& shape);
std::vector<Dim> to_dims(const std::vector<int64_t>& sizes);

}  // namespace tenon::graph
