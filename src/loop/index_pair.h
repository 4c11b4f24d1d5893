// Two indices that belong together, such as an input and the output that takes its place.
#pragma once

#include <utility>

#include "object/array.h"

namespace tenon::loop {

// An array of two numbers, which derived types name. Equality, text and JSON are an array's.
class IndexPair : public Array<int64_t> {
 public:
  IndexPair(int64_t first, int64_t second) : Array<int64_t>{first, second} {}
  explicit IndexPair(Ref<Object> r) : Array<int64_t>(std::move(r)) {}
  bool operator==(const IndexPair& o) const { return (*this)[0] == o[0] && (*this)[1] == o[1]; }

  static bool accepts(const AnyView& a) {
    return Array<int64_t>::accepts(a) && a.as_object<const ArrayObj>()->size == 2;
  }
  static std::string type_text() { return "pair of int64"; }
};

}  // namespace tenon::loop
