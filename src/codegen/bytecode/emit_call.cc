// Calls: kernels, packed functions, globals, closures, the memory intrinsics.
#include <algorithm>
#include <string_view>

#include "codegen/bytecode/function_emitter.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "loop/scalar.h"
#include "object/shape.h"
#include "object/tensor.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file speaks of graph IR only
using vm::Arg;
using vm::Opcode;

namespace {

constexpr DLDevice kHost{kDLCPU, 0};

Dim dim_attr(const Call& call, const char* name) {
  return Dim(call.attrs.at(name).as<Ref<const DimNode>>());
}

Array<Dim> dims_attr(const Call& call, const char* name) {
  return call.attrs.at(name).as<Array<Dim>>();
}

// Whether a constant of bytecode can hold the value.
bool has_constant_form(const Any& value) {
  switch (value.type_index) {
    case TypeIndex::Bool:
    case TypeIndex::Int:
    case TypeIndex::Float:
    case TypeIndex::DataType:
      return true;
    default:
      return String::accepts(value);
  }
}

}  // namespace

bool FunctionEmitter::emit_call(const Call& call, const TypeRef& type, Arg dst, bool tail) {
  switch (call.kind) {
    case CalleeKind::kKernel:
      emit_kernel(call);
      return false;
    case CalleeKind::kPacked:
      if (auto intrinsic = memory_intrinsic(call)) {
        emit_intrinsic(*intrinsic, call, type, dst);
      } else {
        emit_packed(call, dst);
      }
      return false;
    case CalleeKind::kOperator:
      emit_scalar_op(call, type, dst);
      return false;
    case CalleeKind::kGlobal: {
      const int64_t callee = unit_->find_function(call.callee);
      TENON_ASSERT(callee >= 0, "no function @", call.callee);
      const std::vector<Arg> args = consume(call.args);
      const Arg target = Arg::func(static_cast<uint32_t>(callee));
      if (tail) {
        code_.emit(Opcode::TailCall, {target}, args);
      } else {
        code_.emit(Opcode::Call, {dst, target}, args);
      }
      return tail;
    }
    case CalleeKind::kClosure: {
      const Arg closure = in_register(call.closure);
      const std::vector<Arg> args = consume(call.args);
      if (tail) {
        code_.emit(Opcode::TailCallClosure, {closure}, args);
      } else {
        code_.emit(Opcode::CallClosure, {dst, closure}, args);
      }
      return tail;
    }
  }
  return false;
}

// Kernels take tensors alone.
Arg FunctionEmitter::as_tensor(const Operand& operand, DataType dtype, Arg scalar) {
  if (auto* constant = operand.as<Constant>()) {
    Tensor tensor = Tensor::empty({}, dtype);
    loop::scalar_store(dtype, tensor.data(),
                       dtype.is_float() ? loop::float_bits(constant->value.as<double>())
                                        : constant->value.as<int64_t>());
    return Arg::constant(constants_->of_value(tensor.as_read_only()));
  }
  const uint32_t reg = new_register();
  const Arg element[] = {scalar};
  code_.emit(Opcode::MakeTensor, {Arg::reg(reg), Arg::dtype(dtype), Arg::imm(0)}, element);
  temporaries_.push_back(reg);
  return Arg::last(reg);
}

void FunctionEmitter::emit_kernel(const Call& call) {
  std::vector<Arg> args = consume(call.args);
  for (size_t i = 0; i < args.size(); ++i) {
    const TypeRef type = type_of(call.args[i]);
    if (auto* scalar = type.as<ScalarType>()) {
      args[i] = as_tensor(call.args[i], scalar->dtype, args[i]);
    }
  }
  if (call.attrs.find("integers")) {
    for (const Arg& integer : sizes(dims_attr(call, "integers"))) args.push_back(integer);
  }
  require_name("kernel", call.callee, span_);
  code_.emit(Opcode::CallPacked,
             {Arg::none(), Arg::packed(unit_->packed_index(call.callee, /*kernel=*/true))}, args);
}

