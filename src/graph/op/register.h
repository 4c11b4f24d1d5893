// Fills the operator table. Called once, before any use of it; a second call does nothing.
#pragma once

#include <string>

namespace tenon::graph {

void register_operators();

// docs/operators.md, from the table.
std::string operators_document();

}  // namespace tenon::graph
