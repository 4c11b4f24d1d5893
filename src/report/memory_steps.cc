// What each instruction makes of the values that it reads.
#include <algorithm>

#include "object/shape.h"
#include "object/tensor.h"
#include "report/memory_walk.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/isa/allocation.h"

namespace tenon::report::memory {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::Opcode;
using vm::operand;

// The operation on sizes that an instruction is; null if it is none.
Dim (*dim_operation(Opcode opcode))(const Dim&, const Dim&) {
  using Operation = Dim (*)(const Dim&, const Dim&);
  switch (opcode) {
    case Opcode::Add:
    case Opcode::AddChecked:
      return static_cast<Operation>(&operator+);
    case Opcode::Sub:
    case Opcode::SubChecked:
      return static_cast<Operation>(&operator-);
    case Opcode::Mul:
    case Opcode::MulChecked:
      return static_cast<Operation>(&operator*);
    case Opcode::FloorDiv:
      return static_cast<Operation>(&floordiv);
    case Opcode::FloorMod:
      return static_cast<Operation>(&mod);
    case Opcode::Min:
      return static_cast<Operation>(&min);
    case Opcode::Max:
      return static_cast<Operation>(&max);
    case Opcode::Bcast:
      return static_cast<Operation>(&bcast);
    default:
      return nullptr;
  }
}

ValueRef value_of_constant(const vm::Constant& constant) {
  Value out;
  std::vector<int64_t> shape;
  if (constant.late) {
    shape = constant.late->shape;
    out.dtype = constant.late->dtype;
  } else if (const auto tensor = constant.value.try_as<Tensor>(); tensor && *tensor) {
    shape.assign(tensor->shape().begin(), tensor->shape().end());
    out.dtype = tensor->dtype();
  } else if (const auto sizes = constant.value.try_as<Shape>()) {
    shape.assign(sizes->begin(), sizes->end());
  } else if (const auto number = constant.value.try_as<int64_t>()) {
    return made_number(*number);
  } else {
    return nullptr;
  }
  out.dims = Dims(shape.begin(), shape.end());
  return made(std::move(out));
}

// Keeps what the value keeps and knows nothing else of it.
ValueRef part_of(const ValueRef& whole) {
  Value out;
  out.own = keeps(whole);
  return made(std::move(out));
}

ValueRef made_tensor(const Storages& own, std::optional<Dims> dims, DataType dtype) {
  Value out;
  out.own = own;
  out.dims = std::move(dims);
  out.dtype = dtype;
  return made(std::move(out));
}

}  // namespace

ValueRef Walk::value(Arg arg, const State& state) const {
  if (arg.is_register()) return state[arg.index()];
  if (arg.is(ArgKind::Immediate)) return made_number(arg.value());
  if (arg.is(ArgKind::Constant)) return value_of_constant(analysis_.unit().constants[arg.index()]);
  return nullptr;
}

Dim Walk::number(const Instruction& in, uint32_t word, uint32_t at, const State& state) {
  const ValueRef found = value(in.arg(word), state);
  if (found && found->number) return *found->number;
  return unknown("number", at, word, "a number that is used");
}

Dims Walk::listed_numbers(const Instruction& in, uint32_t at, const State& state) {
  Dims out;
  for (uint32_t word = in.info->fixed_words; word < in.operands.size(); ++word) {
    out.emplace_back(number(in, word, at, state));
  }
  return out;
}

std::optional<Dims> Walk::dims_of(const ValueRef& value) const {
  return value ? value->dims : std::nullopt;
}

void Walk::put(Arg destination, ValueRef value, State* state) {
  if (destination.is_register()) (*state)[destination.index()] = std::move(value);
}

void Walk::put_result(const Instruction& in, ValueRef value, State* state) {
  TENON_ASSERT(in.info->has_result(), in.info->mnemonic, " has no result");
  put(in.arg(0), std::move(value), state);
}

void Walk::release(const Instruction& in, State* state) const {
  for (uint32_t word = 0; word < in.operands.size(); ++word) {
    const Arg arg = in.arg(word);
    if (arg.is(ArgKind::LastUse) && vm::role_of(in, word) == vm::OperandRole::ReadsValue) {
      (*state)[arg.index()] = nullptr;
    }
  }
}

