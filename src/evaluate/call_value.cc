#include "evaluate/call_value.h"

#include <cmath>

#include "device/call_context.h"
#include "device/device.h"
#include "evaluate/scalar_call.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"
#include "graph/ir/text.h"
#include "graph/ir/value_words.h"
#include "loop/scalar.h"
#include "loop/scalar_tensor.h"
#include "loop/work.h"
#include "object/registry.h"
#include "support/failures.h"

namespace tenon::graph {
namespace {

std::vector<TypeRef> fields_of(const TypeRef& type) {
  if (auto* tuple = type.as<TupleType>()) return tuple->fields.to_vector();
  return {type};
}

// Converts a scalar to the tensor of rank 0 that a kernel takes.
Any as_tensor(const Any& found, const TypeRef& type) {
  auto* scalar = type.as<ScalarType>();
  return scalar ? Any(loop::scalar_tensor(scalar->dtype, found)) : found;
}

void spend_work(const PreparedKernel& kernel, const std::vector<Any>& args, double* work_left) {
  if (std::isinf(*work_left)) return;
  const loop::Symbols symbols = symbols_of(*kernel.kernel, args);
  const double work =
      loop::work_of(*kernel.nest, [&](std::string_view name) -> std::optional<int64_t> {
        const auto found = symbols.find(name);
        return found == symbols.end() ? std::nullopt : std::optional(found->second);
      });
  if (work > *work_left) {
    throw Error(ErrorKind::Runtime,
                cat("kernel '", kernel.nest->name, "' takes more work than may be done here"))
        .found(cat("about ", work, " elements"))
        .expected(cat("at most ", *work_left));
  }
  *work_left -= work;
}

Any call_kernel(const Binding& binding, const Call& call, const PreparedKernel& kernel,
                const Activation& activation, double* work_left) {
  std::vector<Any> args;
  for (const Operand& arg : call.args) {
    if (arg) args.push_back(as_tensor(activation.value(arg), type_of(arg)));
  }
  std::vector<Any> results;
  for (const TypeRef& type : fields_of(binding.var->type)) {
    auto* tensor = type.as<TensorType>();
    results.emplace_back(allocate_tensor(activation.sizes(tensor->dims), tensor->dtype));
  }
  args.insert(args.end(), results.begin(), results.end());
  if (call.kind == CalleeKind::kKernel) {
    for (const Dim& dim : kernel_integers(call)) args.emplace_back(activation.size(dim));
  } else {  // made of this call, with its symbols
    for (const String& name : kernel.kernel->integers) {
      args.emplace_back(activation.size(Dim::symbol(name)));
    }
  }
  spend_work(kernel, args, work_left);
  kernel.call(args);
  if (results.empty()) return Any();  // the unit
  return binding.var->type.is<TupleType>() ? Any(Array<Any>(results)) : results[0];
}

Any reshaped(const Call& call, const TypeRef& type, const Activation& activation) {
  return activation.value(call.args[0])
      .as<Tensor>()
      .reshaped(activation.sizes(type.as<TensorType>()->dims));
}

Any values_tensor(const Call& call, const TypeRef& type, const Activation& activation) {
  auto* tensor_type = type.as<TensorType>();
  const DataType dtype = tensor_type->dtype;
  Tensor tensor = allocate_tensor(activation.sizes(tensor_type->dims), dtype);
  auto* element = static_cast<char*>(tensor.data());
  for (int64_t number : activation.sizes(stated_values(call))) {
    loop::scalar_store(dtype, element, number);
    element += dtype.bytes();
  }
  return tensor;
}

Any attribute(const Any& value, const Activation& activation) {
  if (auto dims = value.try_as<Array<Dim>>()) return Shape(activation.sizes(*dims));
  if (auto dim = value.try_as<Ref<const DimNode>>(); dim && *dim) {
    return activation.size(Dim(*dim));
  }
  if (auto integers = value.try_as<Array<int64_t>>()) return Shape(integers->to_vector());
  return value;
}

Any element_of(const Tensor& tensor) {
  if (tensor.count() != 1) throw wrong_element_count(1, to_text(tensor));
  return scalar_of(tensor.dtype(), loop::scalar_load(tensor.dtype(), tensor.data()));
}

Any call_intrinsic(MemoryIntrinsic intrinsic, const Binding& binding, const Call& call,
                   const Activation& activation) {
  switch (intrinsic) {
    case MemoryIntrinsic::kValues:
      return values_tensor(call, binding.var->type, activation);
    case MemoryIntrinsic::kReshape:
      return reshaped(call, binding.var->type, activation);
    case MemoryIntrinsic::kElement:
      return element_of(activation.value(call.args[0]).as<Tensor>());
    case MemoryIntrinsic::kOfElement:
      return as_tensor(activation.value(call.args[0]), type_of(call.args[0]));
    case MemoryIntrinsic::kRank:
      return Any(int64_t{activation.value(call.args[0]).as<Tensor>().rank()});
    case MemoryIntrinsic::kStorage:
    case MemoryIntrinsic::kTensor:
    case MemoryIntrinsic::kConcurrent:
      break;  // the evaluator runs modules before memory is made explicit
  }
  throw Error(ErrorKind::Unsupported, binding.span,
              cat("'", call.callee, "' is compiled, but not interpreted"))
      .help("leave out --mode interpret");
}

// Lets the function that is called change an argument which nothing else holds. Everything else is
// as around the call.
class Arguments final : public CallContext {
 public:
  Arguments(const Function& function, std::vector<Any> values)
      : function_(function), values_(std::move(values)), views_(values_.begin(), values_.end()) {}

