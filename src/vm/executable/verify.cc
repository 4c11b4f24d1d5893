#include "vm/executable/verify.h"

#include <numeric>
#include <optional>
#include <vector>

#include "object/shape.h"
#include "object/string.h"
#include "object/tensor.h"
#include "support/poll.h"
#include "support/sort_numbers.h"
#include "support/text.h"
#include "vm/executable/elf_check.h"
#include "vm/executable/file_format.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

constexpr std::string_view kBorrowing = "borrowed registers just where the rule has them";

using Flags = std::string;  // whose code, unlike that of a vector, isn't in the runtime

class Verifier {
 public:
  Verifier(const Unit& unit, const VerifyContext& context)
      : unit_(unit),
        context_(context),
        version_(context.version ? context.version : kFormatVersion) {}

  void run() {
    table_sizes();
    for (size_t i = 0; i < unit_.constants.size(); ++i) constant(i);
    for (const PackedName& p : unit_.packed) name(p.name, "packed functions");
    for (const std::string& l : unit_.libraries) name(l, "libraries");
    for (const std::string& t : unit_.types)
      at_most(t.size(), kMaxTypeBytes, "bytes of a data type");
    kernels();
    std::vector<std::string_view> names;
    for (const FunctionUnit& f : unit_.functions) {
      name(f.name, "functions");
      names.push_back(f.name);
    }
    if (auto twice = repeated(names)) {
      fail(Rule::NameUnique, "functions", cat("two functions ", quoted(*twice)), "each name once");
    }
    uint64_t begin = 0;
    for (const FunctionUnit& f : unit_.functions) {
      function(f, begin);
      begin += f.code.size();
    }
  }

 private:
  [[noreturn]] void fail(Rule rule, std::string_view where, std::string_view found,
                         std::string_view expected) {
    throw verification_error(context_.name, rule, where, found, expected);
  }

  // Finds a repeated name. Sorts the names, since the writer of a file could choose names that
  // collide in a hash table.
  std::optional<std::string_view> repeated(const std::vector<std::string_view>& names) {
    std::vector<int64_t> order(names.size());
    std::iota(order.begin(), order.end(), 0);
    const auto at = [&](int64_t i) { return names[static_cast<size_t>(i)]; };
    sort_numbers(order, [&](int64_t a, int64_t b) {
      ticker_.tick();
      return at(a) < at(b);
    });
    for (size_t i = 1; i < order.size(); ++i) {
      if (at(order[i - 1]) == at(order[i])) return at(order[i]);
    }
    return std::nullopt;
  }

  void at_most(size_t n, size_t limit, const char* what) {
    if (n > limit) fail(Rule::TableSize, what, cat(n), cat("at most ", limit));
  }

  void table_sizes() {
    at_most(unit_.functions.size(), kMaxFunctions, "functions");
    at_most(unit_.constants.size(), kMaxConstants, "constants");
    at_most(unit_.packed.size(), kMaxPacked, "packed functions");
    at_most(unit_.libraries.size(), kMaxLibraries, "libraries");
    at_most(unit_.types.size(), kMaxTypes, "data types");
    at_most(unit_.kernels.size(), kMaxKernelTargets, "targets of kernels");
    at_most(unit_.computes.size(), kMaxComputesBytes, "bytes of computes");
    at_most(unit_.graph.size(), kMaxComputesBytes, "bytes of a graph");
    at_most(unit_.spans.size(), kMaxSpans, "spans");
  }

  void name(const std::string& text, std::string_view where) {
    ticker_.tick();
    if (auto fault = name_fault(text)) fail(Rule::NameText, where, *fault, name_rule());
  }

