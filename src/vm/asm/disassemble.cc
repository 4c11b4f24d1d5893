#include "vm/asm/disassemble.h"

#include <map>
#include <vector>

#include "support/poll.h"
#include "support/text.h"
#include "vm/asm/constant_text.h"
#include "vm/asm/line_cursor.h"
#include "vm/isa/limits.h"
#include "vm/isa/operand_check.h"

namespace tenon::vm {
namespace {

// A name after @ or $: unquoted if it can't be mistaken for a number.
std::string name_text(std::string_view name) {
  bool bare = !name.empty() && !(name[0] >= '0' && name[0] <= '9');
  for (char c : name) bare = bare && LineCursor::is_name_byte(c);
  return bare ? std::string(name) : quoted(name);
}

// Whether the assembler accepts the instruction's text; it refuses registers beyond any frame.
bool reads_back(const Instruction& in) {
  if (check_operand_kinds(in)) return false;
  for (Word w : in.operands) {
    if (Arg(w).is_register() && Arg(w).index() >= kMaxRegisters) return false;
  }
  return true;
}

// A bit per word of code.
using Offsets = std::vector<bool>;

bool contains(const Offsets& offsets, uint64_t at) {
  return at < offsets.size() && offsets[at];
}

// The word offsets of instructions that print as such; everything else prints as words.
Offsets instruction_starts(std::span<const Word> code) {
  Offsets starts(code.size());
  Ticker ticker;
  for (uint32_t at = 0; at < code.size();) {
    ticker.tick();
    Instruction in;
    if (decode(code, at, &in) && reads_back(in)) {
      starts[at] = true;
      at += in.words();
    } else {
      ++at;
    }
  }
  return starts;
}

class Printer {
 public:
  Printer(const Unit& unit, const DisassembleOptions& options) : unit_(unit), options_(options) {
    for (uint32_t i = 0; i < unit.functions.size(); ++i) {
      functions_.emplace(unit.functions[i].name, i);
    }
    for (uint32_t i = 0; i < unit.packed.size(); ++i) packed_.emplace(unit.packed[i].name, i);
  }

  std::string all() {
    std::string out;
    if (!unit_.producer.empty()) out += cat("producer ", quoted(unit_.producer), "\n");
    if (!unit_.provenance.empty()) out += cat("provenance ", quoted(unit_.provenance), "\n");
    for (const auto& l : unit_.libraries) out += cat("library ", quoted(l), "\n");
    for (const std::string& t : unit_.types) out += cat("type ", printable(t), "\n");
    if (options_.spans) {
      for (const Span& s : unit_.spans) {
        out += cat("span ", quoted(s.file), " ", s.line, " ", s.column);
        for (const auto& n : s.nodes) out += cat(" ", quoted(n));
        out += "\n";
      }
    }
    for (size_t i = 0; i < unit_.constants.size(); ++i) {
      const Constant& c = unit_.constants[i];
      out += cat("const ", c.name.empty() ? "" : quoted(c.name) + " ", "= ",
                 c.late ? late_tensor_text(*c.late)
                        : constant_text(c.value, options_.max_constant_elements),
                 "  ; #", i, "\n");
    }
    for (const PackedName& p : unit_.packed) {
      const bool usual = p.effect == (p.kernel ? Effect::Pure : Effect::Ordered);
      out += cat(p.kernel ? "kernel " : "packed ", usual ? "" : cat(to_text(p.effect), " "), "$",
                 name_text(p.name), "\n");
    }
    for (const KernelTarget& k : unit_.kernels) out += target(k);
    if (!unit_.computes.empty()) {
      out += options_.kernel_objects ? cat("computes ", quoted(unit_.computes), "\n")
                                     : cat("; computes of ", unit_.computes.size(), " bytes\n");
    }
    if (!unit_.graph.empty()) {
      out += options_.kernel_objects ? cat("graph ", quoted(unit_.graph), "\n")
                                     : cat("; graph of ", unit_.graph.size(), " bytes\n");
    }
    for (const FunctionUnit& f : unit_.functions) out += (out.empty() ? "" : "\n") + function(f);
    return out;
  }

  std::string target(const KernelTarget& k) {
    std::vector<std::string> features;
    for (const auto& f : k.cpu_features) features.push_back(quoted(f));
    std::string out = cat(options_.kernel_objects ? "" : "; ", "target ", quoted(k.triple), " ",
                          quoted(k.cpu), " {", join(features, ", "), "}\n");
    for (const KernelImage& image : k.images) {
      const std::string kind(to_text(image.kind));
      const std::string head =
          cat("image ", name_text(kind),
              image.architecture.empty() ? "" : cat(" ", quoted(image.architecture)));
      out += options_.kernel_objects ? cat(head, " hex \"", hex_bytes(image.bytes), "\"\n")
                                     : cat("; ", head, " of ", image.bytes.size(), " bytes\n");
    }
    return out;
  }

