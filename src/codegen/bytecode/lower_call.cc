// Calls: kernels, packed functions, globals, closures, the memory intrinsics.
#include <algorithm>
#include <string_view>

#include "codegen/bytecode/emit.h"
#include "codegen/bytecode/lower_function.h"
#include "codegen/bytecode/packed_instruction.h"
#include "graph/ir/check.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "loop/scalar_tensor.h"
#include "object/shape.h"
#include "object/tensor.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only
using vm::Arg;
using vm::Opcode;

namespace {

// Whether the value can be a constant in bytecode.
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

void FunctionLowering::lower_call(const Binding& binding, const Call& call, bool tail) {
  const TypeRef& type = binding.var->type;
  switch (call.kind) {
    case CalleeKind::kKernel:
      return lower_kernel(call);
    case CalleeKind::kPacked:
      if (auto intrinsic = memory_intrinsic(call)) {
        lower_intrinsic(*intrinsic, call, binding.var);
      } else {
        lower_packed(call, define(binding.var), matched_next_ == binding.var.get());
      }
      return;
    case CalleeKind::kOperator:
      return lower_scalar_op(call, type, define(binding.var));
    case CalleeKind::kGlobal:
      return call_global(binding, call, tail);
    case CalleeKind::kClosure: {
      const Arg closure = in_register(call.closure);
      const std::vector<Arg> args = values(call.args);
      const bool is_checked = has_sizes(type) && tail_calls_.closures_are_unchecked();
      if (tail && (referred_ || !is_checked)) {
        code_.emit(Opcode::TailCallClosure, {closure}, args);
        code_.left();
      } else {
        write_unknown(define(binding.var), type, [&](Arg dst) {
          code_.emit(Opcode::CallClosure, {dst, closure}, args);
        });
      }
      return;
    }
  }
}

void FunctionLowering::call_global(const Binding& binding, const Call& call, bool tail) {
  const auto callee = functions_.find(call.callee.view());
  TENON_ASSERT(callee != functions_.end(), "no function @", call.callee);
  const Array<VarRef>& params = module_->functions.at(call.callee)->params;
  std::vector<Arg> args = values(call.args), lent;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!borrowing_.is_borrowed(params[i].get()) || args[i].is(vm::ArgKind::Borrowed)) continue;
    lent.push_back(args[i].is_register() ? args[i] : load(args[i]));
    args[i] = Arg::borrowed(lent.back().index());
  }
  const Arg target = Arg::func(callee->second);
  const auto call_here = [&](Arg dst) {
    code_.emit(Opcode::Call, {dst, target}, args);
    // What isn't used any more is released; liveness finds which (remove_unneeded_releases).
    for (const Arg& mine : lent) code_.emit(Opcode::Move, {Arg::none(), mine});
  };
  // A tail call that may be part of a recursion takes constant space instead of being matched, like
  // one of a closure.
  if (tail_calls_.is_unchecked(call.callee) && !(tail && referred_)) {
    write_unknown(define(binding.var), binding.var->type, call_here);
  } else if (!tail || !lent.empty()) {
    call_here(define(binding.var));
  } else if (callee->second == self_) {
    code_.self_call(std::move(args));
  } else {
    code_.emit(Opcode::TailCall, {target}, args);
    code_.left();
  }
}

// Kernels take only tensors.
Arg FunctionLowering::as_tensor(const Operand& operand, DataType dtype) {
  if (auto* constant = operand.as<Constant>()) {
    const Tensor tensor = loop::scalar_tensor(dtype, constant->value);
    return Arg::constant(constants_.of_value(tensor.as_read_only()));
  }
  const Arg tensor = code_.make(/*owns=*/true), element = value(operand);
  code_.emit(Opcode::MakeTensor, {tensor, Arg::dtype(dtype), Arg::imm(0)}, {&element, 1});
  return tensor;
}

