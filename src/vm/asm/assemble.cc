#include "vm/asm/assemble.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>

#include "support/poll.h"
#include "support/text.h"
#include "vm/asm/constant_text.h"
#include "vm/asm/line_cursor.h"
#include "vm/isa/limits.h"
#include "vm/isa/operand_check.h"

namespace tenon::vm {
namespace {

// Ordered, since a file's author could choose names that collide in a hash table.
using NameTable = std::map<std::string, uint32_t, std::less<>>;

// The function that is being read.
struct OpenFunction {
  FunctionUnit unit;
  bool registers_given = false;
  uint32_t highest_register = 0;  // the highest register's number plus one
  NameTable labels;
  struct Use {
    uint32_t word;
    std::string label;
    LineCursor where;
  };
  std::vector<Use> uses;
};

class Assembler {
 public:
  Assembler(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Unit run() {
    for_each_line([&](LineCursor in) { collect_names(in); });
    for_each_line([&](LineCursor in) { statement(in); });
    if (open_) last_.fail("the function isn't closed", "a line with '}'");
    return std::move(unit_);
  }

  // Outside of functions, a line is a statement, which its first word selects.
  struct Statement {
    std::string_view word;
    void (Assembler::*read)(LineCursor&);
  };
  static std::span<const Statement> statements() {
    static constexpr Statement kStatements[] = {{"producer", &Assembler::producer},
                                                {"provenance", &Assembler::provenance},
                                                {"library", &Assembler::library},
                                                {"type", &Assembler::type},
                                                {"span", &Assembler::span},
                                                {"const", &Assembler::constant},
                                                {"packed", &Assembler::packed},
                                                {"kernel", &Assembler::kernel},
                                                {"target", &Assembler::target},
                                                {"image", &Assembler::image},
                                                {"computes", &Assembler::computes},
                                                {"graph", &Assembler::graph},
                                                {"local", &Assembler::local_function},
                                                {"func", &Assembler::exported_function}};
    return kStatements;
  }

  static std::optional<Effect> take_effect(LineCursor& in) {
    for (const std::string_view name : kEffectNames) {
      if (in.take_word(name)) return effect_named(name);
    }
    return std::nullopt;
  }

 private:
  // Polls between parts, since a line may have any length.
  static size_t end_of_line(std::string_view text) {
    for (size_t start = 0; start < text.size(); start += kPollBytes) {
      if (start > 0) poll();
      const size_t at = text.substr(start, kPollBytes).find('\n');
      if (at != std::string_view::npos) return start + at;
    }
    return std::string_view::npos;
  }

  template <class F>
  void for_each_line(F&& f) {
    std::string_view rest = text_;
    Ticker ticker;
    for (int32_t number = 1; !rest.empty(); ++number) {
      ticker.tick();
      const size_t end = end_of_line(rest);
      LineCursor in(name_, rest.substr(0, end), number);
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
      if (!in.at_end()) f(in);
    }
  }

  // Names may be used before they are declared.
  void collect_names(LineCursor& in) {
    size_t begin = in.position();
    bool is_local = in.take_word("local");
    if (in.take_word("func")) {
      in.need('@');
      functions_.emplace(in.name_or_string(), function_count_++);
    } else if (!is_local && (in.take_word("packed") || in.take_word("kernel"))) {
      take_effect(in);
      in.need('$');
      packed_.emplace(in.name_or_string(), packed_count_++);
    }
    in.set_position(begin);
  }

  void statement(LineCursor& in) {
    last_ = in;
    if (open_) return body_line(in);
    for (const auto& [word, read] : statements()) {
      if (!in.take_word(word)) continue;
      (this->*read)(in);
      if (!open_) in.need_end();
      return;
    }
    std::vector<std::string> words;
    for (const Statement& s : statements()) words.emplace_back(s.word);
    in.fail("this line is not assembly", join(words, ", "));
  }

  void producer(LineCursor& in) { unit_.producer = in.string(); }
  void provenance(LineCursor& in) { unit_.provenance = in.string(); }
  void library(LineCursor& in) { unit_.libraries.push_back(in.string()); }
  // type tree[T] { Leaf, Node(tree[T], T, tree[T]) }
  void type(LineCursor& in) {
    in.skip();
    const size_t at = in.position();
    try {
      unit_.types.push_back(to_text(parse_adt_signature(in.balanced_until(";"))));
    } catch (const Error& e) {
      in.fail(e.message(), "NAME[T] { CONSTRUCTOR, CONSTRUCTOR(TYPE, TYPE) }", at);
    }
  }
  void computes(LineCursor& in) { unit_.computes = in.string(); }
  void graph(LineCursor& in) { unit_.graph = in.string(); }
  void packed(LineCursor& in) { packed_name(in, false); }
  void kernel(LineCursor& in) { packed_name(in, true); }
  void exported_function(LineCursor& in) { function(in, true); }

  void local_function(LineCursor& in) {
    if (!in.take_word("func")) in.fail("this line is not assembly", "'func'");
    function(in, false);
  }

  void constant(LineCursor& in) {
    Constant c;
    if (in.peek() == '"') c.name = in.string();
    in.need('=');
    if (in.take_word("late")) {
      c.late = parse_late_tensor(in);
    } else {
      c.value = parse_constant(in);
    }
    unit_.constants.push_back(std::move(c));
  }

  void packed_name(LineCursor& in, bool is_kernel) {
    const Effect effect = take_effect(in).value_or(is_kernel ? Effect::Pure : Effect::Ordered);
    in.need('$');
    unit_.packed.push_back({in.name_or_string(), is_kernel, effect});
  }

  void span(LineCursor& in) {
    Span s;
    s.file = in.string();
    s.line = static_cast<int32_t>(in.integer());
    s.column = static_cast<int32_t>(in.integer());
    while (in.peek() == '"') s.nodes.push_back(in.string());
    unit_.spans.push_back(std::move(s));
  }

  void target(LineCursor& in) {
    KernelTarget k;
    k.triple = in.string();
    k.cpu = in.string();
    in.need('{');
    if (!in.take('}')) {
      do k.cpu_features.push_back(in.string());
      while (in.take(','));
      in.need('}');
    }
    unit_.kernels.push_back(std::move(k));
  }

  // Belongs to the target above it.
  void image(LineCursor& in) {
    if (unit_.kernels.empty()) in.fail("an image belongs to a target", "a line 'target' above");
    KernelImage image;
    in.skip();
    size_t at = in.position();
    const std::string kind = in.name_or_string();
    const std::span<const ImageKind> kinds = all_image_kinds();
    const auto known =
        std::ranges::find_if(kinds, [&](ImageKind known) { return to_text(known) == kind; });
    if (known == kinds.end()) {
      std::vector<std::string> names;
      for (ImageKind known : kinds) names.emplace_back(to_text(known));
      in.fail(cat("unknown kind of image '", kind, "'"), join(names, ", "), at);
    }
    image.kind = *known;
    if (in.peek() == '"') image.architecture = in.string();
    if (!in.take_word("hex")) in.fail("the image's bytes are missing", "hex \"...\"");
    image.bytes = in.hex_string();
    unit_.kernels.back().images.push_back(std::move(image));
  }

  SignatureType type(LineCursor& in, std::string_view ends) {
    size_t at = in.position();
    std::string_view text = in.balanced_until(ends);
    try {
      return parse_signature_type(text);
    } catch (const Error& e) {
      in.fail(e.message(), "a type such as tensor[n, 3; f32], i64 or any", at);
    }
  }

  void function(LineCursor& in, bool exported) {
    OpenFunction f;
    in.need('@');
    f.unit.name = in.name_or_string();
    f.unit.exported = exported;
    in.need('(');
    if (!in.take(')')) {
      do {
        Param p;
        p.name = in.name_or_string();
        in.need(':');
        p.borrowed = in.take('&');
        p.type = type(in, ",)");
        f.unit.params.push_back(std::move(p));
      } while (in.take(','));
      in.need(')');
    }
    if (in.take('-')) {
      in.need('>');
      f.unit.result = type(in, "{");
    }
    in.need('{');
    in.need_end();
    f.highest_register = static_cast<uint32_t>(f.unit.params.size());
    open_ = std::move(f);
  }

  void close_function() {
    for (OpenFunction::Use& use : open_->uses) {
      auto found = open_->labels.find(use.label);
      if (found == open_->labels.end())
        use.where.fail(cat("no label '", use.label, "' in @", open_->unit.name),
                       "a label in this function");
      if (found->second == open_->unit.code.size()) {
        use.where.fail(
            cat("no instruction follows the label '", use.label, "' in @", open_->unit.name),
            "an instruction before the '}', such as ret");
      }
      open_->unit.code[use.word] = Arg::label(found->second).word;
    }
    if (!open_->registers_given) open_->unit.register_count = open_->highest_register;
    unit_.functions.push_back(std::move(open_->unit));
    open_.reset();
  }

  void body_line(LineCursor& in) {
    FunctionUnit& f = open_->unit;
    if (in.take('}')) {
      in.need_end();
      return close_function();
    }
    size_t begin = in.position();
    if (in.take_word("registers")) {
      uint64_t n = in.unsigned_integer();
      if (n > UINT32_MAX) in.fail("the frame is too large", cat("at most ", kMaxRegisters));
      f.register_count = static_cast<uint32_t>(n);
      open_->registers_given = true;
    } else if (in.take_word("results")) {
      do f.result_names.push_back(in.string());
      while (in.take(','));
    } else if (in.take_word("at")) {
      uint64_t n = in.unsigned_integer();
      if (n > UINT32_MAX) in.fail("not a span", cat("at most ", kMaxSpans), begin);
      f.spans.push_back({static_cast<uint32_t>(f.code.size()), static_cast<uint32_t>(n)});
    } else if (in.take_word(".word")) {
      f.code.push_back(in.unsigned_integer());
    } else if (is_label(in)) {
      std::string label(in.name());
      in.need(':');
      auto offset = static_cast<uint32_t>(f.code.size());
      if (!open_->labels.emplace(label, offset).second) {
        in.fail(cat("label '", label, "' is defined twice"), "each label once", begin);
      }
    } else {
      instruction(in);
    }
    in.need_end();
    if (f.code.size() > kMaxCodeWords) in.fail("the function is too long");
  }

  static bool is_label(LineCursor in) {
    if (!LineCursor::is_name_byte(in.peek())) return false;
    in.name();
    return in.take(':') && in.at_end();
  }

  void instruction(LineCursor& in) {
    FunctionUnit& f = open_->unit;
    size_t begin = in.position();
    std::optional<Arg> result;
    if (in.peek() == '%' || in.peek() == '_') {
      result = in.peek() == '%' ? register_operand(in, false) : (in.need('_'), Arg::none());
      in.need('=');
    }
    size_t at = in.position();
    in.skip();
    at = in.position();
    std::string_view mnemonic = in.name();
    const OpcodeInfo* info = find_opcode(mnemonic);
    if (!info) in.fail(cat("unknown instruction '", mnemonic, "'"), "", at);
    auto start = static_cast<uint32_t>(f.code.size());
    f.code.push_back(0);
    auto specs = info->specs();
    const bool has_result = info->has_result();
    if (has_result != result.has_value()) {
      in.fail(
          has_result ? cat("'", mnemonic, "' has a result") : cat("'", mnemonic, "' has no result"),
          has_result ? cat("%0 = ", mnemonic, " ...") : cat(mnemonic, " ..."), begin);
    }
    if (has_result) {
      f.code.push_back(result->word);
      specs = specs.subspan(1);
    }
    bool first = true;
    for (const OperandSpec& spec : specs) {
      if (spec.list) {
        while (!in.at_end()) {
          if (!first) in.need(',');
          first = false;
          operand(in, spec);
        }
        break;
      }
      if (in.at_end() || (!first && !in.take(',')))
        in.fail(cat("'", mnemonic, "' needs '", spec.name(), "'"), std::string(form_of(spec.kind)));
      first = false;
      operand(in, spec);
    }
    in.need_end();
    auto words = static_cast<uint32_t>(f.code.size()) - start - 1;
    f.code[start] = encode_header(info->opcode, words);
    Instruction made{info, std::span(f.code).subspan(start + 1)};
    if (auto v = check_operand_kinds(made)) {
      in.fail(cat("'", mnemonic, "' doesn't accept ", v->found), v->expected, begin);
    }
  }

  Arg register_operand(LineCursor& in, bool is_read) {
    in.need('%');
    size_t at = in.position();
    uint64_t n = in.unsigned_integer();
    if (n >= kMaxRegisters)
      in.fail("the register's number is too large", cat("below ", kMaxRegisters), at);
    auto index = static_cast<uint32_t>(n);
    open_->highest_register = std::max(open_->highest_register, index + 1);
    if (is_read && in.take('!')) return Arg::last(index);
    return is_read && in.take('&') ? Arg::borrowed(index) : Arg::reg(index);
  }

  Arg immediate(LineCursor& in) {
    size_t at = in.position();
    int64_t v = in.integer();
    if (!fits_immediate(v)) {
      in.fail("the integer doesn't fit an operand", "56 bits; use load_const with a constant", at);
    }
    return Arg::imm(v);
  }

  uint32_t index_or_name(LineCursor& in, const NameTable& names, const char* what) {
    in.skip();
    size_t at = in.position();
    char c = in.peek();
    if (c >= '0' && c <= '9') {
      uint64_t n = in.unsigned_integer();
      if (n > UINT32_MAX) in.fail(cat("no ", what, " has this number"), "", at);
      return static_cast<uint32_t>(n);
    }
    std::string name = in.name_or_string();
    auto found = names.find(name);
    if (found == names.end()) {
      in.fail(cat("no ", what, " named '", name, "'"), cat("one that this file declares"), at);
    }
    return found->second;
  }

  void push(Arg a) { open_->unit.code.push_back(a.word); }

  void label_operand(LineCursor& in) {
    in.skip();
    size_t at = in.position();
    std::string label(in.name());
    if (label == "L" && in.take('+')) {
      uint64_t n = in.unsigned_integer();
      if (n > UINT32_MAX) in.fail("not a word offset", "", at);
      return push(Arg::label(static_cast<uint32_t>(n)));
    }
    LineCursor where = in;
    where.set_position(at);
    open_->uses.push_back({static_cast<uint32_t>(open_->unit.code.size()), label, where});
    push(Arg::label(0));
  }

  void dim_operand(LineCursor& in) {
    auto code = [](DimMatch m) { return Arg::imm(static_cast<int64_t>(m)); };
    if (in.take('*')) {
      push(code(DimMatch::Ignore));
      push(Arg::none());
    } else if (in.take('=')) {
      bool is_register = in.peek() == '%';
      push(code(is_register ? DimMatch::EqualsRegister : DimMatch::EqualsImmediate));
      push(is_register ? register_operand(in, false) : immediate(in));
    } else if (in.take('-')) {
      in.need('>');
      push(code(DimMatch::Store));
      push(register_operand(in, false));
    } else {
      in.fail("not a dimension pattern", "*, =3, =%1 or ->%1");
    }
  }

  void operand(LineCursor& in, const OperandSpec& spec) {
    switch (spec.kind) {
      case OperandKind::Dim:
        return dim_operand(in);
      case OperandKind::Case:
        push(immediate(in));
        in.need(':');
        return label_operand(in);
      case OperandKind::Label:
        return label_operand(in);
      case OperandKind::Dtype:
        in.skip();
        return push(Arg::dtype(parse_dtype_operand(in)));
      case OperandKind::Device:
        in.skip();
        return push(Arg::device(parse_device_operand(in)));
      default:
        break;
    }
    char c = in.peek();
    if (c == '%') return push(register_operand(in, true));
    if (c == '_' && in.take_word("_")) return push(Arg::none());
    if (in.take('#')) {
      uint64_t n = in.unsigned_integer();
      if (n > UINT32_MAX) in.fail("no constant has this number");
      return push(Arg::constant(static_cast<uint32_t>(n)));
    }
    if (in.take('@')) return push(Arg::func(index_or_name(in, functions_, "function")));
    if (in.take('$')) return push(Arg::packed(index_or_name(in, packed_, "packed function")));
    if (c == '-' || (c >= '0' && c <= '9')) return push(immediate(in));
    in.fail(cat("not an operand for '", spec.name(), "'"), std::string(form_of(spec.kind)));
  }

  std::string_view text_, name_;
  Unit unit_;
  NameTable functions_, packed_;
  uint32_t function_count_ = 0, packed_count_ = 0;
  std::optional<OpenFunction> open_;
  LineCursor last_{"", "", 0};
};

}  // namespace

Unit assemble(std::string_view text, std::string_view name) {
  return Assembler(text, name).run();
}

bool begins_like_assembly(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    LineCursor in("", text.substr(0, end), 1);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    // A program in Tenon's language may also start with types: what follows them decides.
    if (in.at_end() || in.take_word("type")) continue;
    for (const auto& [word, read] : Assembler::statements()) {
      // It may start with a kernel, too, whose name has another sigil.
      if (!in.take_word(word)) continue;
      if (word != "kernel") return true;
      Assembler::take_effect(in);
      return in.take('$');
    }
    return false;
  }
  return false;
}

}  // namespace tenon::vm