Dim Walk::bytes_of(const Dims& dims, DataType dtype, uint32_t at) {
  Dim bytes = dtype.bytes();
  for (const auto& dim : dims) {
    bytes = bytes * (dim ? *dim : unknown("size", at, 0, "a size that is used"));
  }
  return bytes;
}

// A new storage, beside those of the state.
ValueRef Walk::allocated(uint32_t at, uint32_t index, const Dim& bytes, const State& state) {
  const Dim bounded = analysis_.unknowns().bounded(
      bytes, cat("bytes(", place(at), ")"),
      cat("the bytes of the storage that is allocated at ", source(at)));
  const StorageId storage = storages_.at(at, index, bounded);
  if (collects_) {
    Storages all = live_in(state);
    add(&all, {storage});
    record(storages_.total(all));
  }
  return made_storage(storage);
}

// What is kept by the values that the instruction reads.
Storages Walk::read_storages(const Instruction& in, const State& state) const {
  Storages out;
  for (uint32_t word = 0; word < in.operands.size(); ++word) {
    if (vm::role_of(in, word) == vm::OperandRole::ReadsValue) {
      memory::add(&out, keeps(value(in.arg(word), state)));
    }
  }
  return out;
}

// A tensor in a storage, or in a block of its own.
ValueRef Walk::fresh(const Instruction& in, const vm::FreshTensor& tensor, uint32_t at,
                     const State& state) {
  const std::optional<Dims> dims =
      tensor.dims ? listed_numbers(in, at, state)
                  : dims_of(value(in.arg(operand(Opcode::AllocTensorReg, "shape")), state));
  const ValueRef storage = tensor.place
                               ? state[tensor.place->storage]
                               : allocated(at, 0, bytes_of(*dims, tensor.dtype, at), state);
  return made_tensor(keeps(storage), dims, tensor.dtype);
}

bool Walk::step(const Instruction& in, uint32_t at, State* state) {
  switch (in.opcode()) {
    case Opcode::Ret:
      return_value(value(in.arg(operand(Opcode::Ret, "value")), *state));
      return true;
    case Opcode::Call:
    case Opcode::TailCall:
    case Opcode::CallClosure:
    case Opcode::TailCallClosure:
      return call(in, at, state);
    case Opcode::CallPacked:
      call_packed(in, at, state);
      return true;
    default:
      break;
  }
  if (step_size(in, at, state) || step_value(in, at, state)) return true;
  // What is known of any other instruction: its results may be parts of what it reads.
  Value result;
  result.own = read_storages(in, *state);
  const ValueRef part = made(std::move(result));
  release(in, state);
  for (uint32_t word = 0; word < in.operands.size(); ++word) {
    if (vm::role_of(in, word) == vm::OperandRole::Writes) put(in.arg(word), part, state);
  }
  return true;
}

