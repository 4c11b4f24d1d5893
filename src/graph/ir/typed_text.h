// Texts that name a module's data types.
#pragma once

#include "graph/ir/module.h"

namespace tenon::graph {

// Parses a type, such as `list[tree[i64]]`, in which the prelude's data types and these are known.
// Throws Usage if the text is not a type.
TypeRef parse_type(std::string_view text, const Map<String, Ref<const AdtDefinition>>& adts);

}  // namespace tenon::graph
