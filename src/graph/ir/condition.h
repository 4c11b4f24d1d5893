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

}  // namespace tenon::graph
