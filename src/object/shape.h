// Shape: an immutable list of int64, the dimensions of a tensor.
//
//   object: header, byte 24 const int64_t* data, 32 size_t size (tvm-ffi's cell), 40 the numbers
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "object/any.h"

namespace tenon {

struct ShapeObj : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::Shape;
  static constexpr int32_t kTypeLast = kTypeIndex;
  const int64_t* data;  // behind the object; only its maker writes there
  size_t size;

  size_t tail_bytes() const { return size * sizeof(int64_t); }
  static Ref<ShapeObj> of(std::span<const int64_t> dims);
  // The same with the dimensions still to be written, to what `room` is set to.
  static Ref<ShapeObj> of_size(size_t size, int64_t** room);
};

class Shape : public Handle {
 public:
  Shape() = default;
  explicit Shape(Ref<Object> r) { ref_ = std::move(r); }
  Shape(std::span<const int64_t> dims) { ref_ = ShapeObj::of(dims); }
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  Shape(const std::vector<int64_t>& dims) : Shape(std::span(dims)) {}

  size_t size() const { return ref_ ? get()->size : 0; }
  bool empty() const { return size() == 0; }
  const int64_t* data() const { return ref_ ? get()->data : nullptr; }
  std::span<const int64_t> dims() const { return {data(), size()}; }
  int64_t operator[](size_t i) const { return data()[i]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size(); }
  bool operator==(const Shape& o) const;

  static Object* empty_value();
  static bool accepts(const AnyView& a) { return a.type_index == TypeIndex::Shape; }
  static std::string type_text() { return "shape"; }

 private:
  const ShapeObj* get() const { return static_cast<const ShapeObj*>(ref_.get()); }
};

std::string to_text(std::span<const int64_t> dims);  // "[2, 48]"
std::string to_text(const Shape& shape);
// The product of the dimensions; nullopt if one is negative or the product overflows. With a zero,
// the product is zero however large the others are. Inline and branch-free, since every allocation
// computes it.
inline std::optional<int64_t> element_count(std::span<const int64_t> dims) {
  int64_t n = 1;
  bool overflow = false, zero = false, negative = false;
  for (int64_t d : dims) {
    overflow |= __builtin_mul_overflow(n, d, &n);
    zero |= d == 0;
    negative |= d < 0;
  }
  if (negative || (overflow && !zero)) [[unlikely]]
    return std::nullopt;
  return zero ? 0 : n;
}
// The bytes of a compact tensor; nullopt if a dimension is negative or the size overflows.
inline std::optional<int64_t> byte_count(std::span<const int64_t> dims, DataType dtype) {
  auto n = element_count(dims);
  int64_t bytes;
  if (!n || __builtin_mul_overflow(*n, dtype.bytes(), &bytes)) [[unlikely]]
    return std::nullopt;
  return bytes;
}

}  // namespace tenon
