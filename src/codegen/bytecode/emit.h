// Emission: turns a lowered module into a Unit.
//
// At this point graph IR has only kernel calls with destinations, calls of globals, closures and
// packed functions, the memory intrinsics (graph/ir/intrinsic.h), scalar arithmetic, if, loop,
// tuples, match_shape and check. Anything else is refused with its span.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/module.h"
#include "vm/isa/unit.h"

namespace tenon::codegen {

// The type as a function's signature in a file states it, without known values.
vm::SignatureType signature_type(const graph::TypeRef& type);

// Emits `module`'s functions as bytecode. Constants are borrowed, not copied; kernels are referred
// to by name, and the caller adds their object.
vm::Unit emit_unit(const graph::Module& module);

}  // namespace tenon::codegen
