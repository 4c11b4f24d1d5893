// A module: global functions, kernels, algebraic data types. Immutable; a pass returns another one.
#pragma once

#include "graph/ir/expr.h"
#include "loop/kernel.h"

namespace tenon::graph {

struct Constructor : Object {
  String name;
  Array<TypeRef> fields;
  static const TypeInfo& type_info();
};

struct AdtDefinition : Object {
  String name;
  Array<String> type_params;
  Array<Ref<const Constructor>> constructors;
  static const TypeInfo& type_info();
};

struct ModuleNode : Object {
  Map<String, FunctionRef> functions;  // insertion order is printing order
  Map<String, loop::KernelRef> kernels;
  Map<String, Ref<const AdtDefinition>> adts;  // beside the prelude's option and list
  static const TypeInfo& type_info();
};
using Module = Ref<const ModuleNode>;

Module make_module(Map<String, FunctionRef> functions, Map<String, loop::KernelRef> kernels = {},
                   Map<String, Ref<const AdtDefinition>> adts = {});

}  // namespace tenon::graph
