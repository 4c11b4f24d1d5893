// The pre-decoded form of code: what the dispatch loop runs. One Op per instruction of the file, at
// the same index, so that jumps and backtraces need no maps; where a fused Op does the work of two
// instructions, the second one stays behind it for those who jump there.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "object/any.h"
#include "object/function.h"
#include "object/tensor.h"
#include "vm/interp/arithmetic.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// The code that runs an Op: one of handlers.def.
enum class Handler : uint16_t {
#define TENON_HANDLER(identifier) identifier,
#include "vm/interp/handlers.def"
  kCount
};

// A value operand: a register (moved out at its last use) or a value that the Program holds.
struct ValueRef {
  const AnyView* constant = nullptr;  // not null: that value, borrowed
  int32_t reg = 0;
  bool last = false;
};

struct FunctionCode;
struct PackedSlot;

// What an Op needs beyond its own fields, by the class of its instruction; owned by the Program.
struct OpData {
  virtual ~OpData() = default;
};

// Plain: the operands that are values, in order; the dtype and the device, if there are any.
struct Operands : OpData {
  std::vector<ValueRef> args;
  DataType dtype;
  DLDevice device = kCpu;
  bool releases = false;  // some argument is at its last use
};

// Call, Function. A call's arguments are the last ones of `args`; before them stands a closure that
// is called.
struct CallOperands : Operands {
  const FunctionCode* callee = nullptr;
  PackedSlot* slot = nullptr;
  // The arguments are registers one after another: the call can pass them where they lie.
  bool contiguous = false;
};

// Kill, Unpack.
struct RegisterOperands : Operands {
  std::vector<int32_t> registers;  // that are written; -1 drops a result
};

// What a dimension must satisfy.
struct DimCheck {
  DimMatch match = DimMatch::Ignore;
  int32_t reg = -1;   // EqualsRegister, Store
  int64_t value = 0;  // EqualsImmediate
};

// Match.
struct MatchOperands : Operands {
  std::vector<DimCheck> dims;
};

// Binary, Comparison: their general form.
struct BinaryOperands : OpData {
  ValueRef a, b;
  const BinaryOperation* operation = nullptr;
};

// Switch. Jumps are distances in Ops.
struct SwitchOperands : OpData {
  struct Case {
    int64_t value;
    int32_t jump;
  };
  ValueRef value;
  int32_t otherwise = 0;
  std::vector<Case> cases;
};

// Of a Step form.
struct Step {
  int32_t by;         // is added to the counter
  int32_t otherwise;  // the jump
};

// Registers, jump distances and the frame's size are in bytes here, so that an address is one
// addition; in the operands above they are numbers of registers and of Ops.
struct Op {
  const void* handler = nullptr;
  int32_t a = 0;  // mostly the destination register, -1 for none
  int32_t b = 0;
  int32_t c = 0;
  int32_t frame = 0;  // the function's frame size
  union {
    int64_t imm = 0;
    const AnyView* constant;
    Step step;
    const Operands* operands;
    const BinaryOperands* binary;
    const SwitchOperands* cases;
  };

  // The operands as what the instruction's class makes them.
  template <class T>
  const T& as() const {
    return static_cast<const T&>(*operands);
  }
};
static_assert(sizeof(Op) == 32);
inline constexpr int32_t kRegisterBytes = sizeof(AnyView);

inline AnyView& at(AnyView* base, int32_t offset) {
  return *reinterpret_cast<AnyView*>(reinterpret_cast<char*>(base) + offset);
}
inline const AnyView& at(const AnyView* base, int32_t offset) {
  return *reinterpret_cast<const AnyView*>(reinterpret_cast<const char*>(base) + offset);
}

struct FunctionCode {
  const Op* entry = nullptr;
  uint32_t index = 0;  // in the unit
  uint32_t first_op = 0, op_count = 0;
  int32_t params = 0;
  int32_t registers = 0;
};

// What a packed call goes to. Immutable, so that a slot changes as a whole.
struct PackedTarget {
  PackedCall call = nullptr;
  void* self = nullptr;
  Ref<Object> owner;  // keeps `self` alive
};

// A slot of the Program's table of packed functions: the only part of a Program that may change.
struct PackedSlot {
  std::atomic<const PackedTarget*> target{nullptr};
  std::string name;
  bool kernel = false;
};

}  // namespace tenon::vm