  std::string function(const FunctionUnit& f) {
    std::string out = cat(f.exported ? "" : "local ", "func @", name_text(f.name), "(");
    for (size_t i = 0; i < f.params.size(); ++i) {
      const Param& p = f.params[i];
      out += cat(i ? ", " : "", name_text(p.name), p.borrowed ? ": &" : ": ", p.type);
    }
    out += cat(") -> ", f.result, " {\n  registers ", f.register_count, "\n");
    if (!f.result_names.empty()) {
      std::vector<std::string> names;
      for (const auto& n : f.result_names) names.push_back(quoted(n));
      out += cat("  results ", join(names, ", "), "\n");
    }
    starts_ = instruction_starts(f.code);
    const Offsets targets = label_targets(f);
    auto span = f.spans.begin();
    Ticker ticker;
    for (uint32_t at = 0; at < f.code.size();) {
      ticker.tick();
      for (; options_.spans && span != f.spans.end() && span->offset <= at; ++span) {
        out += cat("  at ", span->span, "\n");
      }
      if (targets[at]) out += cat("L", at, ":\n");
      out += "  ";
      at += print(f, at, out);
      out += "\n";
    }
    return out + "}\n";
  }

  // Appends the instruction at `at`; returns its number of words.
  uint32_t print(const FunctionUnit& f, uint32_t at, std::string& out) {
    if (!starts_[at]) {
      out += at < f.code.size() ? cat(".word ", hex(f.code[at])) : ".word outside";
      return 1;
    }
    Instruction in;
    decode(f.code, at, &in);
    uint32_t i = 0;
    if (in.info->has_result()) out += to_text(in.arg(i++)) + " = ";
    out += in.info->mnemonic;
    const char* separator = " ";
    for (; i < in.operands.size(); separator = ", ") {
      out += separator;
      i += print_operand(in, i, out);
    }
    return in.words();
  }

 private:
  Offsets label_targets(const FunctionUnit& f) const {
    Offsets targets(f.code.size());
    Ticker ticker;
    for (uint32_t at = 0; at < f.code.size(); ++at) {
      if (!starts_[at]) continue;
      ticker.tick();
      Instruction in;
      decode(f.code, at, &in);
      for (Word w : in.operands) {
        if (Arg(w).is(ArgKind::Label) && contains(starts_, Arg(w).index())) {
          targets[Arg(w).index()] = true;
        }
      }
    }
    return targets;
  }

  std::string label_text(Arg a) const {
    return contains(starts_, a.index()) ? cat("L", a.index()) : cat("L+", a.index());
  }

  uint32_t print_operand(const Instruction& in, uint32_t i, std::string& out) {
    Arg a = in.arg(i);
    switch (in.info->spec_at(i).kind) {
      case OperandKind::Dim:
        out += dim_text(a, in.arg(i + 1));
        return 2;
      case OperandKind::Case:
        out += cat(a.value(), ": ", label_text(in.arg(i + 1)));
        return 2;
      case OperandKind::Label:
        out += label_text(a);
        return 1;
      case OperandKind::Dtype:
        out += dtype_operand_text(a.as_dtype());
        return 1;
      case OperandKind::Func:
        out += "@" + table_name(a.index(), functions_, unit_.functions);
        return 1;
      case OperandKind::Packed:
        out += "$" + table_name(a.index(), packed_, unit_.packed);
        return 1;
      default:
        out += to_text(a);
        return 1;
    }
  }

  // By name if the name refers to this entry, otherwise by number.
  template <class T>
  static std::string table_name(uint32_t index, const std::map<std::string_view, uint32_t>& names,
                                const std::vector<T>& table) {
    if (index < table.size()) {
      auto found = names.find(table[index].name);
      if (found != names.end() && found->second == index) return name_text(table[index].name);
    }
    return cat(index);
  }

  const Unit& unit_;
  const DisassembleOptions& options_;
  std::map<std::string_view, uint32_t> functions_, packed_;
  Offsets starts_;
};

}  // namespace

std::string disassemble(const Unit& unit, const DisassembleOptions& options) {
  return Printer(unit, options).all();
}

}  // namespace tenon::vm