  Any call() {
    const CallContext::Scope scope(this);
    Any result;
    const auto count = static_cast<int32_t>(views_.size());
    if (function_.call(views_.data(), count, &result) != 0) throw take_error();
    return result;
  }

  Any take(const Object* function, const AnyView* args, int32_t i) override {
    const bool is_ours = function == function_.object() && args == views_.data();
    return is_ours ? std::move(values_[static_cast<size_t>(i)])
                   : CallContext::take(function, args, i);
  }
  Ref<StorageObj> allocate(size_t bytes, size_t alignment) override {
    return outer_ ? outer_->allocate(bytes, alignment) : heap_storage(bytes);
  }
  std::optional<int> fill_byte() const override {
    return outer_ ? outer_->fill_byte() : std::nullopt;
  }
  bool may_write(const Tensor& tensor) const override {
    return outer_ && outer_->may_write(tensor);
  }
  bool poisons() const override { return outer_ && outer_->poisons(); }
  bool count_memory(size_t bytes) override { return !outer_ || outer_->count_memory(bytes); }
  void discount_memory(size_t bytes) override {
    if (outer_) outer_->discount_memory(bytes);
  }
  void fail_memory(size_t bytes) override {
    TENON_ASSERT(outer_, "memory is counted for no limit");
    outer_->fail_memory(bytes);
  }
  void poll() override {
    if (poller_) poller_->poll();
  }

 private:
  CallContext* const outer_ = CallContext::current();
  Poller* const poller_ = Poller::current();
  Function function_;
  std::vector<Any> values_;
  std::vector<AnyView> views_;
};

Any call_packed(const Call& call, std::span<const Var* const> last_uses, Activation& activation) {
  std::vector<Any> args;
  for (const Operand& arg : call.args) args.push_back(activation.value(arg));
  for (const auto& [name, value] : passed_attributes(call)) {
    args.push_back(attribute(value, activation));
  }
  activation.drop(last_uses);
  // As where a compiled program is loaded, a program can't run that calls a function there isn't.
  const Function function = find_function(call.callee.view());
  if (!function) {
    throw Error(ErrorKind::Unsupported, cat("the program calls a function that isn't registered: ",
                                            quoted(call.callee.view())))
        .help("register it first");
  }
  return Arguments(function, std::move(args)).call();
}

}  // namespace

Any call_value(const Binding& binding, const Call& call, const PreparedKernel* kernel,
               std::span<const Var* const> last_uses, Activation& activation, double* work_left) {
  const TypeRef& type = binding.var->type;
  if (kernel) return call_kernel(binding, call, *kernel, activation, work_left);
  if (auto intrinsic = memory_intrinsic(call)) {
    return call_intrinsic(*intrinsic, binding, call, activation);
  }
  if (call.kind == CalleeKind::kPacked) {
    Any result = call_packed(call, last_uses, activation);
    // An array holds values of any size and type.
    if (type.is<TensorType>() && call.callee == kArrayGet) {
      activation.check_element(type, result);
    }
    if (signature_of(call)) return result;
    return activation.returned(call.callee.view(), type, std::move(result));
  }
  const Operator* op = operator_of(call);
  TENON_ASSERT(op, "unknown operator ", call.callee);
  if (op->view) return reshaped(call, type, activation);
  if (op->packed) {
    return call_packed(*as_packed_call(*op, call, type), last_uses, activation);
  }
  if (type.is<ScalarType>()) return scalar_call(call, activation);
  throw Error(ErrorKind::Internal, cat("operator ", call.callee, " has no lowering"));
}

}  // namespace tenon::graph
