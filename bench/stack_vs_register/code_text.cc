#include "code.h"
#include "support/text.h"

namespace tenon::bench {
namespace {

struct Row {
  const char* name;
  const char* operands;
};
constexpr Row kRegisterOps[] = {
#define BENCH_REGISTER_OP(identifier, operands) {#identifier, operands},
#include "operations.def"
};
constexpr Row kStackOps[] = {
#define BENCH_STACK_OP(identifier, operands) {#identifier, operands},
#include "operations.def"
};

std::string value_text(uint64_t word) {
  switch (static_cast<ValueKind>(word & 3)) {
    case kRegister:
      return cat(" %", word >> 2);
    case kLastUse:
      return cat(" %", word >> 2, "!");
    case kConstant:
      return cat(" #", word >> 2);
    case kImmediate:
      break;
  }
  return cat(" ", to_signed(word >> 2));
}

template <size_t count>
std::string text_of(const Code& code, uint32_t function, const Row (&rows)[count]) {
  const uint8_t *begin = code.bytes.data() + code.functions[function].entry, *at = begin;
  const uint8_t* end = code.bytes.data() + code.functions[function].end;
  std::string out;
  while (at < end) {
    out += cat(at - begin, ":");
    const Row& row = rows[*at++];
    out += cat(" ", row.name);
    const CodeFunction* callee = nullptr;
    for (const char* letter = row.operands; *letter; ++letter) {
      if (*letter == 'j') {
        const int16_t distance = read_jump(at);
        out += cat(" to ", at + distance - begin);
        continue;
      }
      if (*letter == 'a' || *letter == 'n') {
        const uint64_t values = *letter == 'n' ? read_unsigned(at) : callee->params;
        for (uint64_t i = 0; i < values; ++i) out += value_text(read_unsigned(at));
        continue;
      }
      const uint64_t word = read_unsigned(at);
      switch (*letter) {
        case 'f':
          callee = &code.functions[word];
          out += cat(" @", callee->name);
          break;
        case 'p':
          out += cat(" $", code.unit->packed[word].name);
          break;
        case 'd':
        case 'r':
          out += cat(" %", word);
          break;
        case 'o':
          out += cat(" %", word >> 1, word & 1 ? "!" : "");
          break;
        case 'v':
          out += value_text(word);
          break;
        case 'c':
          out += cat(" #", word);
          break;
        case 'i':
          out += cat(" ", to_signed(word));
          break;
        default:
          out += cat(" ", word);
      }
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string register_text(const Code& code, uint32_t function) {
  return text_of(code, function, kRegisterOps);
}
std::string stack_text(const Code& code, uint32_t function) {
  return text_of(code, function, kStackOps);
}

}  // namespace tenon::bench
