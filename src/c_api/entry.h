// What every function of the C interface does: converts C's values to ours, and exceptions to the
// thread's waiting error.
#pragma once

#include <cstring>

#include "object/function.h"
#include "object/tensor.h"
#include "support/failures.h"
#include "tenon/c_api.h"

namespace tenon::c_api {

inline const AnyView& view(const tenon_any* a) {
  return *reinterpret_cast<const AnyView*>(a);
}

// The object in a value of type T; null for any other type and for a null object pointer.
template <class T>
const T* object_in(const tenon_any* a) {
  return a && type_is<T>(a->type_index) ? static_cast<const T*>(view(a).v.object) : nullptr;
}

// Stores a value in the caller's `out`, releasing what `out` held.
void give(tenon_any* out, Any value);
void give_owned(tenon_any* out, AnyView owned);  // whose reference the caller hands over

// Runs `body` and returns 0; if it throws, sets the waiting error and returns -1.
template <class F>
int guard(F&& body) noexcept {
  try {
    body();
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

inline void need(bool good, const char* what) {
  if (!good) throw Error(ErrorKind::Usage, what);
}

[[noreturn]] inline void fail_size(size_t given, size_t first, size_t last, const char* name) {
  throw Error(ErrorKind::Usage, cat("a ", name, " has a size that this library doesn't know"))
      .found(cat(given, " bytes"))
      .expected(first == last ? cat(first) : cat(first, " to ", last))
      .help(cat("set its first member to sizeof(", name, ")"));
}

// Returns how much of the size-prefixed struct T the caller provides; `first` is the size of the
// struct's first version. A Usage error for a size that no version has.
template <class T>
size_t known_size(const T& given, size_t first, const char* name) {
  // The size of each version is a multiple of the alignment, so no field is read in part.
  if (given.size < first || given.size > sizeof(T) || given.size % alignof(T) != 0) {
    fail_size(given.size, first, sizeof(T), name);
  }
  return given.size;
}

// Reads a size-prefixed struct; fields missing from the caller's version are taken from `defaults`.
template <class T>
T with_defaults(const T& given, T defaults, size_t first, const char* name) {
  std::memcpy(static_cast<void*>(&defaults), &given, known_size(given, first, name));
  return defaults;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_type(const char* what, int32_t type_index) {
  throw_misuse(what, type_name(type_index));
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_index(const char* what, int64_t index,
                                                              size_t size) {
  throw_misuse(what, cat(index), cat("a number below ", size));
}

// The value as a T, through `admit`; a Usage error if it isn't one.
template <class T>
T take(const tenon_any* a, const char* what) {
  need(a != nullptr, what);
  Any value = admit(view(a));
  if (value.is_none() || !value.is<T>()) fail_type(what, value.type_index);
  return value.as<T>();
}

}  // namespace tenon::c_api