Arg FunctionEmitter::attribute(std::string_view name, const Any& value) {
  if (value.is_none()) return Arg::none();
  const auto require_shape = [&](size_t count, bool has_negative) {
    if (count <= static_cast<size_t>(kMaxRank) && !has_negative) return;
    refuse(cat("a list in the attribute '", name, "' has ",
               has_negative ? std::string("a negative number") : counted(count, "number")),
           cat("bytecode passes a list as a shape, of at most ", kMaxRank,
               " numbers from 0; pass others as a tensor"));
  };
  if (auto dims = value.try_as<Array<Dim>>()) {
    require_shape(dims->size(), false);
    const uint32_t reg = new_register();
    code_.emit(Opcode::MakeShape, {Arg::reg(reg)}, sizes(*dims));
    free_register(reg);
    return Arg::last(reg);
  }
  if (auto dim = value.try_as<Ref<const DimNode>>()) return size(Dim(*dim));
  if (auto integers = value.try_as<Array<int64_t>>()) {
    const std::vector<int64_t> numbers(integers->begin(), integers->end());
    require_shape(numbers.size(), std::ranges::any_of(numbers, [](int64_t n) { return n < 0; }));
    if (element_count(numbers)) return Arg::constant(constants_->of_value(Any(Shape(numbers))));
    // A constant shape counts its elements; one that is made does not.
    return attribute(name, Any(Array<Dim>(std::vector<Dim>(numbers.begin(), numbers.end()))));
  }
  if (auto integer = value.try_as<int64_t>(); integer && vm::fits_immediate(*integer)) {
    return Arg::imm(*integer);
  }
  if (!has_constant_form(value)) {
    refuse(cat("no constant of bytecode holds the attribute '", name, "', of kind ",
               type_name(value.type_index)),
           "give a number, truth, string, element type, size, or a list of integers or sizes");
  }
  return Arg::constant(constants_->of_value(value));
}

void FunctionEmitter::emit_packed(const Call& call, Arg dst) {
  require_name("packed function", call.callee, span_);
  std::vector<Arg> args = consume(call.args);
  std::vector<uint32_t> held;  // shapes made for this call keep their registers until it
  for (const auto& [name, value] : passed_attributes(call)) {
    const Arg arg = attribute(name.view(), value);
    if (arg.is(vm::ArgKind::LastUse)) {
      std::erase(free_, arg.index());
      held.push_back(arg.index());
    }
    args.push_back(arg);
  }
  code_.emit(Opcode::CallPacked,
             {dst, Arg::packed(unit_->packed_index(call.callee, /*kernel=*/false))}, args);
  for (uint32_t reg : held) free_register(reg);
}

void FunctionEmitter::emit_intrinsic(MemoryIntrinsic intrinsic, const Call& call,
                                     const TypeRef& type, Arg dst) {
  if (dst.is_none()) return;
  switch (intrinsic) {
    case MemoryIntrinsic::kStorage:
      code_.emit(Opcode::AllocStorage, {dst, size(dim_attr(call, "size")),
                                        Arg::imm(kTensorAlignment), Arg::device(kHost)});
      break;
    case MemoryIntrinsic::kTensor: {
      const Arg offset = size(dim_attr(call, "offset"));
      const std::vector<Arg> dims = sizes(dims_attr(call, "shape"));
      const Arg storage = consume(call.args)[0];
      code_.emit(Opcode::AllocTensor,
                 {dst, storage, offset, Arg::dtype(type.as<TensorType>()->dtype)}, dims);
      break;
    }
    case MemoryIntrinsic::kReshape: {
      const std::vector<Arg> dims = sizes(dims_attr(call, "shape"));
      const Arg tensor = consume(call.args)[0];
      code_.emit(Opcode::ReshapeTensor, {dst, tensor}, dims);
      break;
    }
    case MemoryIntrinsic::kValues: {
      auto* tensor = type.as<TensorType>();
      code_.emit(Opcode::MakeTensor, {dst, Arg::dtype(tensor->dtype), Arg::imm(tensor->rank)},
                 sizes(dims_attr(call, "values")));
      break;
    }
  }
}

}  // namespace tenon::codegen
