// Conditions on sizes, as in `check` bindings, and whether they can be proved.
#pragma once

#include <string>

#include "graph/ir/expr.h"

namespace tenon::graph {

// A key that is equal for equivalent conditions.
std::string check_key(CheckKind kind, const Dim& left, const Dim& right);
bool proved(CheckKind kind, const Dim& left, const Dim& right);
bool refuted(CheckKind kind, const Dim& left, const Dim& right);
// False if a condition that the block checks, or a match_shape in it, certainly fails. A pass that
// learns sizes leaves such a block as it is: that is to be an error only when it runs.
bool may_hold(const Block& block);
// "n == 2*m"
std::string condition_text(CheckKind kind, const Dim& left, const Dim& right);

// Throws Usage at `span` if a tensor of `type`, or of one of its fields, provably has more bytes
// than 64 bits can count. The types of all values have passed this check.
void require_countable(const TypeRef& type, const Span& span);

}  // namespace tenon::graph
