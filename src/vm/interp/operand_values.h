// How the slow path's instructions read their operands, checking each before use. `what` is the
// value's purpose, for errors.
#pragma once

#include <span>

#include "object/shape.h"
#include "object/tensor.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/interp/dispatch.h"

namespace tenon::vm {

inline int64_t integer(const ValueRef& ref, const AnyView* base, const char* what) {
  const AnyView& v = value_of(ref, base);
  if (!is_integer(v)) [[unlikely]] {
    throw Error(ErrorKind::Runtime, cat("an integer is required for ", what))
        .found(type_name(v.type_index));
  }
  return v.v.i;
}

inline const Tensor& tensor(const AnyView& v, const char* what) {
  if (v.type_index != TypeIndex::Tensor) [[unlikely]] {
    throw Error(ErrorKind::Runtime, cat("a tensor is required for ", what))
        .found(type_name(v.type_index));
  }
  return payload_as<Tensor>(v);
}

inline std::span<const int64_t> shape_value(const AnyView& v, const char* what) {
  if (v.type_index != TypeIndex::Shape) {
    throw Error(ErrorKind::Runtime, cat("a shape is required for ", what))
        .found(type_name(v.type_index));
  }
  return payload_as<Shape>(v).dims();
}

// Integers as the dimensions of a tensor or shape.
class Dims {
 public:
  Dims(std::span<const ValueRef> refs, const AnyView* base, const char* what)
      : count_(refs.size()) {
    // The table bounds these lists and the verifier enforces that; this check is for memory safety.
    TENON_ASSERT(count_ <= std::size(dims_), count_, " dimensions of ", what);
    for (size_t i = 0; i < count_; ++i) {
      dims_[i] = integer(refs[i], base, what);
      if (dims_[i] < 0) [[unlikely]] {
        throw Error(ErrorKind::Runtime, cat("a dimension of ", what, " is negative"))
            .found(cat(dims_[i], " for axis ", i))
            .expected("an integer that is not negative");
      }
    }
  }
  std::span<const int64_t> span() const { return {dims_, count_}; }

 private:
  int64_t dims_[tenon::kMaxRank];
  size_t count_;
};

}  // namespace tenon::vm
