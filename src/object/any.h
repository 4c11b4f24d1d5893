// Any, a value of any type in 16 bytes, and AnyView, the same without ownership.
//
//   byte 0  int32   type_index
//        4  uint32  length of a small string; otherwise zero
//        8  payload: int64, double, bool, dtype, device, pointer, object, or 7 bytes and a NUL
//
// An Any owns its object; an AnyView borrows it from an owner that outlives the view. Any derives
// from AnyView and adds no field, so an array of one can be read as an array of the other.
// AnyTraits define how a C++ type is stored in an Any. A handle is a class of one pointer, derived
// from Handle.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "object/dtype.h"
#include "object/object.h"
#include "support/error.h"

namespace tenon {

class AnyView;
class Any;

template <class T>
struct AnyTraits;  // put(AnyView&, const T&), is(const AnyView&), get(const AnyView&), name()

// Base of value types that hold one pointer to an object, or null.
class Handle {
 public:
  Handle() = default;
  explicit Handle(Ref<Object> r) : ref_(std::move(r)) {}
  explicit operator bool() const { return static_cast<bool>(ref_); }
  Object* object() const { return ref_.get(); }
  const Ref<Object>& ref() const { return ref_; }
  bool same_as(const Handle& o) const { return ref_ == o.ref_; }
  // Hands the reference to the caller.
  Object* leak() { return ref_.leak(); }

 protected:
  Ref<Object> ref_;
};

struct AnyPayload {
  union {
    int64_t i;
    uint64_t bits;
    double f;
    void* p;
    const char* c_str;
    Object* object;
    DLDataType dtype;
    DLDevice device;
    char bytes[8];
  };
};

class AnyView {
 public:
  int32_t type_index = TypeIndex::None;
  uint32_t small_length = 0;
  AnyPayload v{{0}};

  constexpr AnyView() = default;
  AnyView(const AnyView&) = default;
  AnyView& operator=(const AnyView&) = default;
  AnyView(std::nullptr_t) {}
  template <class T>
  requires(!std::is_base_of_v<AnyView, T> && requires { sizeof(AnyTraits<T>); })
      AnyView(const T& value) {
    AnyTraits<T>::put(*this, value);
  }
  static AnyView of_object(const Object* o) {  // null gives None
    AnyView a;
    if (o) {
      a.type_index = o->type_index;
      a.v.object = const_cast<Object*>(o);
    }
    return a;
  }

  bool is_none() const { return type_index == TypeIndex::None; }
  bool is_object() const { return type_index >= TypeIndex::ObjectBegin; }
  Object* object() const { return is_object() ? v.object : nullptr; }

  // Whether this holds a T. Handles and Refs that may be null accept None.
  template <class T>
  bool is() const {
    return AnyTraits<T>::is(*this);
  }
  // The value as a T; a Usage error that names both types if it isn't one.
  template <class T>
  T as() const {
    if (!AnyTraits<T>::is(*this)) [[unlikely]]
      fail(AnyTraits<T>::name());
    return AnyTraits<T>::get(*this);
  }
  template <class T>
  std::optional<T> try_as() const {
    if (!AnyTraits<T>::is(*this)) return std::nullopt;
    return AnyTraits<T>::get(*this);
  }
  // The object as a T (a type derived from Object), or null if it isn't one; borrowed.
  template <class T>
  T* as_object() const {
    return is_object() && type_is<std::remove_const_t<T>>(type_index) ? static_cast<T*>(v.object)
                                                                      : nullptr;
  }

  // Same type and same payload; strings and bytes by content, other objects by identity.
  // (structural_equal in reflect.h compares objects by content.)
  bool same(const AnyView& o) const {
    return type_index == o.type_index && small_length == o.small_length && v.bits == o.v.bits
               ? true
               : same_slow(o);
  }

  [[noreturn]] void fail(const std::string& wanted) const;

