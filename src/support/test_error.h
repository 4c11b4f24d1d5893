// For tests: what a call throws, as text.
#pragma once

#include <string>
#include <utility>

#include "support/error.h"

namespace tenon {

// The whole error as a person reads it, or "no error".
template <class F>
std::string failure_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Error& e) {
    return e.render();
  }
  return "no error";
}

}  // namespace tenon
