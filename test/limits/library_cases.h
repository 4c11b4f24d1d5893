// Calls of library functions that take long, or would if the function did not bound its work.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "object/any.h"

namespace tenon {

struct LibraryCase {
  std::string_view function;
  std::string_view what;
  // Made for one call, so that functions that change a last reference in place copy where they can.
  std::function<std::vector<Any>()> arguments;
  bool in_re2 = false;  // most of its time
};

// At least one for each function that files may call.
std::vector<LibraryCase> library_cases();

}  // namespace tenon
