#include "graph/pass/lower_to_kernels.h"

#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/instantiate.h"
#include "graph/ir/outline.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"
#include "graph/op/lower.h"
#include "graph/pass/fuse_operators.h"
#include "graph/pass/remove_dead_code.h"
#include "object/reflect.h"

namespace tenon::graph {
namespace {

// Symbols of the types and attributes of a primitive function, in the order of first appearance.
SymbolSet symbols_of(const FunctionRef& primitive) {
  SymbolSet names;
  for (const VarRef& param : primitive->params) collect_symbols(param->type, &names);
  for (const auto& binding : primitive->body->bindings) {
    auto* call = binding->value.as<Call>();
    if (!call) continue;
    collect_symbols(binding->var->type, &names);
    collect_symbols(call->attrs, &names);
  }
  return names;
}

// Whether each parameter is used in the body. The others only bind sizes, which a kernel takes as
// integers.
std::vector<bool> used_params(const FunctionRef& primitive) {
  const auto uses = count_uses(primitive);
  std::vector<bool> used;
  for (const VarRef& param : primitive->params) used.push_back(uses.contains(param.get()));
  return used;
}

// The primitive with its symbols renamed to s0, s1, ..., without checks and parameters that only
// bind sizes. `number` receives the index in `symbols` of each new name.
FunctionRef rename_symbols(const FunctionRef& primitive, const SymbolSet& symbols,
                           std::unordered_map<std::string, size_t>* number) {
  std::unordered_map<std::string, std::string> names;
  for (size_t i = 0; i < symbols.size(); ++i) {
    names[symbols[i]] = cat("s", i);
    (*number)[names[symbols[i]]] = i;
  }
  const DimSubstitution rename = [&](std::string_view symbol) -> std::optional<Dim> {
    return Dim::symbol(names.at(std::string(symbol)));
  };
  Outline outline;
  outline.builder().at(primitive->span);
  const std::vector<bool> used = used_params(primitive);
  for (size_t i = 0; i < used.size(); ++i) {
    const VarRef& param = primitive->params[i];
    if (!used[i]) continue;
    outline.param(param, param->name, substitute(without_known_values(param->type), rename));
  }
  for (const auto& binding : primitive->body->bindings) {
    auto* call = binding->value.as<Call>();
    if (!call) continue;  // a check, which the kernel's caller makes
    outline.copy(*binding, substitute(without_known_values(binding->var->type), rename),
                 substitute(call->attrs, rename));
  }
  return outline.finish(primitive->name, outline.mapped(primitive->body->result),
                        attrs({{kPrimitiveAttr, Any(true)}}));
}

// Replaces calls of primitive functions by calls of kernels.
class KernelCaller : public Rewriter {
 public:
  Module lower(const Module& module) {
    source_ = module;
    kernels_ = module->kernels;  // those of the program's text
    Map<String, FunctionRef> rest;
    for (const auto& [name, function] : module->functions) {
      if (!function->is_primitive()) rest.set(name, function);
    }
    Module rewritten = run(make_module(rest, module->kernels, module->adts));
    return make_module(rewritten->functions, kernels_, module->adts);
  }

 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    auto* call = value.as<Call>();
    if (call && call->kind == CalleeKind::kOperator) return rewrite_operator(var, value, *call);
    if (!call || call->kind != CalleeKind::kGlobal) return keep(var, value);
    auto found = source_->functions.find(call->callee);
    if (!found || !(*found)->is_primitive()) return keep(var, value);
    const Use& use = kernel_for(*found);
    const DimSubstitution here = symbols_here(**found, *call);
    // The kernel relies on the function's checks. The builder leaves out those that the caller has
    // made, as for a group that fusion took out of it.
    for (const auto& binding : (*found)->body->bindings) {
      if (auto* check = binding->value.as<Check>()) {
        builder().check(check->kind, tenon::substitute(check->left, here),
                        tenon::substitute(check->right, here), check->message.view());
      }
    }
    std::vector<Dim> integers;
    for (const Dim& integer : use.integers) integers.push_back(tenon::substitute(integer, here));
    std::vector<Operand> args;
    for (size_t i : use.params) args.push_back(call->args[i]);
    // A kernel with one output returns the tensor itself.
    auto* tuple = var->type.as<TupleType>();
    const bool wrapped = tuple && tuple->fields.size() == 1;
    const TypeRef type = wrapped ? tuple->fields[0] : var->type;
    const Operand result =
        builder().bind_typed(make_call(CalleeKind::kKernel, use.name, args,
                                       attrs({{kIntegersAttr, attr_dims(integers)}}), type),
                             type, var->name);
    return wrapped ? builder().tuple({result}) : result;
  }

