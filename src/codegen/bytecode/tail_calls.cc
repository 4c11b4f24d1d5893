#include "codegen/bytecode/tail_calls.h"

#include <algorithm>
#include <map>
#include <vector>

#include "graph/ir/calls.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only

namespace {

// Finds functions in values of a type, those in fields of data types included.
class FunctionsIn {
 public:
  explicit FunctionsIn(const Signatures& signatures) : signatures_(signatures) {}

  bool any(const TypeRef& type) {
    const auto in = [this](const TypeRef& part) { return any(part); };
    if (type.is<FunctionType>()) return true;
    if (const auto* tuple = type.as<TupleType>()) return std::ranges::any_of(tuple->fields, in);
    if (const auto* array = type.as<ArrayType>()) return any(array->element);
    const auto* adt = type.as<AdtType>();
    if (!adt) return false;
    if (std::ranges::any_of(adt->args, in)) return true;
    const AdtDefinition* definition = signatures_.find_type(adt->name);
    if (!definition || !seen_.insert(adt->name).second) return false;
    return std::ranges::any_of(definition->constructors, [&](const auto& constructor) {
      return std::ranges::any_of(constructor->fields, in);
    });
  }

 private:
  const Signatures& signatures_;
  std::set<String> seen_;  // those without, apart from their arguments
};

// Whether a function of the host, called here, gives one.
bool gets_function(const Block& block, FunctionsIn* functions) {
  return std::ranges::any_of(block.bindings, [&](const auto& binding) {
    const auto* call = binding->value.template as<Call>();
    const bool is_host = call && call->kind == CalleeKind::kPacked && !memory_intrinsic(*call) &&
                         !signature_of(*call);
    if (is_host && functions->any(binding->var->type)) return true;
    bool inside = false;
    for_each_block(binding->value,
                   [&](const BlockRef& inner) { inside |= gets_function(*inner, functions); });
    return inside;
  });
}

// Calls `f` with each call in tail position.
template <class F>
void for_each_tail_call(const Block& block, const F& f) {
  if (block.bindings.empty()) return;
  const Binding& last = *block.bindings[block.bindings.size() - 1];
  if (!is_result(block, last)) return;
  if (const auto* call = last.value.as<Call>()) return f(*call);
  if (last.value.is<If>() || last.value.is<Match>()) {
    for_each_block(last.value, [&](const BlockRef& inner) { for_each_tail_call(*inner, f); });
  }
}

}  // namespace

bool has_sizes(const TypeRef& type) {
  if (const auto* tuple = type.as<TupleType>())
    return std::ranges::any_of(tuple->fields, has_sizes);
  const auto* scalar = type.as<ScalarType>();
  const auto* shape = type.as<ShapeType>();
  return type.is<TensorType>() || (scalar && scalar->value_known) || (shape && shape->dims_known);
}

TailCalls::TailCalls(const Module& module, const Signatures& signatures)
    : referred_(referred_functions(module->functions)) {
  FunctionsIn functions(signatures);
  for (const auto& [name, function] : module->functions) {
    has_host_functions_ =
        has_host_functions_ || gets_function(*function->body, &functions) ||
        (function->is_exported() && std::ranges::any_of(function->params, [&](const VarRef& p) {
           return functions.any(p->type);
         }));
  }
  if (!has_host_functions_) return;
  std::map<String, std::vector<String>> callers;  // in tail position
  std::vector<String> found;
  const auto add = [&](const String& name) {
    if (unchecked_.insert(name).second) found.push_back(name);
  };
  for (const auto& [name, function] : module->functions) {
    if (!referred_.contains(name) || !has_sizes(function->result_type)) continue;
    for_each_tail_call(*function->body, [&](const Call& call) {
      if (call.kind == CalleeKind::kClosure) add(name);
      if (call.kind == CalleeKind::kGlobal) callers[call.callee].push_back(name);
    });
  }
  while (!found.empty()) {
    const String next = found.back();
    found.pop_back();
    for (const String& caller : callers[next]) add(caller);
  }
}

}  // namespace tenon::codegen
