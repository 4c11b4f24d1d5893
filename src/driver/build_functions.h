// Packed functions with which a host builds a module step by step. functions.def documents them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/ir/text.h"
#include "object/array.h"
#include "object/function.h"

namespace tenon::driver {

// A module that a host builds: what texts define for it, and functions, one after the other.
struct BuilderObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::CompilerBuilder;
  static constexpr int32_t kTypeLast = kTypeIndex;

  graph::Definitions defined;  // by texts
  Map<String, graph::TypeRef> declared;
  graph::Signatures known;                    // what its functions may name
  Map<String, graph::FunctionRef> functions;  // that are built

  std::optional<graph::Builder> function;  // the one that is being built
  Array<String> type_params;               // its
};
using BuilderRef = Ref<BuilderObj>;

// Registers this file's types, so that messages can name them. May be called repeatedly.
void register_build_types();

// Every operand may also be given as a number, boolean, tensor, shape or string, which becomes a
// constant; a type also as text, and a size as an integer or text.
graph::TypeRef build_type(const String& text);
graph::Operand build_constant(const Any& value);
BuilderRef build_begin();
void build_import(const BuilderRef& builder, const String& file, const String& name,
                  const Any& options);
void build_define(const BuilderRef& builder, const String& text);
void build_declare(const BuilderRef& builder, const String& function, const Any& type);
void build_type_param(const BuilderRef& builder, const String& name);
void build_at(const BuilderRef& builder, const String& node);
graph::Operand build_param(const BuilderRef& builder, const String& name, const Any& type);
graph::Operand build_op(const BuilderRef& builder, const String& op, const Array<Any>& arguments,
                        const Any& attributes);
graph::Operand build_call(const BuilderRef& builder, const String& function,
                          const Array<Any>& arguments);
graph::Operand build_call_packed(const BuilderRef& builder, const String& function,
                                 const Array<Any>& arguments, const Any& result);
graph::Operand build_call_closure(const BuilderRef& builder, const Any& closure,
                                  const Array<Any>& arguments);
graph::Operand build_tuple(const BuilderRef& builder, const Array<Any>& fields);
graph::Operand build_field(const BuilderRef& builder, const Any& tuple, int64_t index);
graph::Operand build_match_shape(const BuilderRef& builder, const Any& value,
                                 const Array<Any>& sizes);
graph::Operand build_match_elements(const BuilderRef& builder, const Any& value,
                                    const Array<Any>& sizes);
void build_check(const BuilderRef& builder, const String& kind, const Any& left, const Any& right,
                 const String& message);
graph::Operand build_if(const BuilderRef& builder, const Any& condition, const Function& then,
                        const Function& otherwise);
graph::Operand build_loop(const BuilderRef& builder, const Array<String>& names,
                          const Array<Any>& types, const Array<Any>& init,
                          const Function& condition, const Function& body);
graph::Operand build_function(const BuilderRef& builder, const String& self,
                              const Array<String>& names, const Array<Any>& types,
                              const Any& result, const Function& body);
graph::Operand build_construct(const BuilderRef& builder, const String& constructor,
                               const Array<Any>& fields, const Any& type);
graph::Operand build_match(const BuilderRef& builder, const Any& value,
                           const Array<String>& patterns, const Array<Function>& arms);
graph::Operand build_closure(const BuilderRef& builder, const String& function,
                             const Array<Any>& arguments, const Array<Any>& type_arguments);
graph::Operand build_array(const BuilderRef& builder, const Any& type, const Array<Any>& elements);
graph::Operand build_size(const BuilderRef& builder, const Any& size);
graph::Operand build_scalar(const String& dtype, const Any& value);
graph::Operand build_bind(const BuilderRef& builder, const graph::ExprRef& value,
                          const String& name);
Any build_node(const String& type_key, const Map<String, Any>& fields);
void build_finish(const BuilderRef& builder, const String& name, const Any& result,
                  const Any& attributes);
void build_discard(const BuilderRef& builder);
graph::Module build_module(const BuilderRef& builder);

}  // namespace tenon::driver
