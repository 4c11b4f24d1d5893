#include "graph/pass/make_allocation_explicit.h"

#include "graph/ir/intrinsic.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

class Allocator : public Rewriter {
 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    auto* call = value.as<Call>();
    if (!call) return keep(var, value);
    if (call->kind == CalleeKind::kKernel && !var->type.as<TupleType>()) {
      Operand result = new_tensor(var->type, var->name);
      call_kernel(*call, {result});
      return result;
    }
    if (call->kind == CalleeKind::kKernel && !var->type.as<TupleType>()->fields.empty()) {
      std::vector<Operand> results;
      for (const TypeRef& field : var->type.as<TupleType>()->fields) {
        results.push_back(new_tensor(field, var->name));
      }
      call_kernel(*call, results);
      return builder().bind_typed(make<Tuple>(Array<Operand>(results)), var->type, var->name);
    }
    if (auto* count = call->attrs.find(kDestinationsAttr);
        count && count->as<int64_t>() == 1 && call->kind == CalleeKind::kPacked) {
      return call_with_destination(*call, var);
    }
    const Operator* op = operator_of(value);
    if (op && op->view) {
      auto* type = var->type.as<TensorType>();
      return packed(kMemoryReshape, {call->args[0]},
                    attrs({{"shape", attr_dims({type->dims.begin(), type->dims.end()})}}),
                    var->type, var->name);
    }
    return keep(var, value);
  }

 private:
  Operand packed(std::string_view name, const std::vector<Operand>& args, Attrs attributes,
                 const TypeRef& type, std::string_view hint) {
    return builder().bind_typed(make<Call>(CalleeKind::kPacked, String(name), Operand(),
                                           Array<Operand>(args), std::move(attributes), type),
                                type, hint);
  }

  Operand new_tensor(const TypeRef& type, std::string_view hint) {
    auto* tensor = type.as<TensorType>();
    TENON_ASSERT(tensor && tensor->dims_known, "a kernel's result has known dimensions, not ",
                 to_text(type));
    static const TypeRef storage_type = make<OpaqueType>(String(kStorageType));
    Operand storage = packed(kMemoryStorage, {}, attrs({{"size", Any(bytes_of(*tensor).ref())}}),
                             storage_type, "s");
    return packed(kMemoryTensor, {storage},
                  attrs({{"offset", Any(Dim(0).ref())},
                         {"shape", attr_dims({tensor->dims.begin(), tensor->dims.end()})}}),
                  type, hint);
  }

  // A packed function that writes its one result into a tensor behind its operands.
  Operand call_with_destination(const Call& call, const VarRef& var) {
    Operand result = new_tensor(var->type, var->name);
    std::vector<Operand> args(call.args.begin(), call.args.end());
    args.push_back(result);
    Attrs attributes = call.attrs;
    attributes.erase(String(kDestinationsAttr));
    packed(call.callee, args, attributes, unit_type(), "");
    return result;
  }

  void call_kernel(const Call& call, const std::vector<Operand>& results) {
    std::vector<Operand> args(call.args.begin(), call.args.end());
    args.insert(args.end(), results.begin(), results.end());
    builder().bind_typed(make<Call>(CalleeKind::kKernel, call.callee, Operand(),
                                    Array<Operand>(args), call.attrs, unit_type()),
                         unit_type(), "");
  }
};

}  // namespace

Dim bytes_of(const TensorType& type) {
  return product({type.dims.begin(), type.dims.end()}) * Dim(type.dtype.bytes());
}

Module make_allocation_explicit(const Module& module, PassContext&) {
  return Allocator().run(module);
}

}  // namespace tenon::graph