  void constant(size_t i) {
    const AnyView& v = unit_.constants[i].value;
    std::string where = cat("constant ", i);
    if (unit_.constants[i].late) return late_constant(unit_.constants[i], where);
    if (v.type_index == TypeIndex::Tensor) {
      Tensor t = v.as<Tensor>();
      if (!is_tensor_dtype(t.dtype()) && t.dtype() != string_elements) {
        fail(Rule::DtypeKnown, where, to_text(t.dtype()), "an element type that tensors can have");
      }
      if (!t.compact() || t.device().device_type != kDLCPU) {
        fail(Rule::ConstantForm, where, to_text(t), "a compact tensor on the CPU");
      }
    } else if (v.type_index == TypeIndex::Shape) {
      Shape s = v.as<Shape>();
      if (s.size() > kMaxRank || !element_count(s.dims())) {
        fail(Rule::ConstantForm, where, to_text(s), "dimensions that are not negative");
      }
    } else if (v.type_index == TypeIndex::DataType) {
      if (!is_tensor_dtype(v.as<DataType>())) {
        fail(Rule::DtypeKnown, where, to_text(v.as<DataType>()),
             "an element type that tensors can have");
      }
    } else if (v.is_object() && !String::accepts(v)) {
      fail(Rule::ConstantForm, where, type_name(v.type_index),
           "a tensor, shape, string, number, dtype or device");
    }
  }

  void late_constant(const Constant& c, const std::string& where) {
    name(c.name, where);
    const LateTensor& late = *c.late;
    if (!is_tensor_dtype(late.dtype)) {
      fail(Rule::DtypeKnown, where, to_text(late.dtype), "an element type that tensors can have");
    }
    auto bytes = late.shape.size() <= kMaxRank ? byte_count(late.shape, late.dtype) : std::nullopt;
    if (!bytes || static_cast<uint64_t>(*bytes) > kMaxStorageBytes) {
      fail(Rule::ConstantForm, where, tensor_type_text(late.dtype, late.shape),
           cat("at most ", kMaxRank, " dimensions whose product is a size"));
    }
    if (late.alignment == 0 || (late.alignment & (late.alignment - 1)) != 0 ||
        late.alignment > kMaxStorageAlignment) {
      fail(Rule::ConstantForm, where, cat("an alignment of ", late.alignment),
           cat("a power of two up to ", kMaxStorageAlignment));
    }
  }

  void kernels() {
    bool needs_kernels = false;
    for (const PackedName& p : unit_.packed) needs_kernels = needs_kernels || p.kernel;
    if (needs_kernels && unit_.kernels.empty() && unit_.computes.empty()) {
      fail(Rule::KernelNames, "packed functions", "kernels, but no code for any target",
           "kernel objects or computes");
    }
    for (size_t i = 0; i < unit_.kernels.size(); ++i) {
      const KernelTarget& target = unit_.kernels[i];
      at_most(target.images.size(), kMaxKernelImages, "images of a target");
      for (size_t k = 0; k < target.images.size(); ++k) {
        if (target.images[k].kind != ImageKind::Elf) continue;
        if (auto why = why_not_closed(target.images[k].bytes)) {
          fail(Rule::KernelClosed, cat("kernel object ", i, k ? cat(", image ", k) : ""), *why,
               kClosedObject);
        }
      }
    }
  }

  void function(const FunctionUnit& f, uint64_t code_begin) {
    std::string where = cat("function '", printable(f.name.substr(0, 200)), "'");
    if (f.params.size() > kMaxParams || f.register_count > kMaxRegisters ||
        f.params.size() > f.register_count) {
      fail(Rule::FrameSize, where,
           cat(f.register_count, " registers for ", f.params.size(), " parameters"),
           cat("room for the parameters, at most ", kMaxRegisters));
    }
    std::vector<std::string_view> names;
    for (const Param& p : f.params) {
      name(p.name, where);
      names.push_back(p.name);
    }
    if (auto twice = repeated(names)) {
      fail(Rule::NameUnique, where, cat("two parameters ", quoted(*twice)), "each name once");
    }
    const size_t results = f.result.results().size();
    if (!f.result_names.empty() && f.result_names.size() != results) {
      fail(Rule::ResultNames, where, cat(f.result_names.size(), " names for ", results, " results"),
           "a name for each or none");
    }
    for (const std::string& n : f.result_names) name(n, where);
    code(f, code_begin);
  }

