// Emission: a lowered module becomes a Unit of the machine.
//
// What is left of graph IR at this point: kernel calls with destinations, calls of globals and
// packed functions, the memory intrinsics (graph/pass/intrinsic.h), arithmetic on scalars, if,
// loop, tuples, match_shape and check. Whatever else is met is refused with its span.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/module.h"
#include "vm/isa/unit.h"

namespace tenon::codegen {

// Names of the fields of a function's result, for the signature; may be empty.
using ResultNames = Map<String, Array<String>>;

// The type as a function's signature in a file states it: values that are known are left out.
vm::SignatureType signature_type(const graph::TypeRef& type);

// `module`'s functions as bytecode. Constants are borrowed, not copied; kernels are named, their
// object is the caller's to add.
vm::Unit emit_unit(const graph::Module& module, const ResultNames& result_names = {});

}  // namespace tenon::codegen
