// What every function of the C interface does: turns C's values into ours, and exceptions into an
// error that waits on the thread.
#pragma once

#include <cstring>

#include "object/function.h"
#include "object/tensor.h"
#include "tenon/c_api.h"

namespace tenon::c_api {

inline const AnyView& view(const tenon_any* a) {
  return *reinterpret_cast<const AnyView*>(a);
}

// The object that a value of this type holds, or null: also when it says that it holds one.
template <class T>
const T* object_in(const tenon_any* a) {
  return a && type_is<T>(a->type_index) ? static_cast<const T*>(view(a).v.object) : nullptr;
}

// Puts a value into the caller's `out`, which may hold another.
inline void give(tenon_any* out, Any value) {
  if (out->type_index >= TENON_OBJECT_BEGIN && !out->v.object) out->type_index = TENON_NONE;
  *reinterpret_cast<Any*>(out) = std::move(value);
}

// Runs `body`; 0, or -1 and what it threw waits.
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

// How much of a struct T that begins with its size the caller has, whose first version had `first`
// bytes. A Usage error for a size that no version has.
template <class T>
size_t known_size(const T& given, size_t first, const char* name) {
  if (given.size < first || given.size > sizeof(T)) {
    throw Error(ErrorKind::Usage, cat("a ", name, " has a size that this library doesn't know"))
        .found(cat(given.size, " bytes"))
        .expected(first == sizeof(T) ? cat(first) : cat(first, " to ", sizeof(T)))
        .help(cat("set its first member to sizeof(", name, ")"));
  }
  return given.size;
}

// Such a struct as the caller gave it; fields that the caller's version lacks are as in `defaults`.
template <class T>
T with_defaults(const T& given, T defaults, size_t first, const char* name) {
  std::memcpy(static_cast<void*>(&defaults), &given, known_size(given, first, name));
  return defaults;
}

// The value as a T, admitted from outside; a Usage error when it is none.
template <class T>
T take(const tenon_any* a, const char* what) {
  need(a != nullptr, what);
  Any value = admit(view(a));
  if (value.is_none() || !value.is<T>()) {
    throw Error(ErrorKind::Usage, what).found(type_name(value.type_index));
  }
  return value.as<T>();
}

}  // namespace tenon::c_api
