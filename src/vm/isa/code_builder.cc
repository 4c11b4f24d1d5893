#include "vm/isa/code_builder.h"

#include "support/error.h"
#include "vm/isa/operand_check.h"

namespace tenon::vm {

std::vector<Arg> dim_operands(std::span<const DimPattern> dims) {
  std::vector<Arg> out;
  for (const DimPattern& dim : dims) {
    out.push_back(Arg::imm(static_cast<int64_t>(dim.match)));
    out.push_back(dim.operand);
  }
  return out;
}

Label CodeBuilder::make_label() {
  label_offsets_.push_back(-1);
  return {static_cast<uint32_t>(label_offsets_.size() - 1)};
}

void CodeBuilder::bind(Label label) {
  TENON_ASSERT(label_offsets_.at(label.id) < 0, "label bound twice");
  label_offsets_[label.id] = size();
}

Arg CodeBuilder::to(Label label) const {
  return Arg::label(label.id);
}

void CodeBuilder::set_span(uint32_t span) {
  if (!spans_.empty() && spans_.back().offset == size()) {
    spans_.back().span = span;
  } else if (spans_.empty() || spans_.back().span != span) {
    spans_.push_back({size(), span});
  }
}

void CodeBuilder::emit(Opcode opcode, std::span<const Arg> operands, std::span<const Arg> list) {
  const OpcodeInfo& info = info_of(opcode);
  uint32_t start = size();
  code_.push_back(encode_header(opcode, static_cast<uint32_t>(operands.size() + list.size())));
  for (Arg a : operands) code_.push_back(a.word);
  for (Arg a : list) code_.push_back(a.word);
  Instruction instruction{&info, std::span(code_).subspan(start + 1)};
  auto violation = check_operand_kinds(instruction);
  TENON_ASSERT(!violation, info.mnemonic, " operand ", violation ? violation->operand : 0,
               ": found ", violation ? violation->found : "", ", expected ",
               violation ? violation->expected : "");
  for (uint32_t i = start + 1; i < code_.size(); ++i) {
    if (Arg(code_[i]).is(ArgKind::Label)) fixups_.push_back(i);
  }
}

std::vector<Word> CodeBuilder::finish(std::vector<CodeSpan>* spans) {
  for (uint32_t at : fixups_) {
    int64_t offset = label_offsets_.at(Arg(code_[at]).index());
    TENON_ASSERT(offset >= 0, "label used but never bound");
    code_[at] = Arg::label(static_cast<uint32_t>(offset)).word;
  }
  if (spans) *spans = std::move(spans_);
  return std::move(code_);
}

}  // namespace tenon::vm
