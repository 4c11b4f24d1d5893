// Tensors as compiled code reads them itself: their dtypes and sizes.
#include "codegen/llvm/bytecode_function.h"
#include "object/type_index.h"
#include "vm/isa/code_builder.h"

namespace tenon::codegen {

using vm::Arg;
using vm::CodeLayout;
using vm::DimMatch;
using vm::DimPattern;
using vm::Instruction;
using vm::Opcode;

namespace {

// Matches of more sizes are left to the machine.
constexpr size_t kMostSizes = 8;

std::vector<DimPattern> patterns_of(const Instruction& in) {
  std::vector<DimPattern> patterns;
  for (uint32_t i = vm::operand(Opcode::MatchTensor, "dims"); i < in.operands.size(); i += 2) {
    patterns.push_back({static_cast<DimMatch>(in.arg(i).value()), in.arg(i + 1)});
  }
  return patterns;
}

}  // namespace

// Whether the sizes can be compared before the first is stored.
bool FunctionTranslator::may_match(Arg value, std::span<const DimPattern> sizes) const {
  if (!value.is_register() || kind_of_operand(value) != Kind::Any || sizes.size() > kMostSizes) {
    return false;
  }
  RegisterSet stored(function_.register_count);
  for (const auto& [match, operand] : sizes) {
    if (match == DimMatch::Store) stored.add(operand.index());
    if (match != DimMatch::EqualsRegister) continue;
    if (stored.has(operand.index()) || kind_of_operand(operand) != Kind::Int) return false;
  }
  return !stored.has(value.index());
}

// The machine reports what doesn't match.
bool FunctionTranslator::match_tensor(const Instruction& in) {
  const Arg value = in.arg(vm::operand(Opcode::MatchTensor, "value"));
  const std::vector<DimPattern> sizes = patterns_of(in);
  if (!writing() || !may_match(value, sizes)) return false;
  const uint64_t dtype = in.arg(vm::operand(Opcode::MatchTensor, "dtype")).as_dtype().word();
  llvm::BasicBlock* const other = new_block("other");
  llvm::Value* tensor = object_of(w_.load_words(b_, home(value.index())), TypeIndex::Tensor, other);
  llvm::Value* rank_and_dtype = m_.field(b_, m_.i64, tensor, CodeLayout::kTensorRankAndDtype);
  llvm::Value* matches = b_.CreateICmpEQ(rank_and_dtype, b_.getInt64(dtype << 32 | sizes.size()));
  require(matches, other);
  llvm::Value* shape = m_.field(b_, m_.pointer, tensor, CodeLayout::kTensorShape);
  std::vector<llvm::Value*> found;
  for (const auto& [match, operand] : sizes) {
    const auto offset = static_cast<int64_t>(8 * found.size());
    llvm::Value* size = found.emplace_back(m_.field(b_, m_.i64, shape, offset));
    if (match != DimMatch::EqualsImmediate && match != DimMatch::EqualsRegister) continue;
    require(b_.CreateICmpEQ(size, payload(operand, Kind::Int)), other);
  }
  const State before = now_;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].match == DimMatch::Store) define(sizes[i].operand.index(), Kind::Int, found[i]);
  }
  drop_last(value);
  or_in_machine(in, before, other);
  return true;
}

}  // namespace tenon::codegen
