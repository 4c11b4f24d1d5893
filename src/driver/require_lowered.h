// Whether code can be generated for a module that a host's own pipeline of passes made.
#pragma once

#include "graph/ir/module.h"

namespace tenon::driver {

// Throws Usage, with the passes that code generation needs, if the module holds something that they
// would have lowered.
void require_lowered(const graph::Module& module);

}  // namespace tenon::driver
