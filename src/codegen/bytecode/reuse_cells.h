// Takes the fields of cells apart where the cells are used for the last time, and makes new cells
// in their memory.
#pragma once

#include "codegen/bytecode/virtual_code.h"

namespace tenon::codegen {

// Where reading fields is a cell's last use, one take_fields replaces these reads: if nothing else
// refers to the cell, its fields move. On each way from there, the first alloc_adt of as many
// fields becomes a reuse_adt of the cell. (The idea is that of Ullrich and de Moura, "Counting
// Immutable Beans", 2019.) Expects last uses to be marked (liveness.h), and returns whether it
// changed the code: then liveness must be analysed again.
bool reuse_cells(VirtualCode* code);

}  // namespace tenon::codegen
