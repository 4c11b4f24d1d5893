#include "graph/evaluate/reference_evaluator.h"

#include <unordered_map>
#include <unordered_set>

#include "device/device.h"
#include "graph/ir/builder.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/text.h"
#include "graph/ir/walk.h"
#include "graph/op/lower.h"
#include "object/registry.h"

namespace tenon::graph {
namespace {

const Operator* operator_of(const Call& call) {
  return call.kind == CalleeKind::kOperator ? OperatorTable::global().find(call.callee) : nullptr;
}

// One call of an operator as a primitive function: its tensor operands are the parameters.
FunctionRef single_call(const Binding& binding) {
  auto* call = binding.value.as<Call>();
  Builder b;
  b.at(binding.span);
  std::vector<Operand> args;
  for (const Operand& arg : call->args) {
    args.push_back(arg ? b.param(cat("p", args.size()), without_known_values(type_of(arg)))
                       : Operand());
  }
  Operand result = b.bind_typed(
      make<Call>(call->kind, call->callee, Operand(), Array<Operand>(args), call->attrs, TypeRef()),
      without_known_values(binding.var->type), "r");
  return b.finish("single", result, attrs({{"primitive", Any(true)}}));
}

bool is_scalar_call(const Binding& binding) {
  return binding.var->type.is<ScalarType>();
}

// Calls of operators and of kernels in a function and all that it calls.
class KernelCollector {
 public:
  KernelCollector(const Module& module, const KernelCache& cache)
      : module_(module), cache_(cache) {}

  void visit(const FunctionRef& function) {
    if (seen_.insert(function.get()).second) visit(function->body);
  }

  std::vector<std::pair<std::string, loop::KernelRef>> kernels;
  std::unordered_map<const Object*, std::pair<std::string, loop::KernelRef>> of_binding;

 private:
  void visit(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      if (auto* call = binding->value.as<Call>()) add(binding, *call);
      for_each_block(binding->value, [this](const BlockRef& inner) { visit(inner); });
    }
  }

  void add(const Ref<const Binding>& binding, const Call& call) {
    if (call.kind == CalleeKind::kKernel) {
      const loop::KernelRef& kernel = module_->kernels.at(call.callee);
      use(binding, cat("kernel/", reinterpret_cast<uintptr_t>(kernel.get())),
          [&] { return kernel; });
      held_.push_back(kernel);
    } else if (call.kind == CalleeKind::kGlobal) {
      visit(module_->functions.at(call.callee));
    } else if (auto* op = operator_of(call);
               op && op->lower && !op->view && !is_scalar_call(*binding)) {
      const FunctionRef single = single_call(*binding);
      use(binding, to_text(single), [&] { return lower_primitive(single, schedule_options()); });
    }
  }

  template <class F>
  void use(const Ref<const Binding>& binding, const std::string& key, const F& lower) {
    auto [it, fresh] = lowered_.try_emplace(key);
    if (fresh) {
      it->second = lower();
      if (!cache_.has(key)) kernels.emplace_back(key, it->second);
    }
    of_binding[binding.get()] = {key, it->second};
  }

  loop::ScheduleOptions schedule_options() const {
    loop::ScheduleOptions options;
    options.name = "k";
    options.vector_bytes = cache_.target().vector_bytes;
    return options;
  }

  const Module& module_;
  const KernelCache& cache_;
  std::unordered_set<const Object*> seen_;
  std::unordered_map<std::string, loop::KernelRef> lowered_;
  std::vector<loop::KernelRef> held_;  // their addresses are keys
};

std::vector<TypeRef> fields_of(const TypeRef& type) {
  if (auto* tuple = type.as<TupleType>()) return {tuple->fields.begin(), tuple->fields.end()};
  return {type};
}

int64_t wrap(int64_t value, DataType dtype) {
  if (dtype.is_bool()) return value != 0;
  const int shift = 64 - dtype.bits;
  if (shift <= 0) return value;
  return dtype.is_unsigned_int()
             ? static_cast<int64_t>(static_cast<uint64_t>(value) << shift >> shift)
             : static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
}

}  // namespace

// One activation of a function: its variables and sizes.
class Frame {
 public:
  Frame(ReferenceEvaluator& evaluator, const Module& module, const KernelCollector& plan, int depth)
      : evaluator_(evaluator), module_(module), plan_(plan), depth_(depth) {}

