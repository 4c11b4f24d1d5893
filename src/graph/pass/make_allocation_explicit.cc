#include "graph/pass/make_allocation_explicit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

bool takes_destination(const Call& call) {
  return call.kind == CalleeKind::kPacked && !memory_intrinsic(call) && awaits_destination(call);
}

std::vector<TypeRef> result_types(const TypeRef& type) {
  auto* tuple = type.as<TupleType>();
  return tuple ? std::vector<TypeRef>(tuple->fields.begin(), tuple->fields.end())
               : std::vector<TypeRef>{type};
}

// Finds the operands of kernel calls that results may overwrite: tensors that this block creates,
// that nothing else references, and whose last use is the call.
class Overwrites {
 public:
  Overwrites(const Module& module, const FunctionRef& function) : module_(module) {
    visit(function->body);
  }

  // The operand whose memory a result of the call reuses, or -1.
  int64_t operand_of(const Var* result, size_t index) const {
    auto it = taken_.find({result, index});
    return it == taken_.end() ? -1 : it->second;
  }

 private:
  // A tensor of the block that has only been used by calls that don't retain it.
  struct Own {
    int64_t last_use = -1;
    bool held = false;
  };

  void visit(const BlockRef& block) {
    std::unordered_map<const Var*, Own> own;
    auto hold = [&](const Operand& operand) {
      if (auto it = own.find(operand.as<Var>()); it != own.end()) it->second.held = true;
    };
    for (size_t i = 0; i < block->bindings.size(); ++i) {
      const Binding& binding = *block->bindings[i];
      auto* call = binding.value.as<Call>();
      const bool writes = call && (call->kind == CalleeKind::kKernel || takes_destination(*call));
      for_each_operand(binding.value, [&](const Operand& operand) {
        if (!writes) return hold(operand);
        auto it = own.find(operand.as<Var>());
        if (it != own.end()) it->second.last_use = static_cast<int64_t>(i);
      });
      for_each_block(binding.value, [&](const BlockRef& inner) {
        hold_all(inner, hold);
        visit(inner);
      });
      if (writes && binding.var->type.as<TensorType>()) own[binding.var.get()];
    }
    hold(block->result);
    for (size_t i = 0; i < block->bindings.size(); ++i) {
      const Binding& binding = *block->bindings[i];
      auto* call = binding.value.as<Call>();
      if (call && call->kind == CalleeKind::kKernel) choose(*call, binding.var, i, own);
    }
  }

  template <class Hold>
  static void hold_all(const BlockRef& block, const Hold& hold) {
    for (const auto& binding : block->bindings) {
      for_each_operand(binding->value, hold);
      for_each_block(binding->value, [&](const BlockRef& inner) { hold_all(inner, hold); });
    }
    hold(block->result);
  }

  void choose(const Call& call, const VarRef& var, size_t at,
              const std::unordered_map<const Var*, Own>& own) {
    const std::vector<TypeRef> types = result_types(var->type);
    std::vector<bool> used(call.args.size());
    for (const loop::InPlace& pair : module_->kernels.at(call.callee)->in_place) {
      const auto out = static_cast<size_t>(pair.output()), in = static_cast<size_t>(pair.input());
      const Operand& operand = call.args[in];
      auto it = own.find(operand.as<Var>());
      if (it == own.end() || it->second.held || used[in] || taken_.contains({var.get(), out}) ||
          it->second.last_use != static_cast<int64_t>(at) ||
          !same_tensor(type_of(operand), types[out])) {
        continue;
      }
      const auto same = [&](const Operand& other) { return other.get() == operand.get(); };
      if (std::count_if(call.args.begin(), call.args.end(), same) != 1) continue;
      used[in] = true;
      taken_[{var.get(), out}] = static_cast<int64_t>(in);
    }
  }

  const Module& module_;
  std::map<std::pair<const Var*, size_t>, int64_t> taken_;
};

class Allocator : public Rewriter {
 public:
  explicit Allocator(const Module& module) : module_(module) {}

 protected:
  void enter(const FunctionRef& function) override { overwrites_.emplace(module_, function); }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    auto* call = value.as<Call>();
    if (!call) return keep(var, value);
    if (call->kind == CalleeKind::kKernel) {
      const std::vector<TypeRef> types = result_types(var->type);
      if (types.empty()) return keep(var, value);
      std::vector<Operand> results;
      for (size_t i = 0; i < types.size(); ++i) {
        const int64_t over = overwrites_->operand_of(var.get(), i);
        results.push_back(over >= 0 ? call->args[static_cast<size_t>(over)]
                                    : new_tensor(types[i], var->name));
      }
      call_kernel(*call, results);
      if (!var->type.as<TupleType>()) return results[0];
      return builder().bind_typed(make<Tuple>(Array<Operand>(results)), var->type, var->name);
    }
    if (takes_destination(*call)) return call_with_destination(*call, var);
    const Operator* op = operator_of(value);
    if (op && op->view) {
      return builder().bind_stated(reshape_call(call->args[0], var->type.cast<TensorType>()),
                                   var->name);
    }
    return keep(var, value);
  }

 private:
  Operand new_tensor(const TypeRef& type, std::string_view hint) {
    const auto tensor = type.cast<TensorType>();
    TENON_ASSERT(tensor && tensor->dims_known, "a kernel's result has known dimensions, not ",
                 to_text(type));
    const Operand storage =
        builder().bind_stated(storage_call(bytes_of(*tensor), tensor->device), "s");
    return builder().bind_stated(tensor_call(storage, Dim(0), tensor), hint);
  }

  // Calls a packed function that writes its one result into a tensor after its operands.
  Operand call_with_destination(const Call& call, const VarRef& var) {
    Operand result = new_tensor(var->type, var->name);
    std::vector<Operand> args(call.args.begin(), call.args.end());
    args.push_back(result);
    Attrs attributes = call.attrs;
    attributes.erase(String(kDestinationsAttr));
    builder().bind_stated(
        make_call(CalleeKind::kPacked, call.callee, args, attributes, unit_type()));
    return result;
  }

  void call_kernel(const Call& call, const std::vector<Operand>& results) {
    std::vector<Operand> args(call.args.begin(), call.args.end());
    args.insert(args.end(), results.begin(), results.end());
    builder().bind_typed(make_call(CalleeKind::kKernel, call.callee, args, call.attrs, unit_type()),
                         unit_type(), "");
  }

  const Module& module_;
  std::optional<Overwrites> overwrites_;
};

}  // namespace

Module make_allocation_explicit(const Module& module, PassContext&) {
  return Allocator(module).run(module);
}

}  // namespace tenon::graph
