// Results of one call that share memory: the same value twice, or a value and a view of it.
#pragma once

#include "python/src/nanobind.h"

namespace tenon::python {

// Makes the tensors among a call's results that share memory with others of them read-only, since a
// write to one would change the others. `results` is what `to_python` made.
void protect_shared_results(nanobind::handle results);

}  // namespace tenon::python
