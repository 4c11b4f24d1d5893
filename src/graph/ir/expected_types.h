// The types that a callee or constructor expects of its arguments, as far as they are known while
// the arguments are read: from the type that the result should have, and from the arguments that
// were read before.
#pragma once

#include "graph/ir/instantiate.h"

namespace tenon::graph {

class ExpectedTypes {
 public:
  // `params` are those of the function or the fields of the constructor; `result` is its result's
  // type, and `expected` the type that the result should have, or null.
  ExpectedTypes(const Array<String>& type_params, Array<TypeRef> params, const TypeRef& result,
                const TypeRef& expected, const Variances& variances);

  // Uses the type arguments that the text states, in the order of the parameters.
  void state(const Array<TypeRef>& type_args);

  // What the argument's type should be; null if unknown.
  TypeRef of(size_t index) const;
  // Takes an argument, which may be absent.
  void add(size_t index, const Operand& arg);

  // The type arguments, empty unless all are known; and whether the arguments alone determine them.
  Array<TypeRef> type_args() const;
  bool arguments_determine() const;

 private:
  TypeRef type_arg(const String& name) const;  // null if unknown

  Array<String> type_params_;
  Array<TypeRef> params_;
  Matching given_, wanted_;
};

// The type arguments with which a function has the type `expected`; empty unless it determines all.
Array<TypeRef> type_args_for(const FunctionType& function, const TypeRef& expected,
                             const Variances& variances);

}  // namespace tenon::graph
