// remove_dead_code: drops unused bindings without side effects, including any errors that they
// would raise, and functions that no exported one leads to.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module remove_dead_code(const Module& module, PassContext& cx);

}  // namespace tenon::graph