  Any run(const FunctionRef& function, const std::vector<Any>& args) {
    if (depth_ > evaluator_.max_depth) {
      throw Error(ErrorKind::Runtime, function->span,
                  cat("calls of '", function->name, "' nest deeper than ", evaluator_.max_depth));
    }
    for (size_t i = 0; i < function->params.size(); ++i) {
      values_[function->params[i].get()] = args[i];
    }
    // Symbols first where they stand alone, then what is computed of them.
    for (bool compound : {false, true}) {
      for (size_t i = 0; i < function->params.size(); ++i) {
        bind_type(function->params[i]->type, args[i],
                  cat("input '", function->params[i]->name, "'"), compound);
      }
    }
    return block(function->body);
  }

 private:
  Any block(const BlockRef& block) {
    // Sizes bound inside are the block's own: the next turn of a loop binds them anew.
    const auto outer = symbols_;
    for (const auto& binding : block->bindings) {
      try {
        values_[binding->var.get()] = evaluate(*binding);
      } catch (Error& error) {
        throw error.at(binding->span);
      }
    }
    symbols_ = outer;
    return value(block->result);
  }

  Any value(const Operand& operand) const {
    if (!operand) return Any();
    if (auto* constant = operand.as<Constant>()) return constant->value;
    return values_.at(operand.as<Var>());
  }

  int64_t size(const Dim& dim) const {
    auto result = tenon::evaluate(dim, [this](std::string_view name) -> std::optional<int64_t> {
      auto it = symbols_.find(std::string(name));
      if (it == symbols_.end()) return std::nullopt;
      return it->second;
    });
    if (!result) {
      throw Error(ErrorKind::Runtime, cat("the size ", tenon::to_text(dim), " cannot be computed"));
    }
    return *result;
  }

  template <class Dims>
  std::vector<int64_t> sizes(const Dims& dims) const {
    std::vector<int64_t> out;
    for (const Dim& dim : dims) out.push_back(size(dim));
    return out;
  }

  void bind_dims(const Array<Dim>& dims, std::span<const int64_t> found, const std::string& what,
                 bool compound) {
    if (dims.size() != found.size()) {
      throw Error(ErrorKind::Runtime, cat(what, " has rank ", found.size(), ", not ", dims.size()));
    }
    for (size_t i = 0; i < found.size(); ++i) {
      const Dim& dim = dims[i];
      const bool alone = dim.kind() == DimKind::kSymbol;
      if (alone && !symbols_.contains(std::string(dim.node().name))) {
        symbols_[std::string(dim.node().name)] = found[i];
      } else if ((alone || dim.is_const() || compound) && size(dim) != found[i]) {
        throw Error(ErrorKind::Runtime, cat(what, ", axis ", i, ": found ", found[i], ", expected ",
                                            tenon::to_text(dim), " = ", size(dim)));
      }
    }
  }

  void bind_type(const TypeRef& type, const Any& found, const std::string& what, bool compound) {
    auto* tensor_type = type.as<TensorType>();
    if (!tensor_type) return;
    auto tensor = found.try_as<Tensor>();
    if (!tensor || !*tensor || tensor->dtype() != tensor_type->dtype) {
      throw Error(ErrorKind::Usage, cat(what, " is no tensor of ", to_text(tensor_type->dtype)));
    }
    if (tensor_type->dims_known) bind_dims(tensor_type->dims, tensor->shape(), what, compound);
  }

  Any evaluate(const Binding& binding) {
    const ExprRef& e = binding.value;
    if (auto* call = e.as<Call>()) {
      Any result = evaluate_call(binding, *call);
      if (evaluator_.observer) evaluator_.observer(binding, result);
      return result;
    }
    if (auto* branch = e.as<If>()) {
      return block(truth(value(branch->condition)) ? branch->then_block : branch->else_block);
    }
    if (auto* loop = e.as<Loop>()) return run_loop(*loop);
    if (auto* tuple = e.as<Tuple>()) {
      Array<Any> fields;
      for (const Operand& field : tuple->fields) fields.push_back(value(field));
      return fields;
    }
    if (auto* field = e.as<Field>()) {
      return value(field->tuple).as<Array<Any>>().at(static_cast<size_t>(field->index));
    }
    if (auto* match = e.as<MatchShape>()) return match_shape(*match);
    if (auto* check = e.as<Check>()) {
      run_check(*check);
      return Array<Any>();
    }
    throw Error(ErrorKind::Unsupported, binding.span,
                "match, constructors and function literals are parsed and checked, but not run by "
                "this version")
        .help("write it with if, loop, tuples and functions");
  }

