#include "object/cell.h"

#include <algorithm>
#include <cstdint>
#include <new>

namespace tenon {

CellObj::~CellObj() {
  for (int64_t i = 0; i < size; ++i) begin()[i].~Any();
}

Ref<CellObj> CellObj::of(int64_t tag, size_t size) {
  if (size > PTRDIFF_MAX / sizeof(Any)) throw std::bad_alloc();
  auto cell = make_with_tail<CellObj>(size * sizeof(Any), tag, static_cast<int64_t>(size));
  for (size_t i = 0; i < size; ++i) new (cell->begin() + i) Any();
  return cell;
}

Ref<CellObj> CellObj::of(int64_t tag, std::span<const Any> fields) {
  auto cell = of(tag, fields.size());
  std::ranges::copy(fields, cell->begin());
  return cell;
}

}  // namespace tenon
