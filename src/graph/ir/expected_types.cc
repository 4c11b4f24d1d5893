#include "graph/ir/expected_types.h"

#include <algorithm>

namespace tenon::graph {

ExpectedTypes::ExpectedTypes(const Array<String>& type_params, Array<TypeRef> params,
                             const TypeRef& result, const TypeRef& expected,
                             const Variances& variances)
    : type_params_(type_params),
      params_(std::move(params)),
      given_(type_params, variances),
      wanted_(type_params, variances) {
  wanted_.match(result, expected);
}

void ExpectedTypes::state(const Array<TypeRef>& type_args) {
  for (size_t i = 0; i < std::min(type_args.size(), type_params_.size()); ++i) {
    wanted_.match(type_var(type_params_[i]), type_args[i]);
  }
}

TypeRef ExpectedTypes::type_arg(const String& name) const {
  if (const TypeRef* given = given_.type_args().find(name)) return *given;
  if (const TypeRef* wanted = wanted_.type_args().find(name)) return *wanted;
  return nullptr;
}

TypeRef ExpectedTypes::of(size_t index) const {
  if (index >= params_.size()) return nullptr;
  const bool unknown = mentions_type_var(params_[index], [&](std::string_view name) {
    return std::ranges::find(type_params_, name, &String::view) != type_params_.end() &&
           !type_arg(String(name));
  });
  if (unknown) return nullptr;
  // All names are replaced at once: the caller's may be the same words.
  Matching known = given_;
  for (const String& name : type_params_) {
    if (!given_.type_args().contains(name)) known.match(type_var(name), type_arg(name));
  }
  // Symbols of the callee that no argument has bound yet mean nothing to the caller.
  return known.apply(erase_symbols(
      params_[index], [&](std::string_view symbol) { return given_.find(symbol) != nullptr; }));
}

void ExpectedTypes::add(size_t index, const Operand& arg) {
  if (index < params_.size() && arg) given_.match(params_[index], type_of(arg));
}

Array<TypeRef> ExpectedTypes::type_args() const {
  Array<TypeRef> out;
  for (const String& name : type_params_) {
    const TypeRef arg = type_arg(name);
    if (!arg) return {};
    out.push_back(arg);
  }
  return out;
}

bool ExpectedTypes::arguments_determine() const {
  return std::ranges::all_of(type_params_,
                             [&](const String& name) { return given_.type_args().contains(name); });
}

Array<TypeRef> type_args_for(const FunctionType& function, const TypeRef& expected,
                             const Variances& variances) {
  const auto* wanted = expected ? type_as<FunctionType>(expected) : nullptr;
  if (!wanted || wanted->params.size() != function.params.size()) return {};
  Matching matching(function.type_params, variances);
  for (size_t i = 0; i < function.params.size(); ++i) {
    matching.match(function.params[i], wanted->params[i]);
  }
  matching.match(function.result, wanted->result);
  Array<TypeRef> out;
  for (const String& name : function.type_params) {
    const TypeRef* arg = matching.type_args().find(name);
    if (!arg) return {};
    out.push_back(*arg);
  }
  return out;
}

}  // namespace tenon::graph
