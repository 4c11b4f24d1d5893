#include "vm/isa/operand_check.h"

#include "object/device_name.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/isa/limits.h"
#include "vm/isa/short_text.h"

namespace tenon::vm {
namespace {

constexpr uint16_t bit(ArgKind kind) {
  return static_cast<uint16_t>(1u << static_cast<int>(kind));
}
constexpr uint16_t kReg = bit(ArgKind::Register);
constexpr uint16_t kLast = bit(ArgKind::LastUse);
constexpr uint16_t kImm = bit(ArgKind::Immediate);
constexpr uint16_t kConst = bit(ArgKind::Constant);
constexpr uint16_t kFunc = bit(ArgKind::Function);
constexpr uint16_t kPacked = bit(ArgKind::Packed);
constexpr uint16_t kLabel = bit(ArgKind::Label);
constexpr uint16_t kDtype = bit(ArgKind::Dtype);
constexpr uint16_t kDevice = bit(ArgKind::Device);
constexpr uint16_t kNone = bit(ArgKind::None);
constexpr uint16_t kBorrowed = bit(ArgKind::Borrowed);

// The ArgKinds that an operand kind's first word accepts.
constexpr uint16_t kAccepts[] = {
#define TENON_OPERAND_KIND(identifier, name, accepts, ...) accepts,
#include "vm/isa/operand_kinds.def"
};

}  // namespace

uint16_t accepted_kinds(OperandKind kind, uint32_t part) {
  if (part == 0) return kAccepts[static_cast<size_t>(kind)];
  return kind == OperandKind::Case ? kLabel : kReg | kImm | kNone;
}

bool ImmediateRange::holds(int64_t v) const {
  return v >= least && v <= most && !(is_power && (v & (v - 1)));
}

std::optional<ImmediateRange> immediate_range(OperandKind kind) {
  switch (kind) {
#define TENON_OPERAND_KIND(...)
#define TENON_LIMITED_OPERAND_KIND(identifier, name, role, form, what, least, most, is_power, ...) \
  case OperandKind::identifier:                                                                    \
    return ImmediateRange{what, least, most, is_power};
#include "vm/isa/operand_kinds.def"
    default:
      return std::nullopt;
  }
}

std::string to_text(const ImmediateRange& range) {
  return cat(range.what, " from ", range.least, " to ", range.most,
             range.is_power ? ", a power of two" : "");
}

namespace {

constexpr size_t kLongestArgKindName = longest({
#define TENON_ARG_KIND(identifier, number, name, ...) name,
#include "vm/isa/arg_kinds.def"
});
struct ArgKindName {
  ArgKind kind;
  ShortText<kLongestArgKindName> name;
};
constexpr ArgKindName kArgKindNames[] = {
#define TENON_ARG_KIND(identifier, number, name, ...) {ArgKind::identifier, name},
#include "vm/isa/arg_kinds.def"
};

std::string kinds_text(const OperandSpec& spec, uint16_t allowed) {
  std::vector<std::string> names;
  for (const auto& [kind, name] : kArgKindNames) {
    if (allowed & bit(kind)) names.emplace_back(name);
  }
  return cat(join(names, ", "), " for '", spec.name(), "'");
}

// Whether bits that the word's kind doesn't use are set.
bool has_reserved_bits(Arg a) {
  switch (a.kind()) {
    case ArgKind::Immediate:
      return false;
    case ArgKind::Device:
      return a.bits() >> 56;
    case ArgKind::None:
      return a.bits() != 0;
    default:
      return a.bits() >> 32 != 0;
  }
}

// What must follow the first word of a dim.
struct SecondWord {
  ArgKind kind;
  const char* text;  // in an error
};
SecondWord second_word(DimMatch match) {
  switch (match) {
    case DimMatch::Ignore:
      return {ArgKind::None, "_ for an ignored dimension"};
    case DimMatch::EqualsImmediate:
      return {ArgKind::Immediate, "an immediate to compare a dimension with"};
    case DimMatch::EqualsRegister:
    case DimMatch::Store:
      break;
  }
  return {ArgKind::Register, "a register for a dimension"};
}

// String tensors pass through programs, but no instruction makes one.
bool may_name(Opcode opcode, DataType dtype) {
  if (is_tensor_dtype(dtype)) return true;
  return dtype == string_elements &&
         (opcode == Opcode::MatchTensor || opcode == Opcode::MatchDtype);
}

std::optional<Violation> check_immediate(const Instruction& in, uint32_t i, OperandKind kind,
                                         uint32_t part) {
  const int64_t v = in.arg(i).value();
  const auto range = immediate_range(kind);
  if (range && part == 0 && !range->holds(v)) {
    return Violation{Rule::ImmediateRange, i, cat(v), to_text(*range)};
  }
  if (kind == OperandKind::Rank && v == 0 && in.list().size() != 1) {
    return Violation{Rule::OperandCount, i, cat(in.list().size(), " elements"),
                     "one element for rank 0"};
  }
  if (kind == OperandKind::Dim && part == 0) {
    const Arg operand = in.arg(i + 1);
    const auto [wanted, text] = second_word(static_cast<DimMatch>(v));
    if (!operand.is(wanted)) return Violation{Rule::OperandKind, i + 1, to_text(operand), text};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_operand_kinds(const Instruction& in) {
  const OpcodeInfo& info = *in.info;
  uint32_t words = static_cast<uint32_t>(in.operands.size());
  uint32_t fixed = info.fixed_words;
  uint32_t width = info.has_list() ? words_of(info.specs().back().kind) : 1;
  if (words < fixed || (!info.has_list() && words != fixed) || (words - fixed) % width) {
    return Violation{Rule::OperandCount, 0, cat(words, " operand words"),
                     !info.has_list() ? cat(fixed)
                     : width > 1      ? cat(fixed, " and pairs after them")
                                      : cat("at least ", fixed)};
  }
  if (info.has_list() && info.specs().back().rank_bounded && (words - fixed) / width > kMaxRank) {
    return Violation{Rule::OperandCount, fixed, cat("rank ", (words - fixed) / width),
                     cat("at most ", kMaxRank)};
  }
  for (uint32_t i = 0; i < words; ++i) {
    uint32_t part = 0;
    const OperandSpec& spec = info.spec_at(i, &part);
    const uint16_t allowed = accepted_kinds(spec.kind, part);
    Arg a = in.arg(i);
    unsigned kind = static_cast<unsigned>(a.kind());
    if (kind >= kArgKinds || !(allowed & (1u << kind))) {
      return Violation{Rule::OperandKind, i, to_text(a), kinds_text(spec, allowed)};
    }
    if (has_reserved_bits(a)) {
      return Violation{Rule::ReservedBits, i, hex(a.word), "zeros in unused bits"};
    }
    if (a.is(ArgKind::Immediate)) {
      if (auto v = check_immediate(in, i, spec.kind, part)) return v;
    }
    if (a.is(ArgKind::Dtype) && !may_name(in.opcode(), a.as_dtype())) {
      return Violation{Rule::DtypeKnown, i, to_text(a.as_dtype()),
                       "an element type that tensors can have"};
    }
    if (a.is(ArgKind::Device) &&
        (a.as_device().device_type != kDLCPU || a.as_device().device_id != 0)) {
      return Violation{Rule::DeviceKnown, i, tenon::to_text(a.as_device()), "cpu:0"};
    }
  }
  return std::nullopt;
}

std::optional<Violation> check_operand_ranges(const Instruction& in, const Bounds& bounds) {
  for (uint32_t i = 0; i < in.operands.size(); ++i) {
    Arg a = in.arg(i);
    auto below = [&](Rule rule, uint32_t bound, const char* what) -> std::optional<Violation> {
      if (a.bits() < bound) return std::nullopt;
      return Violation{rule, i, to_text(a), cat(what, " below ", bound)};
    };
    std::optional<Violation> v;
    switch (a.kind()) {
      case ArgKind::Register:
      case ArgKind::LastUse:
      case ArgKind::Borrowed:
        v = below(Rule::RegisterRange, bounds.registers, "a register");
        break;
      case ArgKind::Constant:
        v = below(Rule::ConstantRange, bounds.constants, "a constant");
        break;
      case ArgKind::Function:
        v = below(Rule::FunctionRange, bounds.functions, "a function");
        break;
      case ArgKind::Packed:
        v = below(Rule::PackedRange, bounds.packed, "a packed function");
        break;
      case ArgKind::Label:
        v = below(Rule::LabelTarget, bounds.code_words, "a word offset");
        break;
      default:
        break;
    }
    if (v) return v;
  }
  return std::nullopt;
}

}  // namespace tenon::vm