// Instructions on numbers, shapes and storages.
bool Walk::step_size(const Instruction& in, uint32_t at, State* state) {
  ValueRef result;
  if (const auto operation = dim_operation(in.opcode())) {
    constexpr uint32_t kLeft = operand(Opcode::Add, "a"), kRight = operand(Opcode::Add, "b");
    try {
      result =
          made_number(operation(number(in, kLeft, at, *state), number(in, kRight, at, *state)));
    } catch (const SizeError&) {  // no size: a division by 0, an overflow
      result = nullptr;
    }
    put_result(in, std::move(result), state);
    return true;
  }
  switch (in.opcode()) {
    case Opcode::LoadInt:
      result = made_number(in.arg(operand(Opcode::LoadInt, "value")).value());
      break;
    case Opcode::AllocStorage:
      result =
          allocated(at, 0, number(in, operand(Opcode::AllocStorage, "size"), at, *state), *state);
      break;
    case Opcode::AllocTensor:
    case Opcode::AllocTensorReg:
    case Opcode::NewTensor:
    case Opcode::AllocResult:
      result = fresh(in, *vm::fresh_tensor(in), at, *state);
      break;
    case Opcode::MakeTensor: {
      const auto count = static_cast<int64_t>(in.list().size());
      const DataType dtype = in.arg(operand(Opcode::MakeTensor, "dtype")).as_dtype();
      const bool is_scalar = in.arg(operand(Opcode::MakeTensor, "rank")).value() == 0;
      const Dims dims = is_scalar ? Dims() : Dims{Dim(count)};
      result = made_tensor(keeps(allocated(at, 0, count * dtype.bytes(), *state)), dims, dtype);
      break;
    }
    case Opcode::DeviceCopy: {
      const ValueRef from = value(in.arg(operand(Opcode::DeviceCopy, "tensor")), *state);
      const bool known = from && from->dims && from->dtype;
      const Dim bytes = known ? bytes_of(*from->dims, *from->dtype, at)
                              : unknown("bytes", at, 0, "the bytes of the copy that is made");
      Value copy;
      copy.own = keeps(allocated(at, 0, bytes, *state));
      if (known) {
        copy.dims = from->dims;
        copy.dtype = from->dtype;
      }
      result = made(std::move(copy));
      break;
    }
    case Opcode::ReadElements:
      release(in, state);
      for (uint32_t word = in.info->fixed_words; word < in.operands.size(); ++word) {
        put(in.arg(word), made_number(unknown("element", at, word, "an element that is read")),
            state);
      }
      return true;
    case Opcode::MatchShape:
    case Opcode::MatchTensor:
      match(in, at, state);
      return true;
    case Opcode::MatchPrimValue: {
      constexpr uint32_t kExpected = operand(Opcode::MatchPrimValue, "expected");
      const ValueRef found = value(in.arg(operand(Opcode::MatchPrimValue, "value")), *state);
      if (static_cast<vm::DimMatch>(in.arg(kExpected).value()) == vm::DimMatch::Store) {
        put(in.arg(kExpected + 1), found, state);
      }
      return true;
    }
    default:
      return false;
  }
  release(in, state);
  put_result(in, std::move(result), state);
  return true;
}

// Dimensions of a value, in pairs of words: what is required of each, and where it goes.
void Walk::match(const Instruction& in, uint32_t at, State* state) {
  constexpr uint32_t kValue = operand(Opcode::MatchShape, "value");
  static_assert(kValue == operand(Opcode::MatchTensor, "value"));
  const uint32_t first_dim = in.info->fixed_words;
  const Arg from = in.arg(kValue);
  const ValueRef found = value(from, *state);
  Value matched = found ? *found : Value();
  const size_t rank = (in.operands.size() - first_dim) / 2;
  const auto all_known = [&] {
    return std::ranges::all_of(*matched.dims, [](const auto& dim) { return dim.has_value(); });
  };
  if (!matched.dims || matched.dims->size() != rank) matched.dims = Dims(rank);
  const bool was_known = found && found->dims == matched.dims && all_known();
  std::vector<std::pair<Arg, Dim>> stored;
  for (uint32_t axis = 0; axis < rank; ++axis) {
    const uint32_t word = first_dim + 2 * axis;
    std::optional<Dim>& dim = (*matched.dims)[axis];
    switch (static_cast<vm::DimMatch>(in.arg(word).value())) {
      case vm::DimMatch::Ignore:
        break;
      case vm::DimMatch::EqualsImmediate:
        dim = Dim(in.arg(word + 1).value());
        break;
      case vm::DimMatch::EqualsRegister:
        if (!dim) dim = number(in, word + 1, at, *state);
        break;
      case vm::DimMatch::Store:
        if (!dim) dim = unknown("size", at, axis, cat("dimension ", axis, " of what is matched"));
        stored.emplace_back(in.arg(word + 1), *dim);
        break;
    }
  }
  if (in.opcode() == Opcode::MatchTensor) {
    matched.dtype = in.arg(operand(Opcode::MatchTensor, "dtype")).as_dtype();
    // A packed function allocated it; now its size is known.
    if (!was_known && all_known() && matched.own.size() == 1 && !matched.fields) {
      const Dim& bytes = storages_[matched.own[0]].bytes;
      if (bytes.kind() == DimKind::kSymbol) {
        analysis_.define(bytes, bytes_of(*matched.dims, *matched.dtype, at));
      }
    }
  }
  if (from.is(ArgKind::Register)) put(from, made(std::move(matched)), state);
  release(in, state);
  for (auto& [destination, dim] : stored) put(destination, made_number(dim), state);
}

