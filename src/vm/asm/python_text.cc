#include "vm/asm/python_text.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "support/poll.h"
#include "support/text.h"
#include "vm/asm/constant_text.h"
#include "vm/asm/disassemble.h"

namespace tenon::vm {
namespace {

constexpr std::string_view kHead =
    "# The machine's code as Python, for reading. r0, r1, ... are registers, c0, c1, ... "
    "constants.\n"
    "# Instructions such as match_tensor are described in docs/isa.md; `kernels` are native code, "
    "and\n"
    "# `packed` functions registered in the process. None of these is defined here.\n";

// Python's words that are also mnemonics or likely names of functions.
constexpr std::string_view kReserved[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && out.empty()) out += '_';
    out += is_letter || is_digit ? c : '_';
  }
  if (out.empty() || std::ranges::find(kReserved, out) != std::end(kReserved)) out += '_';
  return out;
}

class PythonPrinter {
 public:
  explicit PythonPrinter(const Unit& unit) : unit_(unit) {
    std::set<std::string> taken;
    for (size_t i = 0; i < unit.functions.size(); ++i) {
      std::string name = identifier(unit.functions[i].name);
      if (!taken.insert(name).second) taken.insert(name = cat(name, "_", i));
      functions_.push_back(std::move(name));
    }
  }

  std::string all() {
    out_ = kHead;
    for (size_t i = 0; i < unit_.constants.size(); ++i) {
      const Constant& c = unit_.constants[i];
      const std::string text =
          c.late ? late_tensor_text(*c.late) : constant_text(c.value, kShownConstantElements);
      out_ += cat(i ? "" : "\n", "c", i, " = constant(",
                  c.name.empty() ? "" : quoted(c.name) + ", ", quoted(text), ")\n");
    }
    for (size_t i = 0; i < unit_.functions.size(); ++i) {
      out_ += "\n\n";
      function(unit_.functions[i], functions_[i]);
    }
    return std::move(out_);
  }

 private:
  void function(const FunctionUnit& f, const std::string& name) {
    std::vector<std::string> params;
    for (size_t i = 0; i < f.params.size(); ++i) {
      params.push_back(
          cat("r", i, ": ", quoted(cat(f.params[i].name, ": ", to_text(f.params[i].type)))));
    }
    out_ += cat("def ", name, "(", join(params, ", "), ") -> ", quoted(to_text(f.result)), ":\n");
    const std::set<uint32_t> targets = targets_of(f);
    has_blocks_ = !targets.empty();
    indent_ = has_blocks_ ? "                " : "    ";
    if (has_blocks_) {
      out_ += "    at = 0\n    while True:\n        match at:\n            case 0:\n";
    }
    Ticker ticker;
    bool falls_through = false;
    for (uint32_t at = 0; at < f.code.size();) {
      ticker.tick();
      if (at && targets.contains(at)) {
        if (falls_through) jump(at);
        out_ += cat("            case ", at, ":\n");
      }
      Instruction in;
      if (!decode(f.code, at, &in)) {
        line(cat("raise SystemError(\"no instruction at word ", at, "\")"));
        return;
      }
      instruction(in);
      falls_through = !in.info->ends();
      at += in.words();
    }
    if (f.code.empty()) line("pass");
  }

  static std::set<uint32_t> targets_of(const FunctionUnit& f) {
    std::set<uint32_t> targets;
    Ticker ticker;
    Instruction in;
    for (uint32_t at = 0; decode(f.code, at, &in); at += in.words()) {
      ticker.tick();
      for (const Word w : in.operands) {
        if (Arg(w).is(ArgKind::Label)) targets.insert(Arg(w).index());
      }
    }
    return targets;
  }

  void line(const std::string& text) { out_ += cat(indent_, text, "\n"); }
  void jump(uint32_t target, const char* deeper = "") {
    line(cat(deeper, "at = ", target));
    line(cat(deeper, "continue"));
  }