  void code(const FunctionUnit& f, uint64_t code_begin) {
    if (f.code.empty() || f.code.size() > kMaxCodeWords) {
      fail(Rule::CodeSize, cat("code, function '", printable(f.name.substr(0, 200)), "'"),
           cat(f.code.size(), " words"), cat("1 to ", kMaxCodeWords));
    }
    Bounds bounds{f.register_count, static_cast<uint32_t>(unit_.constants.size()),
                  static_cast<uint32_t>(unit_.functions.size()),
                  static_cast<uint32_t>(unit_.packed.size()), static_cast<uint32_t>(f.code.size())};
    starts_.assign(f.code.size(), false);
    borrows_.assign(f.register_count, false);
    for (size_t i = 0; i < f.params.size(); ++i) borrows_[i] = f.params[i].borrowed;
    uint32_t index = 0, at = 0;
    auto broken = [&](Rule rule, std::string_view found, std::string_view expected) {
      uint64_t byte = (code_begin + at) * sizeof(Word);
      std::string where =
          cat("code, function '", printable(f.name.substr(0, 200)), "', instruction ", index);
      if (context_.code_offset) where += cat(", byte ", hex(context_.code_offset + byte));
      fail(rule, where, found, expected);
    };
    bool ends = false;
    while (at < f.code.size()) {
      ticker_.tick();
      starts_[at] = true;
      Instruction in;
      Rule rule{};
      if (!decode(f.code, at, &in, &rule)) {
        broken(rule, cat("word ", hex(f.code[at])), "an instruction");
      }
      if (in.info->since > version_) {
        broken(Rule::OpcodeSince, cat(in.info->mnemonic, " of format ", in.info->since),
               cat("instructions of format ", version_));
      }
      auto violation = check_operand_kinds(in);
      if (!violation) violation = check_operand_ranges(in, bounds);
      if (violation) {
        if (violation->rule == Rule::RegisterRange) {
          violation->expected = cat("a register below ", f.register_count, ", the frame size");
        }
        broken(violation->rule,
               cat(in.info->mnemonic, ", operand ", violation->operand, ": ", violation->found),
               violation->expected);
      }
      instruction(in, broken);
      if (calls_left_ != 0 || in.opcode() == Opcode::Concurrent) {
        const std::string_view found = concurrent(in);
        if (!found.empty()) broken(Rule::ConcurrentCalls, found, "another call of the group");
      }
      if (writes_borrowed(in) && in.arg(0).is_register()) borrows_[in.arg(0).index()] = true;
      ends = in.info->ends();
      at += in.words();
      ++index;
    }
    if (!ends) {
      --index;
      std::vector<std::string> endings;
      for (const OpcodeInfo& info : all_opcodes()) {
        if (info.ends()) endings.emplace_back(info.mnemonic);
      }
      broken(Rule::FallsOffEnd, "code that continues past its end",
             cat("one of ", join(endings, ", "), " as the last instruction"));
    }
    // Check jumps and borrowing, now that all instructions are known.
    clear_released();
    for (at = 0, index = 0; at < f.code.size(); ++index) {
      Instruction in;
      decode(f.code, at, &in);
      if (in.info->jumps()) {
        for (Word w : in.operands) {
          Arg a(w);
          if (a.is(ArgKind::Label) && !starts_[a.index()]) {
            broken(Rule::LabelTarget, cat("a jump to word ", a.index(), ", within an instruction"),
                   "the first word of an instruction");
          }
        }
      }
      at += in.words();
      if (!borrows_rightly(in)) broken(Rule::Borrowed, in.info->mnemonic, kBorrowing);
    }
    spans(f);
  }

  // Checks operands against the unit's tables.
  template <class Broken>
  void instruction(const Instruction& in, const Broken& broken) {
    uint32_t word = 0;
    for (const OperandSpec& spec : in.info->specs()) {
      if (spec.list) return;
      const Arg a = in.arg(word);
      word += words_of(spec.kind);
      if (spec.kind == OperandKind::Text) {
        const AnyView& value = unit_.constants[a.index()].value;
        if (String::accepts(value)) continue;
        broken(Rule::ConstantType, cat(to_text(a), ", a ", type_name(value.type_index)),
               "a string constant for the message");
      }
      if (spec.kind == OperandKind::Func) {
        const bool exact = in.info->calls();
        const size_t given = in.list().size();
        const size_t wanted = unit_.functions[a.index()].params.size();
        if (exact ? given == wanted : given <= wanted) continue;
        broken(Rule::Arity, cat(given, exact ? " arguments" : " captures"),
               cat(exact ? "" : "at most ", wanted, ", the parameters of '",
                   printable(unit_.functions[a.index()].name.substr(0, 200)), "'"));
      }
    }
  }