 private:
  // The values of a function's symbols at a call.
  DimSubstitution symbols_here(const FunctionExpr& function, const Call& call) const {
    const TypeRef type = type_of(function);
    const Instance instance =
        instantiate(*type.as<FunctionType>(), call.args, cat("@", call.callee), variances());
    std::unordered_map<std::string, Dim> symbols;
    auto bind = [&](const Array<Dim>& names, const Array<Dim>& here) {
      for (size_t i = 0; i < names.size(); ++i) {
        if (names[i].kind() == DimKind::kSymbol) {
          symbols.try_emplace(names[i].node().name.str(), here[i]);
        }
      }
    };
    for (size_t i = 0; i < function.params.size(); ++i) {
      const TypeRef &param = function.params[i]->type, &here = instance.params[i];
      if (auto* tensor = param.as<TensorType>()) {
        bind(tensor->dims, here.as<TensorType>()->dims);
        bind(tensor->values, here.as<TensorType>()->values);
      } else if (auto* scalar = param.as<ScalarType>(); scalar && scalar->value_known) {
        bind({scalar->value}, {here.as<ScalarType>()->value});
      }
    }
    return [symbols](std::string_view name) -> std::optional<Dim> {
      auto it = symbols.find(std::string(name));
      return it == symbols.end() ? std::nullopt : std::optional(it->second);
    };
  }

  // Calls the packed function of an operator with all operands, then the attributes.
  Operand rewrite_operator(const VarRef& var, const ExprRef& value, const Call& call) {
    const Operator* op = operator_of(call);
    if (!op || !op->packed) return keep(var, value);
    return builder().bind_typed(as_packed_call(*op, call, var->type), var->type, var->name);
  }

  // How calls of a primitive function become calls of a kernel.
  struct Use {
    String name;                 // the kernel's
    std::vector<Dim> integers;   // the function's symbols that it takes as integers
    std::vector<size_t> params;  // the parameters that are operands
  };

  const Use& kernel_for(const FunctionRef& primitive) {
    auto [it, fresh] = uses_.try_emplace(primitive.get());
    if (!fresh) return it->second;
    if (auto obstacle = find_obstacle(*primitive)) {
      throw Error(ErrorKind::Usage, obstacle->span,
                  cat("@", primitive->name, " can't be one kernel"))
          .found(obstacle->found)
          .expected("calls of operators that have kernels, on tensors of known dimensions")
          .help("leave out primitive=true");
    }
    const SymbolSet symbols = symbols_of(primitive);
    const Lowered& lowered = lower(primitive, symbols);
    Use use{lowered.name, {}, {}};
    for (size_t number : lowered.integers) use.integers.push_back(Dim::symbol(symbols[number]));
    const std::vector<bool> used = used_params(primitive);
    for (size_t i = 0; i < used.size(); ++i) {
      if (used[i]) use.params.push_back(i);
    }
    return it->second = std::move(use);
  }

  // A kernel that was made of a primitive function.
  struct Lowered {
    FunctionRef renamed;
    String name;
    std::vector<size_t> integers;  // the numbers of their symbols
  };

  // Equal primitives share a kernel.
  const Lowered& lower(const FunctionRef& primitive, const SymbolSet& symbols) {
    std::unordered_map<std::string, size_t> number;  // keyed by the new name
    const FunctionRef renamed = rename_symbols(primitive, symbols, &number);
    // Equality of functions ignores names and spans; the hash bucket keeps comparisons few.
    std::deque<Lowered>& bucket = by_hash_[structural_hash(Any(renamed))];
    for (const Lowered& other : bucket) {
      if (structural_equal(Any(other.renamed), Any(renamed))) return other;
    }
    // A fused group is named again with its symbols renamed, because other groups may share its
    // kernel.
    const std::string name =
        free_name(primitive->is_fused() ? fused_name(*renamed) : primitive->name.str(), kernels_);
    const loop::ComputeRef compute = lower_primitive(renamed);
    Lowered& made = bucket.emplace_back(Lowered{renamed, String(name), {}});
    for (const String& integer : compute->integers) {
      made.integers.push_back(number.at(integer.str()));
    }
    kernels_.set(made.name, compute);
    return made;
  }

  Module source_;
  Map<String, loop::KernelInterfaceRef> kernels_;
  std::unordered_map<const Object*, Use> uses_;
  std::unordered_map<uint64_t, std::deque<Lowered>> by_hash_;
};

}  // namespace

Module lower_to_kernels(const Module& module, PassContext& cx) {
  // Arguments that only bound sizes of a primitive function may be unused now.
  return remove_dead_code(KernelCaller().lower(module), cx);
}

}  // namespace tenon::graph
