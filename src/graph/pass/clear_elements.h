// clear_elements: takes an element out of an array before the element is changed and put back.
//
//   row = array_get(t, i); changed = array_set(row, j, x); u = array_set(t, i, changed)
//
// becomes
//
//   row = array_get(t, i); rest = array_set(t, i, ())
//   changed = array_set(row, j, x); u = array_set(rest, i, changed)
//
// While the array lives and refers to the element, changing the element would copy it.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module clear_elements(const Module& module, PassContext& cx);

}  // namespace tenon::graph
