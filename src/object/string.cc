#include "object/string.h"

#include <cstdint>
#include <cstring>
#include <new>

namespace tenon::detail {

namespace {
template <class T>
AnyView new_object(std::string_view text, std::string_view more) {
  const size_t size = text.size() + more.size();
  if (size >= PTRDIFF_MAX) throw std::bad_alloc();  // adding the NUL must not overflow
  auto made = make_with_tail<T>(size + 1, StringCell{nullptr, size});
  char* bytes = reinterpret_cast<char*>(made.get() + 1);
  text.copy(bytes, text.size());
  more.copy(bytes + text.size(), more.size());
  bytes[size] = 0;
  made->cell.data = bytes;
  return AnyView::of_object(made.leak());
}
}  // namespace

AnyView new_text(std::string_view text, std::string_view more, int32_t small_index,
                 int32_t object_index) {
  if (text.size() + more.size() > 7) {
    return object_index == TypeIndex::Str ? new_object<StringObj>(text, more)
                                          : new_object<BytesObj>(text, more);
  }
  AnyView a;
  a.type_index = small_index;
  a.small_length = static_cast<uint32_t>(text.size() + more.size());
  text.copy(a.v.bytes, text.size());
  more.copy(a.v.bytes + text.size(), more.size());
  return a;
}

}  // namespace tenon::detail
