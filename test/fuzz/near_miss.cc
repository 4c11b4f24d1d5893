#include "near_miss.h"

#include <algorithm>

#include "object/array.h"
#include "object/string.h"
#include "object/tensor.h"
#include "vm/isa/limits.h"

namespace tenon::fuzz {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::OperandKind;
using vm::Rule;
using vm::Word;

// An instruction of a unit and optionally one of its operand words.
struct Place {
  vm::FunctionUnit* function;
  uint32_t offset;
  vm::Instruction instruction;
  uint32_t word = 0;

  Word& header() const { return function->code[offset]; }
  Word& operand() const { return function->code[offset + 1 + word]; }
  OperandKind kind(uint32_t* part = nullptr) const {
    return instruction.info->spec_at(word, part).kind;
  }
};

uint32_t index(Choices& choices, size_t size) {
  return static_cast<uint32_t>(choices.below(size));
}

class Breaker {
 public:
  Breaker(Choices& choices, vm::Unit& unit, vm::VerifyContext& context)
      : choices_(choices), unit_(unit), context_(context) {}

  bool break_rule(Rule rule);

 private:
  template <class F>
  void for_each_instruction(const F& f) {
    for (vm::FunctionUnit& function : unit_.functions) {
      Place place{&function, 0, {}};
      for (; decode(function.code, place.offset, &place.instruction);
           place.offset += place.instruction.words()) {
        f(place);
      }
    }
  }

  // A random instruction that satisfies the predicate.
  template <class F>
  std::optional<Place> instruction(const F& takes) {
    std::vector<Place> places;
    for_each_instruction([&](const Place& place) {
      if (takes(place)) places.push_back(place);
    });
    if (places.empty()) return std::nullopt;
    return choices_.of(places);
  }

  // A random operand word that satisfies the predicate.
  template <class F>
  std::optional<Place> operand(const F& takes) {
    std::vector<Place> places;
    for_each_instruction([&](Place place) {
      for (place.word = 0; place.word < place.instruction.operands.size(); ++place.word) {
        if (takes(place)) places.push_back(place);
      }
    });
    if (places.empty()) return std::nullopt;
    return choices_.of(places);
  }
  std::optional<Place> operand_of_kind(OperandKind kind) {
    return operand([&](const Place& p) {
      uint32_t part = 0;
      return p.kind(&part) == kind && part == 0;
    });
  }
  std::optional<Place> operand_word(std::initializer_list<ArgKind> kinds) {
    return operand([&](const Place& p) {
      return std::find(kinds.begin(), kinds.end(), Arg(p.operand()).kind()) != kinds.end();
    });
  }

  // Replaces the operand's word; returns false if there is no operand.
  static bool set(const std::optional<Place>& place, Word word) {
    if (place) place->operand() = word;
    return place.has_value();
  }
  // Sets an index to just past the end of its table.
  bool set_index(const std::optional<Place>& place, size_t size) {
    if (!place) return false;
    const Arg old(place->operand());
    const auto past = static_cast<int64_t>(size + (choices_.one_in(2) ? 0 : choices_.below(1000)));
    return set(place, Arg(old.kind(), past).word);
  }

  // Adds operand words at the end of the instruction or removes them, and adjusts jumps.
  void resize_operands(const Place& place, uint32_t count, Word filling) {
    const auto old = static_cast<uint32_t>(place.instruction.operands.size());
    std::vector<Word>& code = place.function->code;
    const auto end = code.begin() + place.offset + 1 + old;
    const uint32_t behind = place.offset + 1 + old;
    if (count > old) {
      code.insert(end, count - old, filling);
    } else {
      code.erase(end - (old - count), end);
    }
    place.header() = vm::encode_header(place.instruction.opcode(), count);
    for (uint32_t at = 0; at < code.size(); at += 1 + static_cast<uint32_t>(code[at] >> 32)) {
      for (uint32_t i = 1; i <= code[at] >> 32; ++i) {
        const Arg a(code[at + i]);
        if (a.is(ArgKind::Label) && a.index() >= behind) {
          code[at + i] = Arg::label(a.index() + count - old).word;
        }
      }
    }
  }

  bool break_operand_count();
  bool break_operand_kind();
  bool break_immediate();
  bool break_arity();
  bool break_constant_type();
  bool break_label();

