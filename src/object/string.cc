#include "object/string.h"

#include <cstdint>
#include <cstring>
#include <new>

namespace tenon::detail {

namespace {
template <class T>
AnyView new_object(std::string_view text) {
  if (text.size() >= PTRDIFF_MAX) throw std::bad_alloc();  // adding the NUL must not overflow
  auto made = make_with_tail<T>(text.size() + 1, StringCell{nullptr, text.size()});
  char* bytes = reinterpret_cast<char*>(made.get() + 1);
  std::memcpy(bytes, text.data(), text.size());
  bytes[text.size()] = 0;
  made->cell.data = bytes;
  return AnyView::of_object(made.leak());
}
}  // namespace

AnyView new_text(std::string_view text, int32_t small_index, int32_t object_index) {
  if (text.size() > 7) {
    return object_index == TypeIndex::Str ? new_object<StringObj>(text)
                                          : new_object<BytesObj>(text);
  }
  AnyView a;
  a.type_index = small_index;
  a.small_length = static_cast<uint32_t>(text.size());
  if (!text.empty()) std::memcpy(a.v.bytes, text.data(), text.size());
  return a;
}

}  // namespace tenon::detail
