// Conversions between C++ types and values. Included by tenon/tenon.h.
#pragma once

#include <limits>
#include <map>
#include <tuple>

#include "tenon/cpp/error.h"

namespace tenon {
inline namespace v1 {
namespace detail {

/// The name that errors use for T.
template <class T>
std::string type_name() {
  if constexpr (std::same_as<T, Value>) {
    return "any value";
  } else if constexpr (std::derived_from<T, Value>) {
    return T::kTypeName;
  } else {
    return Conversion<T>::name();
  }
}

/// `value` as a T, or nothing if it is of another type.
template <class T, class V>
std::optional<T> read(V&& value) {
  static_assert(!std::same_as<T, std::string_view> || std::is_lvalue_reference_v<V>,
                "the text would end with the value: use std::string");
  if constexpr (std::same_as<T, Value>) {
    return std::forward<V>(value);
  } else if constexpr (std::derived_from<T, Value>) {
    if (!T::accepts(value)) return std::nullopt;
    return T::unchecked(std::forward<V>(value));
  } else {
    return Conversion<T>::read(value);
  }
}

template <class T>
[[noreturn]] void fail_conversion(const Value& value, const std::string& what) {
  // Numbers are shown too, since they may be out of range.
  const bool number = value.type_index() == TENON_INT || value.type_index() == TENON_FLOAT;
  throw UsageError(what + " has another type",
                   {{"found", value.type_key() + (number ? " " + value.repr() : "")},
                    {"expected", type_name<T>()}});
}

/// The tags of the prelude's constructors.
inline constexpr int64_t kNil = 0, kCons = 1, kNone = 0, kSome = 1;

inline Value plain_value(int32_t type_index, int64_t number) noexcept {
  tenon_any any = TENON_NONE_VALUE;
  any.type_index = type_index;
  any.v.i = number;
  return Value::adopt(any);
}

}  // namespace detail

template <class T>
bool Value::is() const {
  return get_if<T>().has_value();
}
template <class T>
std::optional<T> Value::get_if() const {
  return detail::read<T>(*this);
}
template <class T>
T Value::as() const& {
  std::optional<T> out = detail::read<T>(*this);
  if (!out) detail::fail_conversion<T>(*this, "a value");
  return *std::move(out);
}
template <class T>
T Value::as() && {
  std::optional<T> out = detail::read<T>(std::move(*this));
  if (!out) detail::fail_conversion<T>(*this, "a value");
  return *std::move(out);
}

template <>
struct Conversion<bool> {
  static std::string name() { return "bool"; }
  static Value make(bool b) noexcept { return detail::plain_value(TENON_BOOL, b); }
  static std::optional<bool> read(const Value& v) noexcept {
    if (v.type_index() != TENON_BOOL) return std::nullopt;
    return v.raw()->v.i != 0;
  }
};

/// Integers of all types are 64-bit signed ones, a u64 of 2^63 or more the negative one with its
/// bits: a uint64_t is made and read with all its bits. For other types, an integer that doesn't
/// fit is a UsageError.
template <std::integral T>
struct Conversion<T> {
  static_assert(sizeof(T) <= sizeof(int64_t));
  static constexpr bool kHasAllBits = sizeof(T) == sizeof(int64_t);

  static std::string name() {
    if constexpr (kHasAllBits) return "int";
    return "int from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
           std::to_string(std::numeric_limits<T>::max());
  }
  static Value make(T number) noexcept {
    return detail::plain_value(TENON_INT, static_cast<int64_t>(number));
  }
  static std::optional<T> read(const Value& v) noexcept {
    if (v.type_index() != TENON_INT) return std::nullopt;
    if (!kHasAllBits && !std::in_range<T>(v.raw()->v.i)) return std::nullopt;
    return static_cast<T>(v.raw()->v.i);
  }
};

template <std::floating_point T>
struct Conversion<T> {
  static std::string name() { return "float"; }
  static Value make(T number) noexcept {
    tenon_any any = TENON_NONE_VALUE;
    any.type_index = TENON_FLOAT;
    any.v.f = static_cast<double>(number);
    return Value::adopt(any);
  }
  static std::optional<T> read(const Value& v) noexcept {
    if (v.type_index() == TENON_FLOAT) return static_cast<T>(v.raw()->v.f);
    if (v.type_index() == TENON_INT) return static_cast<T>(v.raw()->v.i);
    return std::nullopt;
  }
};

/// Borrows from the value, which must stay in place while the text is used.
template <>
struct Conversion<std::string_view> {
  static std::string name() { return "string"; }
  static Value make(std::string_view text) { return detail::value_of(text); }
  static std::optional<std::string_view> read(const Value& v) noexcept {
    if (v.type_index() != TENON_STRING && v.type_index() != TENON_SMALL_STRING) return std::nullopt;
    const tenon_text text = tenon_string_view(v.raw());
    return std::string_view(text.data, text.size);
  }
};
template <>
struct Conversion<std::string> : Conversion<std::string_view> {
  static std::optional<std::string> read(const Value& v) {
    const auto text = Conversion<std::string_view>::read(v);
    return text ? std::optional<std::string>(*text) : std::nullopt;
  }
};
template <>
struct Conversion<const char*> {
  /// Throws UsageError for a null pointer.
  static Value make(const char* text) {
    if (!text) {
      throw UsageError("a null pointer is not a string",
                       {{"help", "pass nullptr or Value() for None"}});
    }
    return detail::value_of(text);
  }
};
template <>
struct Conversion<char*> : Conversion<const char*> {};

template <>
struct Conversion<DLDataType> {
  static std::string name() { return "dtype"; }
  static Value make(DLDataType dtype) noexcept {
    tenon_any any = TENON_NONE_VALUE;
    any.type_index = TENON_DTYPE;
    any.v.dtype = dtype;
    return Value::adopt(any);
  }
  static std::optional<DLDataType> read(const Value& v) noexcept {
    if (v.type_index() != TENON_DTYPE) return std::nullopt;
    return v.raw()->v.dtype;
  }
};
template <>
struct Conversion<DLDevice> {
  static std::string name() { return "device"; }
  static Value make(DLDevice device) noexcept {
    tenon_any any = TENON_NONE_VALUE;
    any.type_index = TENON_DEVICE;
    any.v.device = device;
    return Value::adopt(any);
  }
  static std::optional<DLDevice> read(const Value& v) noexcept {
    if (v.type_index() != TENON_DEVICE) return std::nullopt;
    return v.raw()->v.device;
  }
};

/// None or a T; a value of type option[T] is read, too, unless T is Value.
template <class T>
struct Conversion<std::optional<T>> {
  static std::string name() { return detail::type_name<T>() + " or None"; }
  static Value make(const std::optional<T>& given) { return given ? Value(*given) : Value(); }
  static std::optional<std::optional<T>> read(const Value& v) {
    if (v.is_none()) return std::optional<T>();
    if constexpr (!std::same_as<T, Value>) {
      int64_t tag = -1;
      size_t size = 0;
      const tenon_any* fields = tenon_cell_view(v.raw(), &tag, &size);
      if (tag == detail::kNone && size == 0) return std::optional<T>();
      if (tag == detail::kSome && size == 1) {
        std::optional<T> out = detail::read<T>(reinterpret_cast<const Value&>(*fields));
        return out ? std::optional<std::optional<T>>(std::move(out)) : std::nullopt;
      }
    }
    std::optional<T> out = detail::read<T>(v);
    return out ? std::optional<std::optional<T>>(std::move(out)) : std::nullopt;
  }
};

/// An array whose elements are all Ts; a value of type list[T] is read, too.
template <class T>
struct Conversion<std::vector<T>> {
  static std::string name() { return "array of " + detail::type_name<T>(); }
  static Value make(const std::vector<T>& items) {
    std::vector<Value> values;
    values.reserve(items.size());
    for (const auto& item : items) values.emplace_back(static_cast<const T&>(item));
    return detail::array_of(values);
  }
  static std::optional<std::vector<T>> read(const Value& v) {
    const int64_t size = tenon_array_size(v.raw());
    if (size < 0) return read_list(v);
    std::vector<T> out;
    for (int64_t i = 0; i < size; ++i) {
      std::optional<T> item = detail::read<T>(detail::element(v, static_cast<size_t>(i)));
      if (!item) return std::nullopt;
      out.push_back(*std::move(item));
    }
    return out;
  }

 private:
  static std::optional<std::vector<T>> read_list(const Value& v) {
    std::vector<T> out;
    for (const tenon_any* at = v.raw();;) {
      int64_t tag = -1;
      size_t size = 0;
      const tenon_any* fields = tenon_cell_view(at, &tag, &size);
      if (tag == detail::kNil && size == 0) return out;
      if (tag != detail::kCons || size != 2) return std::nullopt;
      std::optional<T> item = detail::read<T>(reinterpret_cast<const Value&>(fields[0]));
      if (!item) return std::nullopt;
      out.push_back(*std::move(item));
      at = &fields[1];
    }
  }
};

/// An array of exactly these elements: the result of a function with several results.
template <class... T>
struct Conversion<std::tuple<T...>> {
  static std::string name() {
    std::string out;
    ((out += (out.empty() ? "array of " : ", ") + detail::type_name<T>()), ...);
    return out.empty() ? "empty array" : out;
  }
  static Value make(const std::tuple<T...>& items) {
    return std::apply(
        [](const T&... each) { return detail::array_of(std::vector<Value>{Value(each)...}); },
        items);
  }
  static std::optional<std::tuple<T...>> read(const Value& v) {
    if (tenon_array_size(v.raw()) != static_cast<int64_t>(sizeof...(T))) return std::nullopt;
    return read(v, std::index_sequence_for<T...>());
  }

 private:
  template <size_t... I>
  static std::optional<std::tuple<T...>> read(const Value& v, std::index_sequence<I...>) {
    std::tuple<std::optional<T>...> items{detail::read<T>(detail::element(v, I))...};
    if (!(std::get<I>(items).has_value() && ...)) return std::nullopt;
    return std::tuple<T...>(*std::move(std::get<I>(items))...);
  }
};
template <class A, class B>
struct Conversion<std::pair<A, B>> {
  static std::string name() { return Conversion<std::tuple<A, B>>::name(); }
  static Value make(const std::pair<A, B>& pair) {
    return Conversion<std::tuple<A, B>>::make({pair.first, pair.second});
  }
  static std::optional<std::pair<A, B>> read(const Value& v) {
    auto items = Conversion<std::tuple<A, B>>::read(v);
    if (!items) return std::nullopt;
    return std::pair<A, B>(std::get<0>(std::move(*items)), std::get<1>(std::move(*items)));
  }
};

/// A map whose keys are all Ks and values all Ts.
template <class K, class T>
struct Conversion<std::map<K, T>> {
  static std::string name() {
    return "map of " + detail::type_name<K>() + " to " + detail::type_name<T>();
  }
  static Value make(const std::map<K, T>& entries) {
    std::vector<Value> keys, values;
    for (const auto& [key, value] : entries) {
      keys.emplace_back(key);
      values.emplace_back(value);
    }
    Value out;
    detail::check(tenon_map_create(reinterpret_cast<const tenon_any*>(keys.data()),
                                   reinterpret_cast<const tenon_any*>(values.data()), keys.size(),
                                   out.out()));
    return out;
  }
  static std::optional<std::map<K, T>> read(const Value& v) {
    const int64_t size = tenon_map_size(v.raw());
    if (size < 0) return std::nullopt;
    std::map<K, T> out;
    for (int64_t i = 0; i < size; ++i) {
      Value key, value;
      detail::check(tenon_map_entry(v.raw(), static_cast<size_t>(i), key.out(), value.out()));
      std::optional<K> k = detail::read<K>(std::move(key));
      std::optional<T> t = detail::read<T>(std::move(value));
      if (!k || !t) return std::nullopt;
      out.insert_or_assign(*std::move(k), *std::move(t));
    }
    return out;
  }
};

}  // namespace v1
}  // namespace tenon
