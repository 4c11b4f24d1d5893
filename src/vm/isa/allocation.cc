#include "vm/isa/allocation.h"

namespace tenon::vm {
namespace {

// The operand's first word, if the instruction has an operand of that name.
std::optional<uint32_t> find_operand(const OpcodeInfo& info, std::string_view name) {
  uint32_t word = 0;
  for (const OperandSpec& spec : info.specs()) {
    if (spec.name() == name) return word;
    word += words_of(spec.kind);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> FreshTensor::bytes() const {
  if (!dims) return std::nullopt;
  int64_t bytes = dtype.bytes();
  for (const Word word : *dims) {
    const Arg dim(word);
    if (!dim.is(ArgKind::Immediate) || __builtin_mul_overflow(bytes, dim.value(), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

std::optional<FreshTensor> fresh_tensor(const Instruction& instruction) {
  const OpcodeInfo& info = *instruction.info;
  if (!info.makes_fresh()) return std::nullopt;
  FreshTensor tensor;
  tensor.dtype = instruction.arg(*find_operand(info, "dtype")).as_dtype();
  if (find_operand(info, "dims")) tensor.dims = instruction.list();
  if (const auto storage = find_operand(info, "storage")) {
    tensor.place = {instruction.arg(*storage).index(),
                    instruction.arg(*find_operand(info, "offset"))};
  }
  return tensor;
}

std::optional<Block> block_of(const Instruction& instruction) {
  const OpcodeInfo& info = *instruction.info;
  if (info.opcode == Opcode::MakeTensor) {
    const DataType dtype = instruction.arg(operand(Opcode::MakeTensor, "dtype")).as_dtype();
    return Block{static_cast<int64_t>(instruction.list().size()) * dtype.bytes()};
  }
  if (!info.has_operand(OperandKind::Device)) return std::nullopt;
  if (const auto tensor = fresh_tensor(instruction)) return Block{tensor->bytes()};
  Block block;
  if (const auto at = find_operand(info, "size")) {
    const Arg size = instruction.arg(*at);
    if (size.is(ArgKind::Immediate)) block.bytes = size.value();
  }
  return block;
}

}  // namespace tenon::vm
