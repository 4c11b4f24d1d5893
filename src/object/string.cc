#include "object/string.h"

#include <cstdint>
#include <cstring>
#include <new>

#include "support/bulk.h"

namespace tenon {
namespace detail {
namespace {
template <class T>
AnyView new_object(std::string_view text, std::string_view more) {
  const size_t size = text.size() + more.size();
  if (size >= PTRDIFF_MAX) throw std::bad_alloc();  // adding the NUL must not overflow
  auto made = make_with_tail<T>(text_room(size), StringCell{nullptr, size});
  char* bytes = reinterpret_cast<char*>(made.get() + 1);
  copy_memory(bytes, text.data(), text.size());
  copy_memory(bytes + text.size(), more.data(), more.size());
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

}  // namespace detail

Any append_text(Any string, std::string_view more) {
  const std::string_view text = detail::text_of(string);
  if (string.type_index == TypeIndex::Str) {
    auto* object = static_cast<StringObj*>(string.v.object);
    // Another library's strings have no more room than their text.
    if (object->deleter == &delete_object<StringObj> && object->unique() &&
        more.size() < text_room(text.size()) - text.size()) {
      char* end = reinterpret_cast<char*>(object + 1) + text.size();
      copy_memory(end, more.data(), more.size());
      end[more.size()] = 0;
      object->cell.size += more.size();
      return string;
    }
  }
  return String(text, more).value();
}

}  // namespace tenon
