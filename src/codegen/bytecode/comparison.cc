#include "codegen/bytecode/comparison.h"

#include <array>
#include <cstdint>

namespace tenon::codegen {

using vm::Opcode;

namespace {

// The possible relations of two integers, signed and unsigned. A comparison is the set of relations
// for which it holds, as bits.
constexpr std::array<std::pair<int64_t, int64_t>, 5> kOrders = {
    {{0, 0}, {0, 1}, {1, 0}, {-1, 0}, {0, -1}}};

struct Comparison {
  Opcode opcode;
  Opcode exchanged;  // None if there is none
  bool (*holds)(int64_t a, int64_t b);

  constexpr uint32_t orders() const {
    uint32_t set = 0;
    for (const auto& [a, b] : kOrders) set = set << 1 | holds(a, b);
    return set;
  }
};

constexpr Comparison kComparisons[] = {
#define TENON_OPCODE(...)
#define TENON_COMPARISON(identifier, mnemonic, number, exchanged, condition, ...) \
  {Opcode::identifier, Opcode::exchanged, [](int64_t a, int64_t b) { return condition; }},
#include "vm/isa/opcodes.def"
};

const Comparison* find(Opcode opcode) {
  for (const Comparison& comparison : kComparisons) {
    if (comparison.opcode == opcode) return &comparison;
  }
  return nullptr;
}

}  // namespace

std::optional<Opcode> negate(Opcode opcode) {
  const Comparison* comparison = find(opcode);
  if (!comparison) return std::nullopt;
  const uint32_t others = ~comparison->orders() & ((1u << kOrders.size()) - 1);
  for (const Comparison& other : kComparisons) {
    if (other.orders() == others) return other.opcode;
  }
  return std::nullopt;
}

std::optional<Opcode> exchange(Opcode opcode) {
  const Comparison* comparison = find(opcode);
  if (!comparison || comparison->exchanged == Opcode::None) return std::nullopt;
  return comparison->exchanged;
}

}  // namespace tenon::codegen
