#include "vm/interp/match_values.h"

#include "object/array.h"
#include "support/poll.h"
#include "support/text.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {

namespace {

// Of an argument that is an array of numbers or strings, its elements are checked, too: code that
// takes one out would find another kind. Their number bounds what this takes.
void check_elements(const Param& param, const AnyView& arg, const std::string& program) {
  if (param.type.kind != SignatureType::Kind::Array) return;
  const SignatureType& type = param.type.parts[0];
  const bool is_string = type.kind == SignatureType::Kind::Opaque && type.name == kString;
  if (type.kind != SignatureType::Kind::Scalar && !is_string) return;
  const auto* array = arg.as_object<ArrayObj>();
  Ticker ticker;
  for (int64_t i = 0; i < array->size; ++i) {
    ticker.tick();
    if (fits(type, array->begin()[i])) continue;
    throw_misfit(ErrorKind::Usage,
                 cat("element ", i, " of input '", printable(param.name), "' does not fit ",
                     printable(program)),
                 type, array->begin()[i]);
  }
}

}  // namespace

void check_unmatched(const FunctionUnit& function, size_t captures, std::span<const AnyView> args,
                     const std::string& program) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& param = function.params[captures + i];
    const TypeMisfit found = find_misfit(param.type, args[i], true);
    if (!found.type) {
      check_elements(param, args[i], program);
      continue;
    }
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
