#include "vm/interp/match_values.h"

#include "support/text.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {

void check_unmatched(const FunctionUnit& function, size_t captures, std::span<const AnyView> args,
                     const std::string& program) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& param = function.params[captures + i];
    const TypeMisfit found = find_misfit(param.type, args[i], true);
    if (!found.type) continue;
    throw_misfit(ErrorKind::Usage,
                 cat("input '", printable(param.name), "' does not fit ", printable(program)),
                 *found.type, *found.value);
  }
}

void check_result(const FunctionUnit& function, const AnyView& value) {
  require_returned(function.name, function.result, value, "doesn't match its signature");
}

void check_output(const FunctionUnit& function, size_t result, const AnyView& value) {
  const SignatureType& type = function.result.results()[result];
  if (value.type_index == TypeIndex::Tensor && fits(type, value)) return;
  throw_misfit(
      ErrorKind::Usage,
      cat("output ", result, " can't hold the result of function '", printable(function.name), "'"),
      type, value);
}

}  // namespace tenon::vm