 private:
  bool same_slow(const AnyView& o) const;
};

class Any : public AnyView {
 public:
  Any() = default;
  Any(std::nullptr_t) {}
  Any(const Any& o) : AnyView(o) { hold(); }
  Any(Any&& o) noexcept : AnyView(o) {
    o.type_index = TypeIndex::None;
    o.small_length = 0;
    o.v.bits = 0;
  }
  // Copies the viewed value. Raw strings and bytes (which tvm-ffi's callers may pass) become String
  // and Bytes; a bare DLTensor* is a Usage error.
  explicit Any(const AnyView& o) : AnyView(o) {
    if (is_object()) {
      retain(v.object);
    } else if (type_index >= TypeIndex::DLTensorPtr && type_index <= TypeIndex::ObjectRValueRef)
        [[unlikely]] {
      own_foreign();
    }
  }
  template <class T>
  requires(!std::is_base_of_v<AnyView, std::remove_cvref_t<T>> &&
           requires { sizeof(AnyTraits<std::remove_cvref_t<T>>); }) Any(T&& value) {
    using U = std::remove_cvref_t<T>;
    if constexpr (requires { AnyTraits<U>::take(*this, std::forward<T>(value)); }) {
      AnyTraits<U>::take(*this, std::forward<T>(value));
    } else {
      AnyTraits<U>::put(*this, value);
      hold();
    }
  }
  ~Any() {
    if (is_object()) release(v.object);
  }
  Any& operator=(const Any& o) {
    Any copy(o);
    swap(copy);
    return *this;
  }
  Any& operator=(Any&& o) noexcept {
    Any moved(std::move(o));
    swap(moved);
    return *this;
  }
  void swap(Any& o) noexcept {
    AnyView t = *this;
    static_cast<AnyView&>(*this) = o;
    static_cast<AnyView&>(o) = t;
  }
  void reset() { *this = Any(); }
  // Takes over a reference that the caller holds.
  static Any adopt(AnyView view) {
    Any a;
    static_cast<AnyView&>(a) = view;
    return a;
  }
  // Hands this Any's reference to the caller and leaves None.
  AnyView leak() {
    AnyView view = *this;
    type_index = TypeIndex::None;
    small_length = 0;
    v.bits = 0;
    return view;
  }

