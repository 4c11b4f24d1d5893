// Private to this folder: what the checks of computes and loop nests share.
#pragma once

#include <string_view>

#include "loop/expr.h"

namespace tenon::loop {

// Whether values may have that dtype: an integer, a float, a boolean or a complex number.
bool is_scalar(DataType dtype);

// The rule that a node breaks whose operands aren't null; empty if none. The functions of expr.h
// make only nodes that break none, but others may come from files.
std::string_view broken_rule(const Expr& e);

}  // namespace tenon::loop
