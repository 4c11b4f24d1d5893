// gather_fields: reads the fields of a tuple where the first of them is read that may be changed in
// place.
//
//   b = array_set(p.0, i, x); c = add(p.1, 1)
//
// becomes
//
//   a = p.0; n = p.1; b = array_set(a, i, x); c = add(n, 1)
//
// While a field is still to be read, the tuple lives and refers to all of them, so that changing
// the array would copy it.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module gather_fields(const Module& module, PassContext& cx);

}  // namespace tenon::graph
