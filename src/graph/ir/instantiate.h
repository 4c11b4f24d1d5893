// Matching the parameters of what is called with the arguments of a call.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/ir/expr.h"

namespace tenon::graph {

// A call of a function of type `callee`: its type parameters and the symbols of its parameters are
// matched with the arguments. `what` names the callee in errors.
struct Instance {
  TypeRef result;
  Array<TypeRef> params;  // instantiated
  Map<String, TypeRef> type_args;
  std::vector<Ref<const Check>> conditions;  // not proved
};
Instance instantiate(const FunctionType& callee, const Array<Operand>& args,
                     const std::string& what);

// What the types of arguments bind: type parameters and symbols that stand alone in a parameter's
// type. Whether the rest agrees is asked afterwards, by require_fit with `apply`'s type.
class Matching {
 public:
  explicit Matching(const Array<String>& type_params) : type_params_(type_params) {}

  void bind(std::string_view symbol, const Dim& value);  // the first binding stays
  void match(const TypeRef& param, const TypeRef& arg);

  const Dim* find(std::string_view symbol) const;  // null: not bound
  const Map<String, TypeRef>& type_args() const { return type_args_; }
  // The type with all that is bound replaced.
  TypeRef apply(const TypeRef& type) const;

 private:
  void match_dims(const Array<Dim>& param, const Array<Dim>& arg);
  void match_dim(const Dim& param, const Dim& arg);

  Array<String> type_params_;
  Map<String, TypeRef> type_args_;
  std::vector<std::pair<std::string, Dim>> bound_;
};

// `from` must fit `to`, else a Usage error about `what`; equalities of sizes that aren't proved are
// added to `conditions`.
void require_fit(const TypeRef& from, const TypeRef& to, const std::string& what,
                 std::vector<Ref<const Check>>* conditions);

}  // namespace tenon::graph
