// Fills the operator table. Call it before using the table; further calls do nothing.
#pragma once

#include <string>

namespace tenon::graph {

void register_operators();

// The text of docs/operators.md.
std::string operators_document();

}  // namespace tenon::graph