  // Whether an instruction follows the rule `borrowed`.
  [[gnu::noinline]] bool borrows_rightly(const Instruction& in) {
    for (const Word w : in.operands) {
      if (Arg(w).is(ArgKind::LastUse)) released_[Arg(w).index()] = true;
    }
    const auto* callee =
        in.info->calls() && in.info->specs()[in.info->fixed_words - 1].kind == OperandKind::Func
            ? &unit_.functions[in.arg(in.info->fixed_words - 1).index()].params
            : nullptr;
    bool right = true;
    for (uint32_t i = 0; i < in.operands.size(); ++i) {
      const Arg a = in.arg(i);
      const bool is_borrowed = a.is(ArgKind::Borrowed);
      if (callee && i >= in.info->fixed_words) {
        right = right && is_borrowed == (*callee)[i - in.info->fixed_words].borrowed;
      }
      if (!a.is_register()) continue;
      const bool borrows = borrows_[a.index()];
      const bool lends = is_borrowed && in.opcode() == Opcode::Call && !released_[a.index()];
      const bool wanted = role_of(in, i) == OperandRole::Writes ? writes_borrowed(in) : is_borrowed;
      right = right && (borrows == wanted || lends);
    }
    for (const Word w : in.operands) {
      if (Arg(w).is(ArgKind::LastUse)) released_[Arg(w).index()] = false;
    }
    return right;
  }

  void clear_released() { released_.assign(borrows_.size(), false); }

  // Follows a group through the instructions; returns what breaks its rule, if anything.
  [[gnu::cold, gnu::noinline]] std::string_view concurrent(const Instruction& in) {
    if (calls_left_ == 0) {
      calls_left_ = in.arg(0).value();
      clear_released();
      return {};
    }
    --calls_left_;
    if (in.opcode() != Opcode::CallPacked || !in.arg(0).is_none()) return in.info->mnemonic;
    for (const Word word : in.list()) {
      const Arg arg(word);
      if (arg.is_register() && released_[arg.index()]) return "a register after its last use";
    }
    for (const Word word : in.list()) {
      if (Arg(word).is(ArgKind::LastUse)) released_[Arg(word).index()] = true;
    }
    return {};
  }

  void spans(const FunctionUnit& f) {
    int64_t before = -1;
    for (const CodeSpan& s : f.spans) {
      if (static_cast<int64_t>(s.offset) <= before || s.offset >= f.code.size() ||
          !starts_[s.offset] || s.span >= unit_.spans.size()) {
        fail(Rule::SpanOrder, cat("debug, function '", printable(f.name.substr(0, 200)), "'"),
             cat("span ", s.span, " at word ", s.offset),
             cat("ascending instructions, and spans below ", unit_.spans.size()));
      }
      before = s.offset;
    }
  }

  const Unit& unit_;
  const VerifyContext& context_;
  uint32_t version_;
  Ticker ticker_;
  Flags starts_;
  int64_t calls_left_ = 0;  // of the group that the code is in
  Flags released_;          // registers, by last uses in that group
  Flags borrows_;           // of the function's registers
};

}  // namespace

void verify(const Unit& unit, const VerifyContext& context) {
  Verifier(unit, context).run();
}

Error verification_error(std::string_view name, Rule rule, std::string_view where,
                         std::string_view found, std::string_view expected) {
  return Error(ErrorKind::Damaged, cat(name, " failed verification; nothing was run"))
      .where(where)
      .found(found)
      .expected(expected)
      .rule(cat(rule_name(rule), ", docs/isa.md"))
      .help(kDamagedHelp);
}

}  // namespace tenon::vm
