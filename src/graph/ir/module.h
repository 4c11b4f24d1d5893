// A module: global functions, kernels, algebraic data types. Immutable; a pass returns another one.
#pragma once

#include "graph/ir/expr.h"
#include "loop/compute.h"

namespace tenon::graph {

struct Constructor : Object {
  String name;
  Array<TypeRef> fields;
  TENON_TYPE(TypeIndex::GraphBegin + 0x43);
};

struct AdtDefinition : Object {
  String name;
  Array<String> type_params;
  Array<Ref<const Constructor>> constructors;
  TENON_TYPE(TypeIndex::GraphBegin + 0x44);
};

struct ModuleNode : Object {
  Map<String, FunctionRef> functions;  // insertion order is printing order
  // What code is made of: computes, as lowering makes them, and loop nests that a program in text
  // brings (loop::Kernel).
  Map<String, loop::KernelInterfaceRef> kernels;
  Map<String, Ref<const AdtDefinition>> adts;  // beside the prelude's option and list
  TENON_TYPE(TypeIndex::GraphBegin + 0x45);
};
using Module = Ref<const ModuleNode>;

Module make_module(Map<String, FunctionRef> functions,
                   Map<String, loop::KernelInterfaceRef> kernels = {},
                   Map<String, Ref<const AdtDefinition>> adts = {});

// option[T] = None | Some(T)   list[T] = Nil | Cons(T, list[T])
const Map<String, Ref<const AdtDefinition>>& prelude();

// The tables of all types of this room (and of src/loop), once before use; again is fine.
void register_graph_types();

}  // namespace tenon::graph