// Instructions on values that only pass storages on.
bool Walk::step_value(const Instruction& in, uint32_t at, State* state) {
  Value result;
  const auto reshape = [&](std::optional<Dims> dims) {
    constexpr uint32_t kTensor = operand(Opcode::ReshapeTensor, "tensor");
    static_assert(kTensor == operand(Opcode::ReshapeTensorReg, "tensor"));
    const ValueRef from = value(in.arg(kTensor), *state);
    result.own = keeps(from);
    result.dims = std::move(dims);
    if (from) result.dtype = from->dtype;
  };
  switch (in.opcode()) {
    case Opcode::Kill:
      for (const vm::Word word : in.operands) put(Arg(word), nullptr, state);
      return true;
    case Opcode::Move:
    case Opcode::LoadConst: {
      constexpr uint32_t kSource = operand(Opcode::Move, "src");
      static_assert(kSource == operand(Opcode::LoadConst, "constant"));
      ValueRef moved = value(in.arg(kSource), *state);
      release(in, state);
      put_result(in, std::move(moved), state);
      return true;
    }
    case Opcode::ReshapeTensor:
      reshape(listed_numbers(in, at, *state));
      break;
    case Opcode::ReshapeTensorReg:
      reshape(dims_of(value(in.arg(operand(Opcode::ReshapeTensorReg, "shape")), *state)));
      break;
    case Opcode::ShapeOf:
      result.dims = dims_of(value(in.arg(operand(Opcode::ShapeOf, "tensor")), *state));
      break;
    case Opcode::MakeShape:
      result.dims = listed_numbers(in, at, *state);
      break;
    case Opcode::GetDim: {
      const auto dims = dims_of(value(in.arg(operand(Opcode::GetDim, "value")), *state));
      const Arg axis = in.arg(operand(Opcode::GetDim, "axis"));
      if (dims && axis.is(ArgKind::Immediate) && axis.value() >= 0 &&
          static_cast<size_t>(axis.value()) < dims->size()) {
        result.number = (*dims)[static_cast<size_t>(axis.value())];
      }
      if (!result.number) result.number = unknown("size", at, 0, "a dimension that is read");
      break;
    }
    case Opcode::ArraySet:
    case Opcode::ArrayPush:
      result.own = read_storages(in, *state);
      break;
    case Opcode::AllocAdt:
    case Opcode::ReuseAdt:
    case Opcode::AllocTuple:
    case Opcode::AllocClosure: {
      auto& fields = result.fields.emplace();
      for (const vm::Word word : in.list()) fields.push_back(value(Arg(word), *state));
      if (in.opcode() == Opcode::AllocClosure) {
        result.function = in.arg(operand(Opcode::AllocClosure, "function")).index();
      }
      break;
    }
    case Opcode::GetField:
    case Opcode::BorrowField: {
      constexpr uint32_t kObject = operand(Opcode::GetField, "object"),
                         kIndex = operand(Opcode::GetField, "index");
      static_assert(kObject == operand(Opcode::BorrowField, "object") &&
                    kIndex == operand(Opcode::BorrowField, "index"));
      const ValueRef whole = value(in.arg(kObject), *state);
      const Arg index = in.arg(kIndex);
      const bool known = whole && whole->fields && index.is(ArgKind::Immediate) &&
                         index.value() >= 0 &&
                         static_cast<size_t>(index.value()) < whole->fields->size();
      ValueRef field =
          known ? (*whole->fields)[static_cast<size_t>(index.value())] : part_of(whole);
      release(in, state);
      put_result(in, std::move(field), state);
      return true;
    }
    case Opcode::TakeFields: {
      const ValueRef whole = value(in.arg(operand(Opcode::TakeFields, "object")), *state);
      const auto list = in.list();
      const bool known = whole && whole->fields && whole->fields->size() == list.size();
      release(in, state);
      for (size_t i = 0; i < list.size(); ++i) {
        put(Arg(list[i]), known ? (*whole->fields)[i] : part_of(whole), state);
      }
      return true;
    }
    default:
      if (!in.info->writes_integers() && !in.info->writes_boolean()) return false;
      break;  // an integer or a boolean of which nothing is known
  }
  release(in, state);
  put_result(in, made(std::move(result)), state);
  return true;
}

}  // namespace tenon::report::memory
