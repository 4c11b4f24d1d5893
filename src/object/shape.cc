#include "object/shape.h"

#include <algorithm>
#include <cstring>

namespace tenon {

Ref<ShapeObj> ShapeObj::of(std::span<const int64_t> dims) {
  auto made = make_with_tail<ShapeObj>(dims.size_bytes(), nullptr, dims.size());
  auto* data = reinterpret_cast<int64_t*>(made.get() + 1);
  std::copy(dims.begin(), dims.end(), data);
  made->data = data;
  return made;
}

bool Shape::operator==(const Shape& o) const {
  return std::equal(begin(), end(), o.begin(), o.end());
}

Object* Shape::empty_value() {
  static ShapeObj* const object = ShapeObj::of({}).leak();  // lives for ever
  return object;
}

std::string to_text(std::span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ", ";
    append_text(out, static_cast<long long>(dims[i]));
  }
  return out + "]";
}
std::string to_text(const Shape& shape) {
  return to_text(shape.dims());
}

std::optional<int64_t> element_count(std::span<const int64_t> dims) {
  // A zero makes the product zero however large the others are, so it is looked for first.
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : dims) {
    if (d < 0) return std::nullopt;
    zero = zero || d == 0;
  }
  if (zero) return 0;
  for (int64_t d : dims) {
    if (__builtin_mul_overflow(n, d, &n)) return std::nullopt;
  }
  return n;
}

std::optional<int64_t> byte_count(std::span<const int64_t> dims, DataType dtype) {
  auto n = element_count(dims);
  int64_t bytes;
  if (!n || __builtin_mul_overflow(*n, dtype.bytes(), &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace tenon