  Any run_loop(const Loop& loop) {
    std::vector<Any> current;
    for (const Operand& init : loop.init) current.push_back(value(init));
    auto set = [&] {
      for (size_t i = 0; i < current.size(); ++i) values_[loop.vars[i].get()] = current[i];
    };
    for (set(); truth(block(loop.condition)); set()) {
      Any next = block(loop.body);
      if (current.size() == 1) {
        current[0] = next;
      } else {
        auto fields = next.as<Array<Any>>();
        current.assign(fields.begin(), fields.end());
      }
    }
    return current.size() == 1 ? current[0] : Any(Array<Any>(current));
  }

  Any match_shape(const MatchShape& match) {
    Any found = value(match.value);
    std::vector<int64_t> dims;
    auto tensor = found.try_as<Tensor>();
    if (!match.elements) {
      if (tensor && *tensor) {
        dims.assign(tensor->shape().begin(), tensor->shape().end());
      } else {
        const Shape shape = found.as<Shape>();
        dims.assign(shape.begin(), shape.end());
      }
    } else {
      dims = elements(found);
      for (size_t i = 0; i < dims.size() && i < match.dims.size(); ++i) {
        if (dims[i] < 0 && match.dims[i].kind() == DimKind::kSymbol) {
          throw Error(ErrorKind::Runtime, cat("a size computed from data is negative: ", dims[i]));
        }
      }
    }
    for (bool compound : {false, true}) {
      bind_dims(match.dims, dims, "match_shape", compound);
    }
    return found;
  }

  static std::vector<int64_t> elements(const Any& found) {
    if (auto tensor = found.try_as<Tensor>(); tensor && *tensor) {
      std::vector<int64_t> out;
      for (int64_t i = 0; i < tensor->count(); ++i) {
        if (tensor->dtype() == i64) {
          out.push_back(tensor->data_as<int64_t>()[i]);
        } else if (tensor->dtype() == i32) {
          out.push_back(tensor->data_as<int32_t>()[i]);
        } else {
          throw Error(ErrorKind::Runtime,
                      cat("sizes are read from i32 or i64, not ", to_text(tensor->dtype())));
        }
      }
      return out;
    }
    if (auto shape = found.try_as<Shape>()) return {shape->begin(), shape->end()};
    return {found.as<int64_t>()};
  }

  void run_check(const Check& check) const {
    const int64_t left = size(check.left), right = size(check.right);
    const bool holds = check.kind == CheckKind::kEqual ? left == right
                       : check.kind == CheckKind::kLessEqual
                           ? left <= right
                           : left == right || left == 1 || right == 1;
    if (!holds) {
      throw Error(ErrorKind::Runtime,
                  cat(check.message, ": found ", left, " (", tenon::to_text(check.left), ") and ",
                      right, " (", tenon::to_text(check.right), ")"));
    }
  }

  static bool truth(const Any& condition) {
    if (auto tensor = condition.try_as<Tensor>(); tensor && *tensor) {
      if (tensor->count() != 1 || !tensor->dtype().is_bool()) {
        throw Error(ErrorKind::Runtime, "a condition is one boolean");
      }
      return *tensor->data_as<uint8_t>() != 0;
    }
    return condition.as<int64_t>() != 0;
  }

  Any evaluate_call(const Binding& binding, const Call& call) {
    if (auto it = plan_.of_binding.find(&binding); it != plan_.of_binding.end()) {
      return call_kernel(binding, call, it->second.first, *it->second.second);
    }
    switch (call.kind) {
      case CalleeKind::kGlobal: {
        std::vector<Any> args;
        for (const Operand& arg : call.args) args.push_back(value(arg));
        return Frame(evaluator_, module_, plan_, depth_ + 1)
            .run(module_->functions.at(call.callee), args);
      }
      case CalleeKind::kPacked:
        return call_packed(call, call.callee, binding.var->type);
      case CalleeKind::kOperator:
        break;
      default:
        throw Error(ErrorKind::Unsupported, "the evaluator does not call closures");
    }
    const Operator* op = operator_of(call);
    TENON_ASSERT(op, "unknown operator ", call.callee);
    if (op->view) {
      return value(call.args[0])
          .as<Tensor>()
          .reshaped(sizes(binding.var->type.as<TensorType>()->dims));
    }
    if (op->packed) return call_packed(call, op->packed, binding.var->type);
    if (op->expand) return expand(binding, call, *op);
    if (is_scalar_call(binding)) return scalar(call, binding.var->type.as<ScalarType>()->dtype);
    throw Error(ErrorKind::Internal, cat("operator ", call.callee, " has no lowering"));
  }