void FunctionLowering::lower_kernel(const Call& call) {
  std::vector<Arg> args;
  for (const Operand& operand : call.args) {
    const TypeRef type = type_of(operand);
    auto* scalar = type.as<ScalarType>();
    args.push_back(scalar ? as_tensor(operand, scalar->dtype) : value(operand));
  }
  for (const Arg& integer : sizes_.sizes(kernel_integers(call))) args.push_back(integer);
  require_name("kernel", call.callee, span_);
  code_.emit(Opcode::CallPacked, {Arg::none(), Arg::packed(packed_.kernel(call.callee))}, args);
}

Arg FunctionLowering::attribute(std::string_view name, const Any& value) {
  if (value.is_none()) return Arg::none();
  const auto require_shape = [&](size_t count, bool has_negative) {
    if (count <= static_cast<size_t>(kMaxRank) && !has_negative) return;
    refuse(cat("a list in the attribute '", name, "' has ",
               has_negative ? std::string("a negative number") : counted(count, "number")),
           cat("bytecode passes a list as a shape, which has at most ", kMaxRank,
               " numbers, none negative; pass other lists as a tensor"));
  };
  if (auto dims = value.try_as<Array<Dim>>()) {
    require_shape(dims->size(), false);
    const Arg shape = code_.make(/*owns=*/true);
    code_.emit(Opcode::MakeShape, {shape}, sizes_.sizes(*dims));
    return shape;
  }
  if (auto dim = value.try_as<Ref<const DimNode>>()) return sizes_.size(Dim(*dim));
  if (auto integers = value.try_as<Array<int64_t>>()) {
    const std::vector<int64_t> numbers(integers->begin(), integers->end());
    require_shape(numbers.size(), std::ranges::any_of(numbers, [](int64_t n) { return n < 0; }));
    if (element_count(numbers)) return Arg::constant(constants_.of_value(Any(Shape(numbers))));
    // Elements of a constant shape are reference-counted; a new one isn't.
    return attribute(name, Any(Array<Dim>(std::vector<Dim>(numbers.begin(), numbers.end()))));
  }
  if (auto integer = value.try_as<int64_t>(); integer && vm::fits_immediate(*integer)) {
    return Arg::imm(*integer);
  }
  if (!has_constant_form(value)) {
    refuse(cat("bytecode can't hold the attribute '", name, "', of kind ",
               type_name(value.type_index)),
           "use a number, boolean, string, element type, size, or a list of integers or sizes");
  }
  return Arg::constant(constants_.of_value(value));
}

Arg FunctionLowering::device(int64_t index) const {
  if (index != 0) {
    refuse(cat("memory on device ", index, " is ", kOnlyChecked),
           "leave it on the host, which is device 0");
  }
  return Arg::device({kDLCPU, 0});
}

void FunctionLowering::lower_packed(const Call& call, Arg dst, bool matched) {
  if (const Opcode opcode = instruction_of(call); opcode != Opcode::None) {
    if (opcode != Opcode::GetField) return lower_as_instruction(opcode, call, dst);
    return write_unknown(dst, call.result_type,
                         [&](Arg element) { lower_as_instruction(opcode, call, element); });
  }
  require_name("packed function", call.callee, span_);
  std::vector<Arg> args = values(call.args);
  for (const auto& [name, value] : passed_attributes(call)) {
    args.push_back(attribute(name.view(), value));
  }
  // A function of the host may return anything; Tenon's own keep to their signatures.
  const bool is_checked = !matched && !signature_of(call);
  if (is_checked && dst.is_none()) dst = code_.make(/*owns=*/true);
  code_.emit(Opcode::CallPacked,
             {dst, Arg::packed(packed_.function(call.callee, effect_of_function(call)))}, args);
  if (is_checked) check_returned(call, dst);
}

void FunctionLowering::check_returned(const Call& call, Arg value) {
  const TypeRef& type = call.result_type;
  const auto* scalar = type.as<ScalarType>();
  const bool is_matched =
      type.is<TensorType>() || type.is<ShapeType>() || (scalar && scalar->dtype.bits == 64);
  // A host's object is checked by those who know it, as an argument and as a result.
  const bool is_opaque = type.is<OpaqueType>() && !same_type(type, string_type());
  const vm::SignatureType expected = erased_type(type, call.callee, function_);
  if (!is_matched && !is_opaque && expected.kind != vm::SignatureType::Kind::Any) {
    const std::string text = vm::to_text(expected);
    const Arg operands[] = {value, Arg::constant(constants_.of_text(text)),
                            Arg::constant(constants_.of_text(call.callee.str()))};
    code_.emit(Opcode::CallPacked,
               {value, Arg::packed(packed_.function("vm.check_returned", Effect::Ordered))},
               operands);
  }
  sizes_.match_result(value, type);
}