  Choices& choices_;
  vm::Unit& unit_;
  vm::VerifyContext& context_;
};

bool Breaker::break_operand_count() {
  const std::optional<Place> place = instruction([](const Place&) { return true; });
  if (!place) return false;
  const vm::OpcodeInfo& info = *place->instruction.info;
  const auto count = static_cast<uint32_t>(place->instruction.operands.size());
  if (!info.has_list()) {
    resize_operands(*place, count + 1 + index(choices_, 3), Arg::none().word);
  } else if (info.specs().back().rank_bounded) {
    const uint32_t width = words_of(info.specs().back().kind);
    resize_operands(*place, info.fixed_words + (kMaxRank + 1) * width, Arg::none().word);
  } else if (words_of(info.specs().back().kind) > 1) {
    resize_operands(*place, count + 1, Arg::none().word);
  } else if (info.fixed_words > 0) {
    resize_operands(*place, info.fixed_words - 1, 0);
  } else {
    return false;
  }
  return true;
}

bool Breaker::break_operand_kind() {
  const std::optional<Place> place = operand([](const Place&) { return true; });
  if (!place) return false;
  uint32_t part = 0;
  const OperandKind kind = place->kind(&part);
  const uint16_t accepted = vm::accepted_kinds(kind, part);
  std::vector<uint64_t> others = {vm::kArgKinds, 255};  // invalid kinds
  for (uint64_t k = 0; k < vm::kArgKinds; ++k) {
    if (!(accepted & 1u << k)) others.push_back(k);
  }
  return set(place, choices_.of(others) << 56);
}

bool Breaker::break_immediate() {
  const std::optional<Place> place = operand([](const Place& p) {
    uint32_t part = 0;
    return vm::immediate_range(p.kind(&part)) && part == 0;
  });
  if (!place) return false;
  const vm::ImmediateRange range = *vm::immediate_range(place->kind());
  std::vector<int64_t> wrong = {range.least - 1, range.most + 1, vm::kMinImmediate,
                                vm::kMaxImmediate};
  if (range.is_power) wrong.insert(wrong.end(), {3, 2 * range.most});
  return set(place, Arg::imm(choices_.of(wrong)).word);
}

bool Breaker::break_arity() {
  const std::optional<Place> place = instruction(
      [](const Place& p) { return p.instruction.info->has_operand(OperandKind::Func); });
  if (!place) return false;
  const auto count = static_cast<uint32_t>(place->instruction.operands.size());
  const bool fewer = place->instruction.info->calls() && !place->instruction.list().empty();
  if (fewer && choices_.one_in(2)) {
    resize_operands(*place, count - 1, 0);
  } else {
    // More captures than any function has parameters.
    resize_operands(*place, count + 1 + vm::kMaxParams, Arg::none().word);
  }
  return true;
}

bool Breaker::break_constant_type() {
  const std::optional<Place> place = operand_of_kind(OperandKind::Text);
  if (!place) return false;
  return set(place, Arg::constant(unit_.add_constant(Any(int64_t{7}))).word);
}

// Sets a label to the middle of an instruction or to the end of the code.
bool Breaker::break_label() {
  const std::optional<Place> label = operand_word({ArgKind::Label});
  if (!label) return false;
  std::vector<uint32_t> wrong = {static_cast<uint32_t>(label->function->code.size())};
  for_each_instruction([&](const Place& p) {
    if (p.function != label->function) return;
    for (uint32_t i = 1; i < p.instruction.words(); ++i) wrong.push_back(p.offset + i);
  });
  return set(label, Arg::label(choices_.of(wrong)).word);
}

bool Breaker::break_rule(Rule rule) {
  vm::FunctionUnit& function = unit_.functions[index(choices_, unit_.functions.size())];
  const std::optional<Place> any = instruction([](const Place&) { return true; });
  switch (rule) {
    case Rule::OpcodeKnown: {
      uint64_t number = choices_.below(1 << 16);
      while (vm::find_opcode(static_cast<uint32_t>(number))) ++number;
      any->header() = (any->header() & ~Word{0xffff}) | number;
      return true;
    }
    case Rule::OpcodeSince: {
      const std::optional<Place> young =
          instruction([](const Place& p) { return p.instruction.info->since > 1; });
      if (young) context_.version = young->instruction.info->since - 1;
      return young.has_value();
    }
    case Rule::ReservedBits: {
      if (choices_.one_in(2)) {
        any->header() |= Word{1} << (16 + choices_.below(16));
        return true;
      }
      const std::optional<Place> place =
          operand_word({ArgKind::Register, ArgKind::LastUse, ArgKind::Constant, ArgKind::Function,
                        ArgKind::Packed, ArgKind::Label, ArgKind::Dtype, ArgKind::None});
      return set(place, place ? place->operand() | Word{1} << (32 + choices_.below(24)) : 0);
    }
    case Rule::EndsInCode: {
      const uint64_t left = any->function->code.size() - any->offset;
      any->header() = vm::encode_header(any->instruction.opcode(),
                                        static_cast<uint32_t>(left + choices_.below(1 << 20)));
      return true;
    }
    case Rule::OperandCount:
      return break_operand_count();
    case Rule::OperandKind:
      return break_operand_kind();
    case Rule::RegisterRange: {
      const std::optional<Place> place = operand_word({ArgKind::Register, ArgKind::LastUse});
      return place && set_index(place, place->function->register_count);
    }
    case Rule::ConstantRange:
      return set_index(operand_word({ArgKind::Constant}), unit_.constants.size());
    case Rule::ConstantType:
      return break_constant_type();
    case Rule::FunctionRange:
      return set_index(operand_word({ArgKind::Function}), unit_.functions.size());
    case Rule::PackedRange:
      return set_index(operand_word({ArgKind::Packed}), unit_.packed.size());
    case Rule::LabelTarget:
      return break_label();
    case Rule::FallsOffEnd:
      function.code.insert(function.code.end(), {vm::encode_header(vm::Opcode::Move, 2),
                                                 Arg::none().word, Arg::none().word});
      return true;
    case Rule::Arity:
      return break_arity();
    case Rule::ConcurrentCalls:
      // Before the last instruction, a return.
      function.code.insert(function.code.end() - 2,
                           {vm::encode_header(vm::Opcode::Concurrent, 1), Arg::imm(2).word});
      return true;
    case Rule::Borrowed: {
      // Its code reads every other parameter without borrowing it.
      const auto owned = std::ranges::find(function.params, false, &vm::Param::borrowed);
      if (owned == function.params.end()) return false;
      owned->borrowed = true;
      return true;
    }
    case Rule::ImmediateRange:
      return break_immediate();
    case Rule::DtypeKnown: {
      DataType unknown = f32;
      unknown.code = static_cast<uint8_t>(200 + choices_.below(50));
      return set(operand_of_kind(OperandKind::Dtype), Arg::dtype(unknown).word);
    }
    case Rule::DeviceKnown: {
      const DLDevice device = choices_.one_in(2) ? DLDevice{kDLCUDA, 0} : DLDevice{kDLCPU, 1};
      return set(operand_of_kind(OperandKind::Device), Arg::device(device).word);
    }
    case Rule::FrameSize:
      function.register_count = function.params.empty() || choices_.one_in(2)
                                    ? vm::kMaxRegisters + 1
                                    : static_cast<uint32_t>(function.params.size() - 1);
      return true;
    case Rule::CodeSize:
      function.code.clear();
      return true;
    case Rule::TableSize:
      unit_.libraries.assign(vm::kMaxLibraries + 1, "library");
      return true;
    case Rule::NameText:
      function.name = choices_.one_in(2) ? "" : std::string("f\n");
      return true;
    case Rule::NameUnique:
      function.params.push_back({.name = "same", .type = {}});
      function.params.push_back({.name = "same", .type = {}});
      function.register_count += 2;
      return true;
    case Rule::ResultNames:
      function.result_names.assign(2, "result");
      return true;
    case Rule::SpanOrder:
      function.spans.push_back({static_cast<uint32_t>(function.code.size()), 0});
      return true;
    case Rule::ConstantForm:
      unit_.add_constant(Any(Array<Any>{Any(int64_t{1})}));
      return true;
    case Rule::KernelNames:
      unit_.packed.push_back({"kernel", true, Effect::Pure});
      return true;
    case Rule::SignatureText:
    case Rule::KernelClosed:
      return false;
  }
  return false;
}

}  // namespace

bool break_rule(Choices& choices, Rule rule, vm::Unit& unit, vm::VerifyContext& context) {
  return Breaker(choices, unit, context).break_rule(rule);
}

std::string_view unbreakable(Rule rule) {
  switch (rule) {
    case Rule::SignatureText:
      return "a unit holds types, which were text in the file alone";
    case Rule::KernelClosed:
      return "it is about native code, which has no instructions";
    default:
      return "";
  }
}

bool names_rule(const Error& refusal, vm::Rule rule) {
  return std::ranges::any_of(refusal.rows(), [&](const Error::Row& row) {
    return row.label == "rule" && row.text.starts_with(cat(vm::rule_name(rule), ","));
  });
}

}  // namespace tenon::fuzz
