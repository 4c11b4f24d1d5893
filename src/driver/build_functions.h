// Packed functions (functions.def) with which a host builds a function of its module step by step.
// build_values.h says what may be given as an operand, a type or a size.
#pragma once

#include "driver/build_module.h"
#include "object/function.h"

namespace tenon::driver {

void build_at(const BuilderRef& builder, const String& node);
graph::Operand build_param(const BuilderRef& builder, const String& name, const Any& type);
graph::Operand build_op(const BuilderRef& builder, const String& op, const Array<Any>& arguments,
                        const Any& attributes);
graph::Operand build_call(const BuilderRef& builder, const String& function,
                          const Array<Any>& arguments, const Array<Any>& type_arguments);
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
graph::Operand build_bind(const BuilderRef& builder, const graph::ExprRef& value,
                          const String& name);
Any build_node(const String& type_key, const Map<String, Any>& fields);

}  // namespace tenon::driver
