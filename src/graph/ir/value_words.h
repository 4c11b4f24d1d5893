// The words for functions on arrays, strings and scalars: array_get(%a, %i). Each is a call of a
// library function (library/signatures) whose result's type follows from the operands'.
#pragma once

#include <string_view>
#include <vector>

#include "graph/ir/expr.h"

namespace tenon::graph {

// The library functions on arrays that others than the words' table know.
inline constexpr char kArrayEmpty[] = "vm.array_empty", kArraySize[] = "vm.array_size",
                      kArrayGet[] = "vm.array_get", kArraySet[] = "vm.array_set",
                      kArrayAppend[] = "vm.array_append";

bool is_value_word(std::string_view word);
// The call that a word and its operands stand for. Throws Usage for operands that don't fit.
Ref<const Call> value_call(std::string_view word, const std::vector<Operand>& args,
                           const Variances& variances);
// The type that operand `args.size()` should have; null if any type will do.
TypeRef expected_of_value_word(std::string_view word, const std::vector<Operand>& args);
// Checks the types of a call of such a function that is written as a packed call. Throws Usage.
void check_value_call(const Call& call, const Variances& variances);
// An array of that type without elements.
Ref<const Call> empty_array(const TypeRef& element);

}  // namespace tenon::graph
