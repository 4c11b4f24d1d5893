// The pre-decoded form of code, which the dispatch loop runs: one Op per instruction of the file,
// at the same index, so that jumps and backtraces need no maps. If a fused Op does the work of two
// instructions, the second one stays behind it for jumps that target it.
//
// The loop's speed depends on how early the next addresses are known: an Op holds registers and
// jumps as byte offsets and a callee as a distance, so that each address takes one load and one
// addition.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "object/any.h"
#include "object/function.h"
#include "object/new_tensor.h"
#include "vm/interp/arithmetic.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// The code that runs an Op: one of handlers.def.
enum class Handler : uint16_t {
#define TENON_HANDLER(identifier, instructions) identifier,
#include "vm/interp/handlers.def"
};

// A value operand: a register (moved out at its last use), a constant of the unit, or a value that
// the DecodedCode owns.
struct ValueRef {
  const AnyView* constant = nullptr;  // if not null, this value, borrowed
  int32_t reg = 0;
  bool last = false;
  bool borrowed = false;  // without a reference of its own
};

struct FunctionCode;
struct PackedSlot;

// The operands that don't fit in an Op, by the instruction's class; owned by the DecodedCode.
struct OpData {
  virtual ~OpData() = default;
};

// The tensor that an instruction makes, if its size and its place in the storage are written in the
// code.
struct FixedTensor {
  std::vector<int64_t> room;  // of `form`
  CompactForm form;
  uint64_t offset;
};

// Plain: the value operands in order, and the dtype and device, if any.
struct Operands : OpData {
  std::vector<ValueRef> args;
  std::unique_ptr<const FixedTensor> fixed;
  DataType dtype;
  DLDevice device = kCpu;
  bool releases = false;  // whether some argument is a last use
};

// Call, Function. A call's arguments are the last of `args`, preceded by the closure if one is
// called.
struct CallOperands : Operands {
  const FunctionCode* callee = nullptr;
  PackedSlot* slot = nullptr;
  // Whether the arguments are consecutive registers, so that the call can pass them in place.
  bool contiguous = false;
};

// Kill, Unpack.
struct RegisterOperands : Operands {
  std::vector<int32_t> registers;  // written registers; -1 drops a result
};

// A condition on a dimension.
struct DimCheck {
  DimMatch match = DimMatch::Ignore;
  int32_t reg = -1;   // EqualsRegister, Store
  int64_t value = 0;  // EqualsImmediate
};

// Match.
struct MatchOperands : Operands {
  std::vector<DimCheck> dims;
  bool overwrites = false;  // whether a Store writes the register that holds the matched value
};

// The general form of Binary and Comparison.
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
  uint64_t dense = 0;  // so many cases come first that case i is the value i
};

// The type of the operands that the pre-decoder makes for a class. Other classes have only an Op.
template <OpClass op_class>
struct OperandsOfClass;
#define TENON_OPERANDS_OF(op_class, operands) \
  template <>                                 \
  struct OperandsOfClass<OpClass::op_class> { \
    using Type = operands;                    \
  };
TENON_OPERANDS_OF(Plain, Operands)
TENON_OPERANDS_OF(Function, CallOperands)
TENON_OPERANDS_OF(Call, CallOperands)
TENON_OPERANDS_OF(Kill, RegisterOperands)
TENON_OPERANDS_OF(Unpack, RegisterOperands)
TENON_OPERANDS_OF(Match, MatchOperands)
TENON_OPERANDS_OF(Binary, BinaryOperands)
TENON_OPERANDS_OF(Switch, SwitchOperands)
#undef TENON_OPERANDS_OF
template <OpClass op_class>
using OperandsOf = typename OperandsOfClass<op_class>::Type;

// How two integers compare; a set of orders is a comparison.
enum Order : uint8_t { kLess = 1, kEqual = 2, kGreater = 4 };
constexpr Order order_of(int64_t a, int64_t b) {
  return a < b ? kLess : a == b ? kEqual : kGreater;
}

// Of a Step form.
struct Step {
  int16_t by;         // added to the counter
  uint8_t orders;     // in which the comparison holds
  int32_t otherwise;  // the jump
};

// Registers, jump distances and the frame's size are in bytes here, so that computing an address
// takes one addition; in the operands above they are numbers of registers and Ops.
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

  // The operands of an instruction of that class, or of the opcode's class in the table.
  template <OpClass op_class>
  const OperandsOf<op_class>& as() const {
    return static_cast<const OperandsOf<op_class>&>(*operands);
  }
  template <Opcode opcode>
  const OperandsOf<class_of(opcode)>& as() const {
    return as<class_of(opcode)>();
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
  // The number of parameters; -1 if some borrow: then only the machine enters closures of it.
  int32_t closure_params = 0;
  bool borrows() const { return closure_params < 0; }
  bool has_unmatched = false;  // parameters whose types its code doesn't check (is_unmatched)
};

// The target of packed calls. Immutable, so that a slot changes atomically.
struct PackedTarget {
  PackedCall call = nullptr;
  void* self = nullptr;
  Ref<Object> owner;      // keeps `self` alive
  bool prepares = false;  // FunctionFlags::prepares
};

// A slot in the Program's table of packed functions: the only mutable part of a Program.
struct PackedSlot {
  std::atomic<const PackedTarget*> target{nullptr};
  std::string name;
  bool kernel = false;
};

// A unit's code, pre-decoded (decode.h). Ops and FunctionCodes stay in place when it is moved.
struct DecodedCode {
  std::vector<FunctionCode> functions;  // at the same indices as in the unit
  std::vector<Op> ops;                  // the entry's, then those of all functions
  std::vector<uint32_t> op_offsets;     // word offset of each op's instruction in its function
  std::vector<std::unique_ptr<OpData>> operands;
  std::vector<std::unique_ptr<Any>> values;  // written in the code as immediates, or None

  // The function that contains the op, and the word offset of its instruction; null outside of
  // functions.
  const FunctionCode* locate(const Op* op, uint32_t* offset) const;
};

}  // namespace tenon::vm