  void instruction(const Instruction& in) {
    switch (in.info->op_class) {
      case OpClass::Return:
        return line("return " + value(in.arg(0)));
      case OpClass::Goto:
        return jump(in.arg(0).index());
      case OpClass::If:
        line(cat("if not ", value(in.arg(0)), ":"));
        return jump(in.arg(1).index(), "    ");
      case OpClass::IfEq:
        line(cat("if ", value(in.arg(0)), " != ", value(in.arg(1)), ":"));
        return jump(in.arg(2).index(), "    ");
      case OpClass::Switch:
        return switch_to(in);
      case OpClass::Move:
      case OpClass::LoadInt:
        return line(cat(value(in.arg(0)), " = ", value(in.arg(1))));
      case OpClass::Kill:
        return kill(in);
      case OpClass::Call:
        return call(in);
      case OpClass::Concurrent:
      case OpClass::Plain:
      case OpClass::Function:
      case OpClass::Unpack:
      case OpClass::Match:
      case OpClass::Binary:
      case OpClass::Comparison:
        return operation(in);
    }
  }

  void switch_to(const Instruction& in) {
    std::vector<std::string> cases;
    const std::span<const Word> list = in.list();
    for (size_t i = 0; i + 1 < list.size(); i += 2) {
      cases.push_back(cat(Arg(list[i]).value(), ": ", Arg(list[i + 1]).index()));
    }
    line(
        cat("at = {", join(cases, ", "), "}.get(", value(in.arg(0)), ", ", in.arg(1).index(), ")"));
    line("continue");
  }

  void kill(const Instruction& in) {
    std::string text;
    for (const Word w : in.operands) text += value(Arg(w)) + " = ";
    if (!text.empty()) line(text + "None");
  }

  void call(const Instruction& in) {
    const uint32_t callee = in.info->has_result() ? 1 : 0;
    std::vector<std::string> args;
    for (const Word w : in.list()) args.push_back(value(Arg(w)));
    const std::string text = cat(value(in.arg(callee)), "(", join(args, ", "), ")");
    if (in.info->ends()) return line("return " + text);
    line(assigned({value(in.arg(0))}, text));
  }

  // Any other instruction, as a call of a function of its name.
  void operation(const Instruction& in) {
    std::vector<std::string> results, args;
    for (uint32_t i = 0; i < in.operands.size(); ++i) {
      const OperandKind kind = in.info->spec_at(i).kind;
      if (kind == OperandKind::Dim) {
        args.push_back(dim(in.arg(i), in.arg(i + 1), &results));
        ++i;
      } else if (role_of(kind) == OperandRole::Writes) {
        results.push_back(value(in.arg(i)));
      } else {
        args.push_back(value(in.arg(i)));
      }
    }
    line(assigned(results, cat(identifier(in.info->mnemonic), "(", join(args, ", "), ")")));
  }

  static std::string assigned(const std::vector<std::string>& results, const std::string& text) {
    if (results.empty() || (results.size() == 1 && results[0] == "None")) return text;
    std::vector<std::string> names;
    for (const std::string& r : results) names.push_back(r == "None" ? "_" : r);
    return cat(join(names, ", "), " = ", text);
  }

  // A dimension to match; one that is stored is a result, and `size` among the arguments.
  static std::string dim(Arg code, Arg arg, std::vector<std::string>* results) {
    switch (static_cast<DimMatch>(code.value())) {
      case DimMatch::Ignore:
        return "...";
      case DimMatch::EqualsImmediate:
        return cat(arg.value());
      case DimMatch::EqualsRegister:
        return cat("r", arg.index());
      case DimMatch::Store:
        results->push_back(cat("r", arg.index()));
        return "size";
    }
    return "...";
  }

  std::string value(Arg a) const {
    switch (a.kind()) {
      case ArgKind::Register:
      case ArgKind::LastUse:
      case ArgKind::Borrowed:
        return cat("r", a.index());
      case ArgKind::Immediate:
        return cat(a.value());
      case ArgKind::Constant:
        return cat("c", a.index());
      case ArgKind::Function:
        return a.index() < functions_.size() ? functions_[a.index()] : "None";
      case ArgKind::Packed: {
        if (a.index() >= unit_.packed.size()) return "None";
        const PackedName& p = unit_.packed[a.index()];
        return cat(p.kernel ? "kernels[" : "packed[", quoted(p.name), "]");
      }
      case ArgKind::Label:
        return cat(a.index());
      case ArgKind::Dtype:
        return quoted(dtype_operand_text(a.as_dtype()));
      case ArgKind::Device:
        return quoted(to_text(a));
      case ArgKind::None:
        return "None";
    }
    return "None";
  }

  const Unit& unit_;
  std::vector<std::string> functions_;
  std::string out_;
  std::string indent_;
  bool has_blocks_ = false;
};

}  // namespace

std::string python_text(const Unit& unit) {
  return PythonPrinter(unit).all();
}

}  // namespace tenon::vm
