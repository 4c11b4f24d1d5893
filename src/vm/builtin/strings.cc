// Strings are values: appending to one makes a new string. If this is the last use of the only
// reference, the string grows in place.
#include "object/string.h"

#include <cstring>

#include "support/bulk.h"
#include "vm/builtin/functions.h"

namespace tenon::vm {
namespace {

bool string_equal(const String& a, const String& b) {
  if (a.size() != b.size()) return false;
  bool equal = true;
  in_parts(a.size(), [&](size_t at, size_t n) {
    equal = equal && std::memcmp(a.c_str() + at, b.c_str() + at, n) == 0;
  });
  return equal;
}

void string_concat(const library::PlainFunction& f, const AnyView* args, Any* result) {
  // A reference of its own: the strings may be one, which changes.
  const auto tail = AnyTraits<String>::get(args[1]);
  *result = append_text(take_first(f, args), tail.view());
}

}  // namespace

void register_strings(Registration& functions) {
  using library::signature;
  library::add_typed(functions, signature("vm.string_equal"), string_equal);
  library::add_plain(functions, signature("vm.string_concat"), string_concat,
                     library::kArgumentTypes<String, String>);
}

}  // namespace tenon::vm
