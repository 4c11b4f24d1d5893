#include "machine.h"

#include <array>

#include "object/string.h"
#include "support/error.h"

namespace tenon::bench {
namespace {

const std::array<Compute, vm::kOpcodeNumbers> computes = [] {
  std::array<Compute, vm::kOpcodeNumbers> out{};
#define TENON_OPCODE(...)
#define TENON_BINARY(identifier, ...)                   \
  out.at(static_cast<size_t>(vm::Opcode::identifier)) = \
      vm::binary_operation(vm::Opcode::identifier).compute;
#include "vm/isa/opcodes.def"
  return out;
}();

}  // namespace

const Compute* const kComputes = computes.data();

Machine::Machine(const Code& code_run, std::vector<tenon_packed_call> functions, size_t depth)
    : code(code_run), packed(std::move(functions)), slots(16 * depth), frames(depth) {
  for (const vm::Constant& constant : code.unit->constants) {
    constants.push_back(Value::of(constant.value));
  }
}

LongNumber read_long(const uint8_t* at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    value |= uint64_t{*at & 0x7fu} << shift;
    if (*at++ < 0x80) return {value, at};
  }
}

void fail_type() {
  throw Error(ErrorKind::Runtime, "an operand is of the wrong type");
}
void fail_overflow() {
  throw Error(ErrorKind::Runtime, "an operation overflows");
}
void fail_limit() {
  throw Error(ErrorKind::Runtime, "the call exceeds its fuel or its depth");
}
void fail_packed() {
  throw Error(ErrorKind::Runtime, "a packed function failed");
}
void fail_fatal(const Value& message) {
  throw Error(ErrorKind::Runtime, std::bit_cast<AnyView>(message.any()).as<std::string>());
}

}  // namespace tenon::bench