  // An operator that is defined by others is built as a function of those and run.
  Any expand(const Binding& binding, const Call& call, const Operator& op) {
    Builder b;
    b.at(binding.span);
    std::vector<Operand> params;
    std::vector<Any> args;
    for (const Operand& arg : call.args) {
      if (arg) args.push_back(value(arg));
      params.push_back(arg ? b.param(cat("p", params.size()), concrete(type_of(arg), value(arg)))
                           : Operand());
    }
    Ref<const Call> inner = make<Call>(call.kind, call.callee, Operand(), Array<Operand>(params),
                                       call.attrs, TypeRef());
    FunctionRef function = b.finish("expanded", op.expand(b, *inner));
    std::vector<Any> results = evaluator_.run(module_, function, args);
    return binding.var->type.is<TupleType>() ? Any(Array<Any>(results)) : results.at(0);
  }

  static TypeRef concrete(const TypeRef& type, const Any& found) {
    auto tensor = found.try_as<Tensor>();
    if (!tensor || !*tensor) return type;
    std::vector<Dim> dims(tensor->shape().begin(), tensor->shape().end());
    return tensor_type(tensor->dtype(), dims);
  }

  Any call_kernel(const Binding& binding, const Call& call, const std::string& key,
                  const loop::Kernel& kernel) {
    std::vector<Any> args;
    for (const Operand& arg : call.args) {
      if (arg) args.push_back(as_tensor(value(arg), type_of(arg)));
    }
    std::vector<Any> results;
    for (const TypeRef& type : fields_of(binding.var->type)) {
      auto* tensor = type.as<TensorType>();
      results.emplace_back(allocate_tensor(sizes(tensor->dims), tensor->dtype));
    }
    args.insert(args.end(), results.begin(), results.end());
    if (auto* integers = call.attrs.find("integers");
        integers && call.kind == CalleeKind::kKernel) {
      for (const Dim& dim : integers->as<Array<Dim>>()) args.emplace_back(size(dim));
    } else {
      for (const String& name : kernel.integers) args.emplace_back(size(Dim::symbol(name)));
    }
    evaluator_.cache_.call(key, args);
    return binding.var->type.is<TupleType>() ? Any(Array<Any>(results)) : results[0];
  }

  // A scalar where a kernel wants a tensor of rank 0.
  static Any as_tensor(const Any& found, const TypeRef& type) {
    auto* scalar = type.as<ScalarType>();
    if (!scalar) return found;
    Tensor tensor = allocate_tensor({}, scalar->dtype);
    if (scalar->dtype == f32) {
      *tensor.data_as<float>() = found.as<float>();
    } else if (scalar->dtype == f64) {
      *tensor.data_as<double>() = found.as<double>();
    } else {
      const int64_t bits = found.as<int64_t>();
      std::memcpy(tensor.data(), &bits, static_cast<size_t>(scalar->dtype.bytes()));
    }
    return tensor;
  }

  Any call_packed(const Call& call, std::string_view name, const TypeRef& type) {
    if (name == kMemoryValues) return values_tensor(call, type);
    if (name == kMemoryReshape) {
      return value(call.args[0]).as<Tensor>().reshaped(sizes(type.as<TensorType>()->dims));
    }
    std::vector<Any> args;
    for (const Operand& arg : call.args) args.push_back(arg ? value(arg) : Any());
    // Optional operands may be left out of an operator's call, but not of the function's.
    const Operator* op = call.kind == CalleeKind::kOperator ? operator_of(call) : nullptr;
    if (op && args.size() < op->operands.size()) args.resize(op->operands.size());
    for (const auto& [attr, found] : call.attrs) {
      if (auto dims = found.try_as<Array<Dim>>()) {
        args.emplace_back(Shape(sizes(*dims)));
      } else if (auto dim = found.try_as<Ref<const DimNode>>(); dim && *dim) {
        args.emplace_back(size(Dim(*dim)));
      } else if (auto integers = found.try_as<Array<int64_t>>()) {
        args.emplace_back(Shape(integers->to_vector()));
      } else {
        args.push_back(found);
      }
    }
    std::vector<AnyView> views(args.begin(), args.end());
    Any result;
    if (function_named(name).call(views.data(), static_cast<int32_t>(views.size()), &result) != 0) {
      throw take_error();
    }
    return result;
  }

