// Shapes, bytes, arrays and maps. Included by tenon/tenon.h.
#pragma once

#include <cstddef>
#include <span>

#include "tenon/cpp/conversion.h"

namespace tenon {
inline namespace v1 {

/// Dimensions as an argument, borrowed for the call: `{2, 3}`, a vector, a span or a Shape.
class Dims {
 public:
  Dims(std::initializer_list<int64_t> dims) noexcept : dims_(std::data(dims), dims.size()) {}
  template <class R>
  requires std::convertible_to<const R&, std::span<const int64_t>> Dims(const R& dims)
  noexcept : dims_(dims) {}

  const int64_t* data() const noexcept { return dims_.data(); }
  size_t size() const noexcept { return dims_.size(); }

 private:
  std::span<const int64_t> dims_;
};

/// The dimensions of a tensor as a value. Immutable.
class Shape : public Value {
 public:
  using value_type = int64_t;
  using const_iterator = std::span<const int64_t>::iterator;
  static constexpr const char* kTypeName = "shape";
  static bool accepts(const Value& v) noexcept { return v.type_index() == TENON_SHAPE; }
  static Shape unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  /// Without dimensions, as a scalar's.
  Shape() : Shape(Dims(std::initializer_list<int64_t>())) {}
  explicit Shape(Dims dims) { detail::check(tenon_shape_create(dims.data(), dims.size(), out())); }

  /// The dimensions, borrowed; none if this was moved from.
  std::span<const int64_t> dims() const& noexcept {
    size_t rank = 0;
    const int64_t* data = tenon_shape_view(raw(), &rank);
    return {data, rank};
  }
  std::span<const int64_t> dims() const&& = delete;
  size_t rank() const noexcept { return dims().size(); }
  int64_t operator[](size_t axis) const noexcept { return dims()[axis]; }
  const_iterator begin() const noexcept { return dims().begin(); }
  const_iterator end() const noexcept { return dims().end(); }
  operator std::span<const int64_t>() const& noexcept { return dims(); }

 private:
  Shape(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}
};

/// A string of bytes, such as a compiled program. Immutable.
class Bytes : public Value {
 public:
  static constexpr const char* kTypeName = "bytes";
  static bool accepts(const Value& v) noexcept {
    return v.type_index() == TENON_BYTES || v.type_index() == TENON_SMALL_BYTES;
  }
  static Bytes unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  Bytes() = default;
  /// Copies the bytes.
  explicit Bytes(std::span<const std::byte> bytes) {
    detail::check(tenon_bytes_create(bytes.data(), bytes.size(), out()));
  }
  explicit Bytes(std::string_view bytes) : Bytes(std::as_bytes(std::span(bytes))) {}

  /// The bytes, borrowed while this stays in place.
  std::span<const std::byte> view() const& noexcept {
    const tenon_text text = tenon_string_view(raw());
    return {reinterpret_cast<const std::byte*>(text.data), text.size};
  }
  std::span<const std::byte> view() const&& = delete;
  size_t size() const noexcept { return view().size(); }

 private:
  Bytes(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}
};

namespace detail {

/// Iterates by index over a container whose elements are made when they are read.
template <class C>
class Iterator {
 public:
  using value_type = decltype(std::declval<const C&>().at_index(0));
  using difference_type = std::ptrdiff_t;

  Iterator() = default;
  Iterator(const C* container, size_t index) noexcept : container_(container), index_(index) {}
  value_type operator*() const { return container_->at_index(index_); }
  Iterator& operator++() noexcept {
    ++index_;
    return *this;
  }
  Iterator operator++(int) noexcept { return {container_, index_++}; }
  bool operator==(const Iterator&) const = default;

 private:
  const C* container_ = nullptr;
  size_t index_ = 0;
};

}  // namespace detail

/// A sequence of values. Immutable.
///
///   for (Value v : Array{1, "two", 3.0}) std::puts(v.repr().c_str());
///
/// `as<std::vector<T>>()` and `as<std::tuple<...>>()` read all elements at once.
class Array : public Value {
 public:
  static constexpr const char* kTypeName = "array";
  static bool accepts(const Value& v) noexcept { return v.type_index() == TENON_ARRAY; }
  static Array unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  /// An empty array.
  Array() : Array(std::span<const Value>()) {}
  /// An array of these elements; `Array{a}` is an array with the one element `a`.
  Array(std::initializer_list<Value> items) : Array(std::span(std::data(items), items.size())) {}
  explicit Array(std::span<const Value> items)
      : Array(detail::Unchecked{}, detail::array_of(items.data(), items.size())) {}

  /// 0 if this was moved from.
  size_t size() const noexcept {
    const int64_t size = tenon_array_size(raw());
    return size < 0 ? 0 : static_cast<size_t>(size);
  }
  bool empty() const noexcept { return size() == 0; }
  /// Throws UsageError for an index that is not below the size.
  Value operator[](size_t index) const { return detail::element(*this, index); }
  auto begin() const noexcept { return detail::Iterator(this, 0); }
  auto end() const noexcept { return detail::Iterator(this, size()); }

 private:
  friend detail::Iterator<Array>;
  Array(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}
  Value at_index(size_t index) const { return (*this)[index]; }
};

/// A map that keeps the order of its entries. Immutable. Strings, bytes and numbers are compared by
/// content as keys, other objects by identity.
///
///   Map options{{"level", 3}, {"cpu", "x86-64-v3"}};
///   for (auto [key, value] : options) ...
class Map : public Value {
 public:
  static constexpr const char* kTypeName = "map";
  static bool accepts(const Value& v) noexcept { return v.type_index() == TENON_MAP; }
  static Map unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }
  using Entry = std::pair<Value, Value>;

  /// An empty map.
  Map() : Map(std::span<const Entry>()) {}
  /// If a key occurs twice, its last value counts.
  Map(std::initializer_list<Entry> entries) : Map(std::span(std::data(entries), entries.size())) {}
  explicit Map(std::span<const Entry> entries) {
    std::vector<Value> keys, values;
    for (const auto& [key, value] : entries) {
      keys.push_back(key);
      values.push_back(value);
    }
    detail::check(tenon_map_create(reinterpret_cast<const tenon_any*>(keys.data()),
                                   reinterpret_cast<const tenon_any*>(values.data()), keys.size(),
                                   out()));
  }

  /// 0 if this was moved from.
  size_t size() const noexcept {
    const int64_t size = tenon_map_size(raw());
    return size < 0 ? 0 : static_cast<size_t>(size);
  }
  bool empty() const noexcept { return size() == 0; }
  /// The value under a key, or nothing.
  std::optional<Value> find(const Value& key) const {
    if (is_none()) return std::nullopt;
    Value value;
    const int found = tenon_map_get(raw(), key.raw(), value.out());
    if (found < 0) detail::throw_waiting();
    return found == 1 ? std::optional<Value>(std::move(value)) : std::nullopt;
  }
  bool contains(const Value& key) const { return find(key).has_value(); }
  /// The value under a key. Throws UsageError if there is none.
  Value operator[](const Value& key) const {
    std::optional<Value> found = find(key);
    if (!found) throw UsageError("a map lacks a key", {{"expected", key.repr()}});
    return *std::move(found);
  }
  auto begin() const noexcept { return detail::Iterator(this, 0); }
  auto end() const noexcept { return detail::Iterator(this, size()); }

 private:
  friend detail::Iterator<Map>;
  Map(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}
  Entry at_index(size_t index) const {
    Entry entry;
    detail::check(tenon_map_entry(raw(), index, entry.first.out(), entry.second.out()));
    return entry;
  }
};

}  // namespace v1
}  // namespace tenon
