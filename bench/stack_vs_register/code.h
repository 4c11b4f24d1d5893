// Code of the two machines that are compared: bytes, as compact as WebAssembly's. operations.def
// lists the instructions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::bench {

enum class RegisterOp : uint8_t {
#define BENCH_REGISTER_OP(identifier, ...) identifier,
#include "operations.def"
};
enum class StackOp : uint8_t {
#define BENCH_STACK_OP(identifier, ...) identifier,
#include "operations.def"
};

// The low bits of a value operand.
enum ValueKind : uint8_t { kRegister = 0, kLastUse = 1, kConstant = 2, kImmediate = 3 };

struct CodeFunction {
  std::string name;
  uint32_t entry = 0, end = 0;  // in the bytes
  uint32_t params = 0;
  uint32_t slots = 0;            // registers or locals; parameters first
  uint32_t operands = 0;         // the greatest depth of the operand stack
  std::vector<uint32_t> starts;  // of the code of each instruction of the bytecode
};

// The functions are at the same indices as in the unit, whose constants the code refers to. Byte 0
// is an Exit, to which the outermost function returns.
struct Code {
  const vm::Unit* unit = nullptr;
  std::vector<CodeFunction> functions;
  std::vector<uint8_t> bytes = {0};
};

// What an operand of the stack machine's instructions does with references.
enum class Operands {
  Owned,     // each operand has a reference, which the instruction consumes
  Borrowed,  // reading a local counts nothing where the instruction keeps nothing
};

// Each throws for an instruction that it has no counterpart for.
Code lower_to_registers(const vm::Unit& unit);
Code lower_to_stack(const vm::Unit& unit, Operands operands);

// The functions as text, one instruction per line.
std::string register_text(const Code& code, uint32_t function);
std::string stack_text(const Code& code, uint32_t function);

// LEB128, signed and unsigned. Most numbers take one byte. The loops depend on the compiler keeping
// their state in registers, so all that they use is inlined.
#define BENCH_INLINE [[gnu::always_inline]] inline

struct LongNumber {
  uint64_t value;
  const uint8_t* end;
};
[[gnu::noinline]] LongNumber read_long(const uint8_t* at);
BENCH_INLINE uint64_t read_unsigned(const uint8_t*& at) {
  if (*at < 0x80) [[likely]]
    return *at++;
  const LongNumber number = read_long(at);
  at = number.end;
  return number.value;
}
BENCH_INLINE int64_t to_signed(uint64_t v) {
  return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
}
inline uint64_t from_signed(int64_t v) {
  return static_cast<uint64_t>(v) << 1 ^ static_cast<uint64_t>(v >> 63);
}
BENCH_INLINE int64_t read_signed(const uint8_t*& at) {
  return to_signed(read_unsigned(at));
}
BENCH_INLINE int16_t read_jump(const uint8_t*& at) {
  const auto distance = static_cast<int16_t>(at[0] | at[1] << 8);
  at += 2;
  return distance;
}

}  // namespace tenon::bench
