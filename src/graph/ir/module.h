// A module has global functions, kernels and algebraic data types. It is immutable; a pass returns
// a new module.
#pragma once

#include "graph/ir/expr.h"
#include "loop/compute.h"

namespace tenon::graph {

struct Constructor : Object {
  String name;
  Array<TypeRef> fields;
  TENON_TYPE(TypeIndex::GraphConstructor);
};

struct AdtDefinition : Object {
  String name;
  Array<String> type_params;
  Array<Ref<const Constructor>> constructors;
  TENON_TYPE(TypeIndex::GraphAdtDefinition);
};

struct ModuleNode : Object {
  Map<String, FunctionRef> functions;  // insertion order is printing order
  // Computes, which lowering makes, and loop nests from textual programs (loop::Kernel).
  Map<String, loop::KernelInterfaceRef> kernels;
  Map<String, Ref<const AdtDefinition>> adts;  // in addition to the prelude's option and list
  TENON_TYPE(TypeIndex::GraphModuleNode);
};
using Module = Ref<const ModuleNode>;

Module make_module(Map<String, FunctionRef> functions,
                   Map<String, loop::KernelInterfaceRef> kernels = {},
                   Map<String, Ref<const AdtDefinition>> adts = {});

// option[T] = None | Some(T)   list[T] = Nil | Cons(T, list[T])
const Map<String, Ref<const AdtDefinition>>& prelude();

// Registers the types of this folder and of src/loop. Call it before use; may be called repeatedly.
void register_graph_types();

}  // namespace tenon::graph
