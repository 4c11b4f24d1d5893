// Instructions whose work is more than a few machine instructions: one function per opcode. Each
// reads its operands from the frame at `base`, writes its result, releases last uses, and throws
// what is wrong. None enters other code of the program.
#pragma once

#include "vm/interp/machine.h"
#include "vm/interp/op.h"

namespace tenon::vm::slow_path {

void binary(Machine& m, const Op& op, AnyView* base);
void not_(Machine& m, const Op& op, AnyView* base);
void narrow(Machine& m, const Op& op, AnyView* base);
void select(Machine& m, const Op& op, AnyView* base);
void check(Machine& m, const Op& op, AnyView* base);
[[noreturn]] void fatal(Machine& m, const Op& op, AnyView* base);
void load_packed(Machine& m, const Op& op, AnyView* base);
void is_none(Machine& m, const Op& op, AnyView* base);

void alloc_storage(Machine& m, const Op& op, AnyView* base);
void alloc_tensor(Machine& m, const Op& op, AnyView* base);
void alloc_tensor_reg(Machine& m, const Op& op, AnyView* base);
void new_tensor(Machine& m, const Op& op, AnyView* base);
void reshape_tensor(Machine& m, const Op& op, AnyView* base);
void reshape_tensor_reg(Machine& m, const Op& op, AnyView* base);
void shape_of(Machine& m, const Op& op, AnyView* base);
void device_copy(Machine& m, const Op& op, AnyView* base);
void read_elements(Machine& m, const Op& op, AnyView* base);
void make_tensor(Machine& m, const Op& op, AnyView* base);

void match_shape(Machine& m, const Op& op, AnyView* base);
void match_tensor(Machine& m, const Op& op, AnyView* base);
void match_dtype(Machine& m, const Op& op, AnyView* base);
void match_prim_value(Machine& m, const Op& op, AnyView* base);
void make_shape(Machine& m, const Op& op, AnyView* base);
void get_dim(Machine& m, const Op& op, AnyView* base);
void rank_of(Machine& m, const Op& op, AnyView* base);

void alloc_adt(Machine& m, const Op& op, AnyView* base);
void alloc_tuple(Machine& m, const Op& op, AnyView* base);
void get_field(Machine& m, const Op& op, AnyView* base);
void get_tag(Machine& m, const Op& op, AnyView* base);
void alloc_closure(Machine& m, const Op& op, AnyView* base);

}  // namespace tenon::vm::slow_path
