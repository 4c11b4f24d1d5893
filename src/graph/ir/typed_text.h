// Texts whose meaning depends on what is expected of them.
#pragma once

#include <functional>

#include "graph/ir/infer.h"
#include "graph/ir/module.h"
#include "graph/ir/op.h"

namespace tenon::graph {

// Parses a type, such as `list[tree[T]]`, in which the prelude's data types, these, and these type
// parameters are known. Throws Usage if the text is not a type.
TypeRef parse_type(std::string_view text, const Map<String, Ref<const AdtDefinition>>& adts,
                   const Array<String>& type_params = {});

// Parses an attribute's value, as in `axis=-1`, where one of that kind is expected. Throws Usage if
// the text is not a value.
Any parse_attribute(AttrKind kind, std::string_view text);

// What makes the variables of a pattern.
using MakeVariable = std::function<VarRef(std::string_view name, const TypeRef& type)>;
// Parses a pattern for a value of the type, as hosts write it: in `Node(l, x, _)`, l and x are
// variables, which `variable` makes in this order. Throws Usage if the text isn't a pattern for it.
PatternRef parse_pattern(std::string_view text, const TypeRef& type, const Signatures& signatures,
                         const MakeVariable& variable);

}  // namespace tenon::graph
