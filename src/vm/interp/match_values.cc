#include "vm/interp/match_values.h"

#include "support/failures.h"
#include "support/text.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {

bool is_unmatched(const SignatureType& type) {
  using Kind = SignatureType::Kind;
  return type.kind != Kind::Tensor && type.kind != Kind::Shape && type.kind != Kind::Tuple &&
         type.kind != Kind::Any;
}

void check_unmatched(const FunctionUnit& function, size_t captures, std::span<const AnyView> args,
                     const std::string& program) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& param = function.params[captures + i];
    if (!is_unmatched(param.type) || fits(param.type, args[i])) continue;
    throw_misuse(cat("input '", printable(param.name), "' does not fit ", printable(program)),
                 found_text(param.type, args[i]), printable(to_text(param.type)));
  }
}

void check_result(const FunctionUnit& function, const AnyView& value) {
  require_returned(function.name, function.result, value,
                   "a value that doesn't match its signature");
}

void check_output(const FunctionUnit& function, size_t result, const AnyView& value) {
  const SignatureType& type = function.result.results()[result];
  if (value.type_index == TypeIndex::Tensor && fits(type, value)) return;
  throw_misuse(
      cat("output ", result, " can't hold the result of function '", printable(function.name), "'"),
      found_text(type, value), printable(to_text(type)));
}

}  // namespace tenon::vm
