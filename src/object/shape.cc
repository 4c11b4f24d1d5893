#include "object/shape.h"

#include <algorithm>
#include <cstdint>
#include <new>

namespace tenon {

Ref<ShapeObj> ShapeObj::of_size(size_t size, int64_t** room) {
  if (size > PTRDIFF_MAX / sizeof(int64_t)) throw std::bad_alloc();
  auto made = make_with_tail<ShapeObj>(size * sizeof(int64_t), nullptr, size);
  *room = reinterpret_cast<int64_t*>(made.get() + 1);
  made->data = *room;
  return made;
}

Ref<ShapeObj> ShapeObj::of(std::span<const int64_t> dims) {
  int64_t* room;
  auto made = of_size(dims.size(), &room);
  std::copy(dims.begin(), dims.end(), room);
  return made;
}

bool Shape::operator==(const Shape& o) const {
  return std::equal(begin(), end(), o.begin(), o.end());
}

Object* Shape::empty_value() {
  static ShapeObj* const object = ShapeObj::of({}).leak();  // never destroyed
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

}  // namespace tenon
