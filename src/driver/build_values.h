// Values that hosts give to builders, as the graph has them: every operand may also be given as a
// number, boolean, tensor, shape or string, which becomes a constant; a type also as text, and a
// size as an integer or text. All throw Usage for any other value.
#pragma once

#include <vector>

#include "graph/ir/builder.h"
#include "graph/ir/expected_types.h"
#include "object/array.h"

namespace tenon::driver {

[[noreturn]] void fail_value(const char* wanted, const Any& found);

// Packed functions (functions.def) for which no builder is needed.
graph::TypeRef build_type(const String& text);
graph::Operand build_constant(const Any& value);
graph::Operand build_scalar(const String& dtype, const Any& value);

// None is null: an operand that is left out.
graph::Operand operand_of(const Any& value);
// The operand where that type, which may be null, is expected: a host's number becomes a scalar of
// it, as a literal in text does, and an array a tuple.
graph::Operand operand_of(graph::Builder& builder, const Any& value, const graph::TypeRef& expected,
                          int depth = 0);
std::vector<graph::Operand> operands_of(graph::Builder& builder, const Array<Any>& values);
// The arguments of a function or the fields of a constructor, which are added to `types`.
std::vector<graph::Operand> operands_of(graph::Builder& builder, const Array<Any>& values,
                                        graph::ExpectedTypes* types);
// The arguments of a function of that type, with the type arguments that a host states; of any
// other, none is expected.
std::vector<graph::Operand> arguments_of(graph::Builder& builder, const Array<Any>& values,
                                         const graph::TypeRef& callee,
                                         const std::vector<graph::TypeRef>& type_arguments = {});
// The operands of an operator. A host's float is f64, but f32 beside an f32 operand.
std::vector<graph::Operand> operator_operands(const Array<Any>& values);

Dim size_of(const Any& size);
std::vector<Dim> sizes_of(const Array<Any>& sizes);

template <class M>
M map_or_empty(const Any& given, const char* wanted) {
  if (given.is_none()) return {};
  if (!given.is<M>()) fail_value(wanted, given);
  return given.as<M>();
}

// An operator's attributes as hosts write them: sizes are also integers and text, dtypes also
// names.
graph::Attrs attributes_of(const String& op, const Any& given);

}  // namespace tenon::driver
