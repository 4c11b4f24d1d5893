// Strings.
#include "object/string.h"
#include "vm/builtin/functions.h"

namespace tenon::vm {
namespace {

bool string_equal(const String& a, const String& b) {
  return a.view() == b.view();
}

String string_concat(const String& a, const String& b) {
  return {a.view(), b.view()};
}

}  // namespace

void register_strings(Registration& functions) {
  using library::add_typed;
  using library::signature;
  add_typed(functions, signature("vm.string_equal"), string_equal);
  add_typed(functions, signature("vm.string_concat"), string_concat);
}

}  // namespace tenon::vm
