#include "graph/ir/tail_calls.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "graph/ir/calls.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"

namespace tenon::graph {
namespace {

// Finds functions that count in values of a type, those in fields of data types included.
class FunctionsIn {
 public:
  using Counts = std::function<bool(const FunctionType&)>;
  FunctionsIn(const Signatures& signatures, Counts counts)
      : signatures_(signatures), counts_(std::move(counts)) {}

  bool any(const TypeRef& type) {
    const auto in = [this](const TypeRef& part) { return any(part); };
    if (const auto* function = type.as<FunctionType>()) return counts_(*function);
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
  Counts counts_;
  std::set<String> seen_;  // those without, apart from their arguments
};

bool mentions_any_type_var(const TypeRef& type) {
  return mentions_type_var(type, [](std::string_view) { return true; });
}

// Whether the host may give functions to a program: as arguments and as results of its functions,
// or as arguments of functions of the program that it gets.
class HostFunctions {
 public:
  explicit HostFunctions(const Signatures& signatures)
      : functions_(signatures, [](const FunctionType&) { return true; }),
        takers_(signatures, [this](const FunctionType& f) {
          return takers_.any(f.result) ||
                 std::ranges::any_of(f.params, [&](const TypeRef& p) { return functions_.any(p); });
        }) {}

  bool may_enter(const FunctionExpr& function) {
    const bool enter_here =
        function.is_exported() && (takers_.any(function.result_type) ||
                                   std::ranges::any_of(function.params, [&](const VarRef& p) {
                                     return functions_.any(p->type);
                                   }));
    return enter_here || may_enter(*function.body);
  }

 private:
  bool may_enter(const Block& block) {
    return std::ranges::any_of(block.bindings, [&](const auto& binding) {
      const auto* call = binding->value.template as<Call>();
      const bool is_host = call && call->kind == CalleeKind::kPacked && !memory_intrinsic(*call) &&
                           !signature_of(*call);
      if (is_host && may_enter(*call, binding->var->type)) return true;
      bool inside = false;
      for_each_block(binding->value, [&](const BlockRef& inner) { inside |= may_enter(*inner); });
      return inside;
    });
  }

  bool may_enter(const Call& call, const TypeRef& result) {
    return functions_.any(result) || mentions_any_type_var(result) ||
           std::ranges::any_of(call.args, [&](const Operand& arg) {
             return arg && (takers_.any(type_of(arg)) || mentions_any_type_var(type_of(arg)));
           });
  }

  FunctionsIn functions_, takers_;
};

const String kClosures;

// Which functions, and closures, give what which others give.
class Origins {
 public:
  explicit Origins(const Module& module) {
    for (const auto& [name, function] : module->functions) collect(name, *function->body, true);
  }

  // Of what functions and closures give.
  const std::vector<String>& passed_on_by(const String& origin) { return passed_on_by_[origin]; }

 private:
  void collect(const String& function, const Block& block, bool tail) {
    for (const auto& binding : block.bindings) {
      const ExprRef& value = binding->value;
      const bool in_tail = tail && is_result(block, *binding);
      const auto* call = value.as<Call>();
      if (call && in_tail && call->kind == CalleeKind::kGlobal) add(call->callee, function);
      if (call && in_tail && call->kind == CalleeKind::kClosure) add(kClosures, function);
      if (const auto* closure = value.as<Closure>()) add(closure->function, kClosures);
      const bool is_literal = value.is<FunctionExpr>();
      const bool yields = is_literal || (in_tail && (value.is<If>() || value.is<Match>()));
      for_each_block(value, [&](const BlockRef& inner) {
        collect(is_literal ? kClosures : function, *inner, yields);
      });
    }
  }
  void add(const String& origin, const String& passes_on) {
    passed_on_by_[origin].push_back(passes_on);
  }

  std::map<String, std::vector<String>> passed_on_by_;
};

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
  std::vector<String> found;
  const auto add = [&](const String& name) {
    if (unchecked_.insert(name).second) found.push_back(name);
  };
  HostFunctions host(signatures);
  for (const auto& [name, function] : module->functions) {
    if (mentions_any_type_var(function->result_type)) add(name);
    if (!closures_are_unchecked() && host.may_enter(*function)) add(kClosures);
  }
  if (found.empty()) return;
  Origins origins(module);
  while (!found.empty()) {
    const String next = found.back();
    found.pop_back();
    for (const String& name : origins.passed_on_by(next)) {
      const FunctionRef* function = module->functions.find(name);  // null: closures
      if (!function || (referred_.contains(name) && has_sizes((*function)->result_type))) add(name);
    }
  }
}

}  // namespace tenon::graph
