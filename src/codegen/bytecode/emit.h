// Emission: turns a lowered module into a Unit.
//
// At this point graph IR has no operators and no function literals any more, and kernels write to
// destinations.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/module.h"
#include "vm/isa/unit.h"

namespace tenon::codegen {

// The type as a function's signature in a file states it, without known values. Throws Unsupported
// for one that no value has; `of` names what has the type.
vm::SignatureType signature_type(const graph::TypeRef& type, std::string_view of,
                                 const Span& span = {});

// The same for a type in that function: its type parameters are `any`, for its code is the same for
// all types.
vm::SignatureType erased_type(const graph::TypeRef& type, std::string_view of,
                              const graph::FunctionExpr& function);

// Emits `module`'s functions as bytecode. Constants are borrowed, not copied; kernels are referred
// to by name, and the caller adds their object.
vm::Unit emit_unit(const graph::Module& module);

}  // namespace tenon::codegen
