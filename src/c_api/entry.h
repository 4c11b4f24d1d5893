// What every function of the C interface does: turns C's values into ours, and exceptions into an
// error that waits on the thread.
#pragma once

#include "object/function.h"
#include "object/tensor.h"
#include "tenon/c_api.h"

namespace tenon::c_api {

inline const AnyView& view(const tenon_any* a) {
  return *reinterpret_cast<const AnyView*>(a);
}

// Puts a value into the caller's `out`, which may hold another.
inline void give(tenon_any* out, Any value) {
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
