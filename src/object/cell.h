// Cells: the values of algebraic data types. A cell knows its constructor's tag, not its name,
// which is its type's to tell.
//
//   object: header, byte 24 int64 tag, 32 int64 size, 40 the fields
#pragma once

#include <span>

#include "object/any.h"

namespace tenon {

// A constructor's tag (its place among the constructors of its type) and its fields. A cell doesn't
// change once it is made, so that none can reach itself.
struct CellObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Cell;
  static constexpr int32_t kTypeLast = kTypeIndex;
  int64_t tag;
  int64_t size;

  Any* begin() { return reinterpret_cast<Any*>(this + 1); }
  const Any* begin() const { return reinterpret_cast<const Any*>(this + 1); }
  const Any* end() const { return begin() + size; }
  ~CellObj();
  size_t tail_bytes() const { return static_cast<size_t>(size) * sizeof(Any); }

  // The fields are None: whoever makes the cell sets them before anybody else sees it.
  static Ref<CellObj> of(int64_t tag, size_t size);
  static Ref<CellObj> of(int64_t tag, std::span<const Any> fields);
};
static_assert(sizeof(CellObj) == 40);

}  // namespace tenon
