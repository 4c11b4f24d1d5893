// Matches the parameters of a callee with the arguments of a call.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "graph/ir/expr.h"
#include "graph/ir/variance.h"

namespace tenon::graph {

// Instantiates a function type for a call: matches its type parameters and the symbols of its
// parameters with the arguments. `what` names the callee in errors.
struct Instance {
  TypeRef result;
  Array<TypeRef> params;  // instantiated
  Map<String, TypeRef> type_args;
  std::vector<Ref<const Check>> conditions;  // not proved
};
Instance instantiate(const FunctionType& callee, const Array<Operand>& args,
                     const std::string& what, const Variances& variances);

// The types of a call's arguments.
Array<TypeRef> types_of(const Array<Operand>& args);
// Whether a call of the function is possible, with checks of sizes or without.
bool can_call(const FunctionExpr& callee, const Array<Operand>& args, const Variances& variances);
// Whether it needs no checks: the arguments are known to have the sizes that the function takes.
bool can_call_unchecked(const FunctionExpr& callee, const Array<Operand>& args,
                        const Variances& variances);

// Binds type parameters, and symbols that are a whole dimension or element of a parameter, to the
// types of arguments. Afterwards, require_fit with the result of `apply` checks everything else.
class Matching {
 public:
  Matching() = default;  // of symbols only
  // `variances` must outlive it.
  Matching(const Array<String>& type_params, const Variances& variances) : variances_(&variances) {
    for (const String& name : type_params) type_params_.insert(name.str());
  }

  void bind(std::string_view symbol, const Dim& value);  // keeps an earlier binding
  void match(const TypeRef& param, const TypeRef& arg);
  // Functions last: a type parameter that others determine isn't made less precise by the symbols
  // of a function's own type, whose values are those of the arguments that it gets.
  void match_all(const Array<TypeRef>& params, const Array<TypeRef>& args);

  const Dim* find(std::string_view symbol) const;  // null if not bound
  const Map<String, TypeRef>& type_args() const { return type_args_; }
  // The type with all bound names replaced.
  TypeRef apply(const TypeRef& type) const;

 private:
  void match_dims(const Array<Dim>& param, const Array<Dim>& arg);
  void match_dim(const Dim& param, const Dim& arg);

  std::unordered_set<std::string> type_params_;
  const Variances* variances_ = nullptr;  // null without type parameters
  Map<String, TypeRef> type_args_;
  std::map<std::string, Dim, std::less<>> bound_;
  int functions_around_ = 0;  // of the types that are being matched
  int exact_parts_ = 0;       // of data types that aren't covariant in them
};

// Throws a Usage error about `what`, at `span`, unless `from` fits `to`. Unproved equalities of
// sizes are added to `conditions`.
void require_fit(const TypeRef& from, const TypeRef& to, const std::string& what,
                 const Variances& variances, std::vector<Ref<const Check>>* conditions,
                 const Span& span = {});

}  // namespace tenon::graph