 private:
  void hold() {
    if (is_object()) retain(v.object);
  }
  void own_foreign();
};
static_assert(sizeof(AnyView) == 16 && sizeof(Any) == 16);
static_assert(offsetof(AnyView, small_length) == 4 && offsetof(AnyView, v) == 8);

// "int", "string", "tensor", or a registered type's key.
std::string type_name(int32_t type_index);

template <>
struct AnyTraits<bool> {
  static void put(AnyView& a, bool b) {
    a.type_index = TypeIndex::Bool;
    a.v.i = b;
  }
  static bool is(const AnyView& a) { return a.type_index == TypeIndex::Bool; }
  static bool get(const AnyView& a) { return a.v.i != 0; }
  static std::string name() { return "bool"; }
};

template <class T>
requires(std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>) struct AnyTraits<T> {
  static void put(AnyView& a, T i) {
    a.type_index = TypeIndex::Int;
    a.v.i = static_cast<int64_t>(i);
  }
  static bool is(const AnyView& a) {
    if (a.type_index != TypeIndex::Int && a.type_index != TypeIndex::Bool) return false;
    return sizeof(T) == 8 || std::in_range<T>(a.v.i);
  }
  static T get(const AnyView& a) { return static_cast<T>(a.v.i); }
  static std::string name() { return cat(std::is_signed_v<T> ? "int" : "uint", sizeof(T) * 8); }
};

template <class T>
requires(std::is_enum_v<T> && !std::is_same_v<T, DLDeviceType>) struct AnyTraits<T> {
  using U = std::underlying_type_t<T>;
  static void put(AnyView& a, T e) { AnyTraits<U>::put(a, static_cast<U>(e)); }
  static bool is(const AnyView& a) { return AnyTraits<U>::is(a); }
  static T get(const AnyView& a) { return static_cast<T>(a.v.i); }
  static std::string name() { return "enumeration"; }
};

template <std::floating_point T>
struct AnyTraits<T> {
  static void put(AnyView& a, T f) {
    a.type_index = TypeIndex::Float;
    a.v.f = static_cast<double>(f);
  }
  static bool is(const AnyView& a) {
    return a.type_index == TypeIndex::Float || a.type_index == TypeIndex::Int;
  }
  static T get(const AnyView& a) {
    return static_cast<T>(a.type_index == TypeIndex::Float ? a.v.f : static_cast<double>(a.v.i));
  }
  static std::string name() { return "float"; }
};

template <>
struct AnyTraits<DataType> {
  static void put(AnyView& a, DataType t) {
    a.type_index = TypeIndex::DataType;
    a.v.bits = t.word();
  }
  static bool is(const AnyView& a) { return a.type_index == TypeIndex::DataType; }
  static DataType get(const AnyView& a) { return a.v.dtype; }
  static std::string name() { return "dtype"; }
};

template <>
struct AnyTraits<DLDevice> {
  static void put(AnyView& a, DLDevice d) {
    a.type_index = TypeIndex::Device;
    a.v.device = d;
  }
  static bool is(const AnyView& a) { return a.type_index == TypeIndex::Device; }
  static DLDevice get(const AnyView& a) { return a.v.device; }
  static std::string name() { return "device"; }
};

template <>
struct AnyTraits<void*> {
  static void put(AnyView& a, void* p) {
    a.type_index = p ? TypeIndex::OpaquePtr : TypeIndex::None;
    a.v.p = p;
  }
  static bool is(const AnyView& a) {
    return a.type_index == TypeIndex::OpaquePtr || a.type_index == TypeIndex::None;
  }
  static void* get(const AnyView& a) { return a.v.p; }
  static std::string name() { return "pointer"; }
};

template <>
struct AnyTraits<AnyView> {
  static bool is(const AnyView&) { return true; }
  static AnyView get(const AnyView& a) { return a; }
  static std::string name() { return "any"; }
};
template <>
struct AnyTraits<Any> {
  static bool is(const AnyView&) { return true; }
  static Any get(const AnyView& a) { return Any(a); }
  static std::string name() { return "any"; }
};

template <class T>
struct AnyTraits<Ref<T>> {
  static void put(AnyView& a, const Ref<T>& r) { a = AnyView::of_object(r.get()); }
  static void take(AnyView& a, Ref<T>&& r) { a = AnyView::of_object(r.leak()); }
  static void take(AnyView& a, const Ref<T>& r) { take(a, Ref<T>(r)); }
  static bool is(const AnyView& a) {
    if (a.is_none()) return true;
    return a.is_object() && type_is<std::remove_const_t<T>>(a.type_index);
  }
  static Ref<T> get(const AnyView& a) { return Ref<T>(static_cast<T*>(a.v.object)); }
  static std::string name() { return type_name(T::kTypeIndex); }
};

// Handles define `static bool accepts(const AnyView&)`, `static std::string type_text()`, and, if
// null means an empty value and not None, `static Object* empty_value()` (an object that is never
// destroyed).
template <class T>
requires std::is_base_of_v<Handle, T>
struct AnyTraits<T> {
  static_assert(sizeof(T) == sizeof(void*));
  static void put(AnyView& a, const T& h) {
    if constexpr (requires { T::empty_value(); }) {
      a = AnyView::of_object(h.object() ? h.object() : T::empty_value());
    } else {
      a = AnyView::of_object(h.object());
    }
  }
  static void take(AnyView& a, T&& h) {
    if constexpr (requires { T::empty_value(); }) {
      if (!h) h = T(Ref<Object>(T::empty_value()));
    }
    a = AnyView::of_object(h.leak());
  }
  static void take(AnyView& a, const T& h) { take(a, T(h)); }
  static bool is(const AnyView& a) { return T::accepts(a); }
  static T get(const AnyView& a) { return reinterpret_cast<const T&>(a.v.p); }
  static std::string name() { return T::type_text(); }
};

// A reference to the T inside an Any that is known to hold one, without touching the reference
// count. Works for types stored unchanged in the payload: 64-bit numbers, booleans, dtypes, Refs,
// handles, Any itself.
template <class T>
const T& payload_as(const AnyView& a) {
  if constexpr (std::is_base_of_v<AnyView, T> || sizeof(T) == sizeof(AnyView)) {
    return reinterpret_cast<const T&>(a);
  } else {
    static_assert(sizeof(T) <= 8);
    return reinterpret_cast<const T&>(a.v);
  }
}

}  // namespace tenon
