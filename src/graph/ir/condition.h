// Conditions on sizes: what a `check` binding says, and when it needs no saying.
#pragma once

#include <string>

#include "graph/ir/expr.h"

namespace tenon::graph {

// The same text for conditions that say the same.
std::string check_key(CheckKind kind, const Dim& left, const Dim& right);
bool proved(CheckKind kind, const Dim& left, const Dim& right);
bool refuted(CheckKind kind, const Dim& left, const Dim& right);
// "n == 2*m"
std::string condition_text(CheckKind kind, const Dim& left, const Dim& right);

// Throws Error (Usage) at `span` when a tensor of `type`, or of a field of it, has more bytes than
// 64 bits count, as far as its sizes tell. What holds a value has passed this.
void require_countable(const TypeRef& type, const Span& span);

}  // namespace tenon::graph