void FunctionLowering::lower_as_instruction(Opcode opcode, const Call& call, Arg dst) {
  std::vector<Arg> operands = {dst};
  for (const vm::OperandSpec& spec : vm::info_of(opcode).specs().subspan(1)) {
    const Operand& operand = call.args[operands.size() - 1];
    operands.push_back(spec.kind == vm::OperandKind::Int ? integer(operand) : value(operand));
  }
  code_.emit(opcode, {}, operands);
}

void FunctionLowering::write_unknown(Arg dst, const TypeRef& type,
                                     const std::function<void(Arg)>& write) {
  const bool is_checked = has_sizes(type);
  if (is_checked && dst.is_none()) dst = code_.make(/*owns=*/true);
  write(dst);
  if (is_checked) sizes_.match_result(dst, type);
}

void FunctionLowering::lower_intrinsic(MemoryIntrinsic intrinsic, const Call& call,
                                       const VarRef& var) {
  if (results_.storages.contains(var.get())) return;
  const Arg dst = define(var);
  if (dst.is_none()) return;
  auto* const type = var->type.as<TensorType>();
  switch (intrinsic) {
    case MemoryIntrinsic::kStorage:
      code_.emit(Opcode::AllocStorage,
                 {dst, sizes_.size(bytes_of_storage(call)), Arg::imm(kTensorAlignment),
                  device(device_of_storage(call))});
      break;
    case MemoryIntrinsic::kTensor: {
      if (auto result = results_.index.find(var.get()); result != results_.index.end()) {
        code_.emit(
            Opcode::AllocResult,
            {dst, Arg::imm(result->second), Arg::device({kDLCPU, 0}), Arg::dtype(type->dtype)},
            sizes_.sizes(stated_shape(call)));
        break;
      }
      const Arg offset = sizes_.size(offset_of_tensor(call));
      const std::vector<Arg> dims = sizes_.sizes(stated_shape(call));
      const Arg storage = in_register(call.args[0]);
      code_.emit(Opcode::AllocTensor, {dst, storage, offset, Arg::dtype(type->dtype)}, dims);
      break;
    }
    case MemoryIntrinsic::kReshape: {
      const std::vector<Arg> dims = sizes_.sizes(stated_shape(call));
      const Arg tensor = value(call.args[0]);
      code_.emit(Opcode::ReshapeTensor, {dst, tensor}, dims);
      break;
    }
    case MemoryIntrinsic::kValues: {
      code_.emit(Opcode::MakeTensor, {dst, Arg::dtype(type->dtype), Arg::imm(type->rank)},
                 sizes_.sizes(stated_values(call)));
      break;
    }
    case MemoryIntrinsic::kElement: {
      Arg tensor = value(call.args[0]);
      const int64_t rank = type_of(call.args[0]).as<TensorType>()->rank;
      if (rank != 0 && rank != 1) {
        const Arg flat = code_.make(/*owns=*/true);
        code_.emit(Opcode::ReshapeTensor, {flat, tensor});
        tensor = flat;
      }
      code_.emit(Opcode::ReadElements, {tensor}, {&dst, 1});
      break;
    }
    case MemoryIntrinsic::kOfElement: {
      const Arg element = value(call.args[0]);
      code_.emit(Opcode::MakeTensor, {dst, Arg::dtype(type->dtype), Arg::imm(0)}, {&element, 1});
      break;
    }
    case MemoryIntrinsic::kRank:
      code_.emit(Opcode::RankOf, {dst, value(call.args[0])});
      break;
    case MemoryIntrinsic::kConcurrent:
      break;  // lower_block
  }
}

}  // namespace tenon::codegen