  Any values_tensor(const Call& call, const TypeRef& type) {
    auto* tensor_type = type.as<TensorType>();
    const std::vector<int64_t> numbers = sizes(call.attrs.at("values").as<Array<Dim>>());
    Tensor tensor = allocate_tensor(sizes(tensor_type->dims), tensor_type->dtype);
    const auto bytes = static_cast<size_t>(tensor_type->dtype.bytes());
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::memcpy(static_cast<char*>(tensor.data()) + i * bytes, &numbers[i], bytes);
    }
    return tensor;
  }

  Any scalar(const Call& call, DataType dtype) const;

  ReferenceEvaluator& evaluator_;
  const Module& module_;
  const KernelCollector& plan_;
  const int depth_;
  std::unordered_map<const Var*, Any> values_;
  std::unordered_map<std::string, int64_t> symbols_;
};

Any Frame::scalar(const Call& call, DataType dtype) const {
  const std::string_view op = call.callee;
  if (op == "where") return truth(value(call.args[0])) ? value(call.args[1]) : value(call.args[2]);
  for (const Operand& arg : call.args) {
    if (!dtype.is_float() && value(arg).type_index != TypeIndex::Float) continue;
    throw Error(ErrorKind::Unsupported,
                cat(op, " of floating scalars is parsed and checked, but not run by this version"))
        .help("use a tensor of rank 0 instead, such as tensor[f32]");
  }
  const int64_t a = value(call.args[0]).as<int64_t>();
  const int64_t b = call.args.size() > 1 ? value(call.args[1]).as<int64_t>() : 0;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  auto number = [&](uint64_t result) { return Any(wrap(static_cast<int64_t>(result), dtype)); };
  if (op == "add") return number(ua + ub);
  if (op == "sub") return number(ua - ub);
  if (op == "mul") return number(ua * ub);
  if (op == "neg") return number(-ua);
  if (op == "minimum") return Any(std::min(a, b));
  if (op == "maximum") return Any(std::max(a, b));
  if (op == "equal") return Any(a == b);
  if (op == "not_equal") return Any(a != b);
  if (op == "less") return Any(a < b);
  if (op == "less_equal") return Any(a <= b);
  if (op == "greater") return Any(a > b);
  if (op == "greater_equal") return Any(a >= b);
  if (op == "logical_and") return Any(a != 0 && b != 0);
  if (op == "logical_or") return Any(a != 0 || b != 0);
  if (op == "logical_xor") return Any((a != 0) != (b != 0));
  if (op == "logical_not") return Any(a == 0);
  if (op == "bitwise_and") return number(ua & ub);
  if (op == "bitwise_or") return number(ua | ub);
  if (op == "bitwise_xor") return number(ua ^ ub);
  if (op == "bitwise_not") return number(~ua);
  if (op == "shift_left") return number(ub < 64 ? ua << ub : 0);
  if (op == "cast") return dtype.is_bool() ? Any(a != 0) : number(ua);
  if (op == "div" || op == "floor_div" || op == "mod" || op == "rem") {
    if (b == 0) throw Error(ErrorKind::Runtime, cat(op, ": division by zero"));
    if (b == -1) return op == "div" || op == "floor_div" ? number(-ua) : Any(int64_t{0});
    const int64_t quotient = a / b, remainder = a % b;
    const bool down = remainder != 0 && (remainder < 0) != (b < 0);
    if (op == "div") return Any(quotient);
    if (op == "rem") return Any(remainder);
    return op == "mod" ? Any(down ? remainder + b : remainder)
                       : Any(down ? quotient - 1 : quotient);
  }
  throw Error(ErrorKind::Unsupported, cat("operator ", op, " is not defined on scalars"));
}

std::vector<Any> ReferenceEvaluator::run(const Module& module, const FunctionRef& function,
                                         const std::vector<Any>& args) {
  KernelCollector plan(module, cache_);
  plan.visit(function);
  cache_.compile(plan.kernels);
  Any result = Frame(*this, module, plan, 0).run(function, args);
  if (!function->result_type.is<TupleType>()) return {result};
  auto fields = result.as<Array<Any>>();
  return {fields.begin(), fields.end()};
}

}  // namespace tenon::graph
