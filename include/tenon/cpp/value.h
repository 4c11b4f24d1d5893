// tenon::Value: any value that crosses Tenon's interface. Included by tenon/tenon.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/c_api.h"
#include "tenon/cpp/standard.h"

namespace tenon {
/// The version of this interface: part of the names that the linker sees, so that libraries built
/// with different versions of it can be linked together. Programs write only `tenon::`.
inline namespace v1 {

/// How values of the C++ type T become Tenon's and back. Specialise it for types of your own:
///
///   template <> struct tenon::Conversion<Point> {
///     static std::string name() { return "point"; }               // in errors: what was expected
///     static tenon::Value make(const Point& p);                   // C++ to Tenon
///     static std::optional<Point> read(const tenon::Value& v);    // and back; empty if v is no
///     point
///   };
///
/// tenon.h has conversions for bool, integers, float and double, std::string, std::string_view,
/// `const char*`, DLDataType, DLDevice, std::optional, std::vector, std::map, std::pair,
/// std::tuple, and callables (to values only).
template <class T>
struct Conversion;

namespace detail {
[[noreturn]] void throw_waiting();  // in error.h
/// Marks constructors from a value whose type has been checked.
struct Unchecked {};
}  // namespace detail

/// An owning reference to a value: None, a number, a string, or a reference-counted object. Two
/// words. Copies share the object, so a copy is cheap and a move free. Objects are immutable,
/// except for the elements of tensors; threads may share them, but one Value must not be assigned
/// by one thread while another reads it.
///
/// The classes of the types of objects, such as Tensor and Function, derive from Value without
/// adding anything. One that was default-constructed or moved from holds None, and its member
/// functions then throw UsageError.
class Value {
 public:
  /// None.
  Value() noexcept = default;
  Value(std::nullptr_t) noexcept {}
  /// Converts a number, text, container or callable: see Conversion.
  template <class T>
  requires(!std::derived_from<std::remove_cvref_t<T>, Value> &&
           requires(T && given) { Conversion<std::decay_t<T>>::make(std::forward<T>(given)); })
      Value(T&& given)
      : Value(Conversion<std::decay_t<T>>::make(std::forward<T>(given))) {}

  Value(const Value& other) noexcept : any_(other.any_) {
    if (is_object()) tenon_object_retain(any_.v.object);
  }
  Value(Value&& other) noexcept : any_(other.release()) {}
  Value& operator=(const Value& other) noexcept {
    if (this != &other) *this = Value(other);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    Value moved(std::move(other));  // releases the old value
    std::swap(any_, moved.any_);
    return *this;
  }
  ~Value() {
    if (is_object()) tenon_object_release(any_.v.object);
  }

  bool is_none() const noexcept { return any_.type_index == TENON_NONE; }
  /// Whether `as<T>()` succeeds.
  template <class T>
  bool is() const;
  /// The value as a T. Integers convert to floating-point types, and to integer types that can hold
  /// them. Throws UsageError for a value of another type.
  template <class T>
  T as() const&;
  template <class T>
  T as() &&;
  /// The value as a T, or nothing if it is of another type.
  template <class T>
  std::optional<T> get_if() const;

  /// The name of the value's type: "int", "tensor", "graph.Module".
  std::string type_key() const;
  /// The value as human-readable text.
  std::string repr() const;

  /// The names of an object's fields; none for types without fields, such as numbers and tensors.
  std::vector<std::string> fields() const;
  /// A field of an object. Throws UsageError, which lists the fields, for an unknown name.
  Value field(const std::string& name) const;

  /// Whether both values are equal in type and content.
  friend bool operator==(const Value& a, const Value& b) {
    const int equal = tenon_any_equal(a.raw(), b.raw());
    if (equal < 0) detail::throw_waiting();
    return equal == 1;
  }

  /// The value for functions of the C interface, borrowed.
  const tenon_any* raw() const noexcept { return &any_; }
  /// Where a function of the C interface stores a new value; the old one is released.
  tenon_any* out() noexcept { return &any_; }
  /// Gives the caller the reference; None remains.
  tenon_any release() noexcept { return std::exchange(any_, tenon_any TENON_NONE_VALUE); }
  /// Takes over the caller's reference.
  static Value adopt(tenon_any owned) noexcept {
    Value value;
    value.any_ = owned;
    return value;
  }
  /// One of the numbers of types in tenon/c_api.h, such as TENON_INT.
  int32_t type_index() const noexcept { return any_.type_index; }

 private:
  bool is_object() const noexcept { return any_.type_index >= TENON_OBJECT_BEGIN; }

  tenon_any any_ = TENON_NONE_VALUE;
};

// Arrays of Values are arrays of tenon_any.
static_assert(sizeof(Value) == sizeof(tenon_any) && std::is_standard_layout_v<Value>);

}  // namespace v1
}  // namespace tenon
