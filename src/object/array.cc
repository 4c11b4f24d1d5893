#include "object/array.h"

#include <algorithm>

#include "support/bulk.h"

namespace tenon {

ArrayObj::~ArrayObj() {
  for (int64_t i = 0; i < size; ++i) begin()[i].~Any();
}

Ref<ArrayObj> ArrayObj::with_capacity(int64_t capacity) {
  if (capacity < 0 || capacity > (int64_t{1} << 40)) {
    throw Error(ErrorKind::Runtime, cat("an array of ", capacity, " elements is too long"));
  }
  return make_with_tail<ArrayObj>(static_cast<size_t>(capacity) * sizeof(Any), int64_t{0},
                                  capacity);
}

ArrayObj* ArrayObj::empty() {
  static ArrayObj* const object = with_capacity(0).leak();  // never destroyed
  return object;
}

Object* ArrayBase::empty_object() {
  return ArrayObj::empty();
}

ArrayObj* ArrayObj::own(Ref<Object>* array, int64_t extra) {
  auto* now = static_cast<ArrayObj*>(array->get());
  int64_t n = now ? now->size : 0;
  bool mine = now && now->unique();
  if (mine && n + extra <= now->capacity) return now;
  int64_t room = n + extra;
  if (extra > 0 && mine) room = std::max<int64_t>(room, n * 2);
  if (extra == 1) room = std::max<int64_t>(room, 4);
  auto fresh = with_capacity(room);
  if (mine) {  // the elements move: nobody else sees the old object
    copy_memory(fresh->begin(), now->begin(), static_cast<size_t>(n) * sizeof(Any));
    now->size = 0;
    fresh->size = n;
  } else {
    Ticker ticker;
    for (int64_t i = 0; i < n; ++i) {
      ticker.tick();
      new (fresh->begin() + i) Any(now->begin()[i]);
      fresh->size = i + 1;
    }
  }
  ArrayObj* raw = fresh.get();
  *array = std::move(fresh);
  return raw;
}

void ArrayBase::push_any(Any value) {
  ArrayObj* a = own(1);
  new (a->begin() + a->size) Any(std::move(value));
  ++a->size;
}

void ArrayBase::set_any(size_t i, Any value) {
  check_index(i);
  own(0)->begin()[i] = std::move(value);
}

void ArrayBase::insert_any(size_t i, Any value) {
  if (i != size()) check_index(i);
  push_any(std::move(value));
  ArrayObj* a = own(0);
  std::rotate(a->begin() + i, a->begin() + a->size - 1, a->begin() + a->size);
}

void ArrayBase::erase_at(size_t i) {
  check_index(i);
  ArrayObj* a = own(0);
  std::rotate(a->begin() + i, a->begin() + i + 1, a->begin() + a->size);
  resize_down(size() - 1);
}

void ArrayBase::resize_down(size_t n) {
  TENON_ASSERT(n <= size(), "an array can't shrink from ", size(), " to ", n);
  ArrayObj* a = own(0);
  while (static_cast<size_t>(a->size) > n) a->begin()[--a->size].~Any();
}

void ArrayBase::check_index(size_t i) const {
  TENON_ASSERT(i < size(), "index ", i, " of an array of ", size());
}

}  // namespace tenon
