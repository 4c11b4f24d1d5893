// String and Bytes: immutable text and bytes. Up to 7 bytes are stored inline (as in an Any), more
// in a reference-counted object. Both are NUL-terminated; the size excludes the NUL.
//
//   object: header, byte 24 const char* data, 32 size_t size (tvm-ffi's cell), 40 the bytes
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "object/any.h"

namespace tenon {

struct StringCell {
  const char* data;
  size_t size;
};

// The bytes that text of that size has, with its NUL: of long text up to a quarter more, so that
// what is appended to step by step (append_text) is copied a few times only.
constexpr size_t text_room(size_t size) {
  const size_t step = size < 64 ? 1 : std::bit_floor(size) / 4;
  return size / step * step + step;
}

struct StringObj : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::Str;
  static constexpr int32_t kTypeLast = kTypeIndex;
  StringCell cell;
  size_t tail_bytes() const { return text_room(cell.size); }
};
struct BytesObj : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::Bytes;
  static constexpr int32_t kTypeLast = kTypeIndex;
  StringCell cell;
  size_t tail_bytes() const { return text_room(cell.size); }
};

namespace detail {
// `text`, then `more`.
AnyView new_text(std::string_view text, std::string_view more, int32_t small_index,
                 int32_t object_index);
inline std::string_view text_of(const AnyView& a) {
  if (a.is_object()) {
    const StringCell& cell = static_cast<const StringObj*>(a.v.object)->cell;
    return {cell.data, cell.size};
  }
  return {a.v.bytes, a.small_length};
}
}  // namespace detail

class String {
 public:
  String() { static_cast<AnyView&>(value_).type_index = TypeIndex::SmallStr; }
  String(std::string_view text) : String(text, {}) {}
  // Both, one after the other. Counts for the thread's ObjectBudget as long as it lives.
  String(std::string_view text, std::string_view more)
      : value_(Any::adopt(detail::new_text(text, more, TypeIndex::SmallStr, TypeIndex::Str))) {}
  String(const char* text) : String(std::string_view(text)) {}
  String(const std::string& text) : String(std::string_view(text)) {}
  String(const String&) = default;
  String& operator=(const String&) = default;
  String(String&& o) noexcept : String() { value_.swap(o.value_); }
  String& operator=(String&& o) noexcept {
    value_.swap(o.value_);
    return *this;
  }

  std::string_view view() const { return detail::text_of(value_); }
  operator std::string_view() const { return view(); }
  std::string str() const { return std::string(view()); }
  const char* c_str() const { return view().data(); }  // ends in a zero
  size_t size() const { return view().size(); }
  bool empty() const { return size() == 0; }
  bool operator==(const String& o) const { return view() == o.view(); }
  bool operator==(std::string_view o) const { return view() == o; }
  bool operator==(const char* o) const { return view() == o; }
  bool operator==(const std::string& o) const { return view() == o; }
  auto operator<=>(const String& o) const { return view() <=> o.view(); }

  const Any& value() const { return value_; }
  static bool accepts(const AnyView& a) {
    return a.type_index == TypeIndex::SmallStr || a.type_index == TypeIndex::Str;
  }

 private:
  Any value_;  // always a string
};
// The string and then `more`: the same object if nothing else references it and it has the room.
Any append_text(Any string, std::string_view more);
inline std::string_view to_text(const String& s) {
  return s.view();
}

class Bytes {
 public:
  Bytes() { static_cast<AnyView&>(value_).type_index = TypeIndex::SmallBytes; }
  explicit Bytes(std::string_view bytes)
      : value_(Any::adopt(detail::new_text(bytes, {}, TypeIndex::SmallBytes, TypeIndex::Bytes))) {}
  Bytes(const Bytes&) = default;
  Bytes& operator=(const Bytes&) = default;
  Bytes(Bytes&& o) noexcept : Bytes() { value_.swap(o.value_); }
  Bytes& operator=(Bytes&& o) noexcept {
    value_.swap(o.value_);
    return *this;
  }

  std::string_view view() const { return detail::text_of(value_); }
  size_t size() const { return view().size(); }
  bool operator==(const Bytes& o) const { return view() == o.view(); }

  const Any& value() const { return value_; }
  static bool accepts(const AnyView& a) {
    return a.type_index == TypeIndex::SmallBytes || a.type_index == TypeIndex::Bytes;
  }

 private:
  Any value_;
};

static_assert(sizeof(String) == sizeof(Any) && sizeof(Bytes) == sizeof(Any));

template <>
struct AnyTraits<String> {
  static void put(AnyView& a, const String& s) { a = s.value(); }
  static bool is(const AnyView& a) {
    return String::accepts(a) || a.type_index == TypeIndex::RawStr;
  }
  static String get(const AnyView& a) {
    if (a.type_index == TypeIndex::RawStr) return String(a.v.c_str);
    return payload_as<String>(a);
  }
  static std::string name() { return "string"; }
};
template <>
struct AnyTraits<Bytes> {
  static void put(AnyView& a, const Bytes& b) { a = b.value(); }
  static bool is(const AnyView& a) { return Bytes::accepts(a); }
  static Bytes get(const AnyView& a) { return payload_as<Bytes>(a); }
  static std::string name() { return "bytes"; }
};
// Only for Any: a view would borrow a string that nobody owns.
template <>
struct AnyTraits<std::string> {
  static void take(AnyView& a, const std::string& s) {
    a = detail::new_text(s, {}, TypeIndex::SmallStr, TypeIndex::Str);
  }
  static bool is(const AnyView& a) { return AnyTraits<String>::is(a); }
  static std::string get(const AnyView& a) { return AnyTraits<String>::get(a).str(); }
  static std::string name() { return "string"; }
};
template <>
struct AnyTraits<std::string_view> {
  static void take(AnyView& a, std::string_view s) {
    a = detail::new_text(s, {}, TypeIndex::SmallStr, TypeIndex::Str);
  }
  static bool is(const AnyView& a) { return String::accepts(a); }
  static std::string_view get(const AnyView& a) { return detail::text_of(a); }
  static std::string name() { return "string"; }
};
template <>
struct AnyTraits<const char*> {
  static void put(AnyView& a, const char* s) {  // a view borrows it; an Any copies it
    a.type_index = TypeIndex::RawStr;
    a.v.c_str = s;
  }
  static void take(AnyView& a, const char* s) { AnyTraits<std::string_view>::take(a, s); }
};
template <size_t N>
struct AnyTraits<char[N]> : AnyTraits<const char*> {};

}  // namespace tenon

template <>
struct std::hash<tenon::String> {
  size_t operator()(const tenon::String& s) const {
    return std::hash<std::string_view>()(s.view());
  }
};
