// For tests: the text of the error that a call throws.
#pragma once

#include <string>
#include <utility>

#include "support/error.h"

namespace tenon {

// The whole rendered error, or "no error".
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
