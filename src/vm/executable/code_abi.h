// The contract between compiled bytecode and the machine: plain C layouts, no names to link.
//
// A kernel object may export a second table, `tenon_code_table`: the functions of the file's
// bytecode as machine code. It is code of the same program for the same machine: it works on the
// register stack and the frames that the dispatch loop works on, and wherever it meets what it
// isn't made for (an operand of another type, an error of arithmetic), it leaves: the machine turns
// the frames into those of bytecode and goes on with the instruction there.
//
// A function is compiled to pieces that end in tail calls, so that calls of the program never use
// the native stack. All pieces have one type:
//
//     int32_t piece(void* state, void* base, void* frame, int64_t fuel, t0, p0, t1, p1, t2, p2)
//
//       state   of the machine: CodeLayout
//       base    the function's registers; where a call goes on, those of the function that returned
//       frame   the innermost frame record, the one of the call that made this activation
//       fuel    what is left; the machine's own is only valid while it runs a CodeRuntime function
//       t, p    the words of kCodeArguments arguments, or in t0, p0 of the result
//       returns a CodeExit, when the entry has ended
//
// with a calling convention in which no register is preserved (preserve_none, where there is one).
// A call stores the piece that goes on after it, and its base, in a new frame record.
// kCodePrefixBytes before each such piece stands the index of the call's Op, in 32 bits.
//
// Registers that a piece keeps in processor registers read as None, or as another number, in the
// stack; objects are always in the stack, so that an error can release them.
//
// A change of any layout raises kCodeAbiVersion; where the version is another one, bytecode runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "object/function.h"

namespace tenon::vm {

inline constexpr uint32_t kCodeAbiVersion = 6;
inline constexpr char kCodeTableSymbol[] = "tenon_code_table";

// How compiled code comes back.
enum class CodeExit : int32_t {
  Returned,  // the entry's result is in the machine's value
  Failed,    // an error waits in the machine
  Left,      // bytecode is to go on at the place that `leave` saved
};

struct CodeRuntime;
// The words of a register.
struct CodeValue {
  uint64_t head = 0, payload = 0;
};
// What compiled code reads and writes of a machine and of objects.
struct CodeLayout {
  // The offsets of the machine's members from the state's address, in bytes.
  static constexpr int64_t kRuntime = 0;         // const CodeRuntime*
  static constexpr int64_t kFuel = 16;           // int64_t
  static constexpr int64_t kRegisterLimit = 24;  // beyond it, the stack must grow
  static constexpr int64_t kFrameLimit = 32;     // below it, the frames must grow
  static constexpr int64_t kAttention = 40;      // uint32_t, atomic
  static constexpr int64_t kValue = 48;          // CodeValue
  static constexpr int64_t kEntry = 64;          // the piece that a call of a closure prepared
  static constexpr int64_t kRunning = 72;        // the program that runs
  static constexpr int64_t kAccount = 80;        // whose limits are in force
  // A frame record: the piece to go on with, and its base.
  static constexpr int64_t kFrameResume = 0, kFrameBase = 8, kFrameBytes = 16;
  static constexpr int64_t kRegisterBytes = 16;
  // A strong count from this on stays as it is.
  static constexpr uint32_t kSaturated = uint32_t{1} << 31;
  static constexpr uint64_t kCountsOfNew = (uint64_t{1} << 32) + 1;  // of one strong reference
  static constexpr int64_t kCounts = 0;                              // of an object
  static constexpr int64_t kCellTag = 24, kCellSize = 32, kCellFields = 40;
  static constexpr int64_t kArraySize = 24, kArrayCapacity = 32, kArrayFields = 40;
  // Of a tensor: its rank and, in the upper half of the same 64 bits, its dtype's word; the address
  // of its sizes.
  static constexpr int64_t kTensorRankAndDtype = 40, kTensorShape = 48;
  // Of a function value, and of the closures of programs among them: those whose call is
  // CodeRuntime::closure_call.
  static constexpr int64_t kFunctionCall = 24;
  static constexpr int64_t kClosureProgram = 56, kClosureAccount = 64, kClosureCode = 72,
                           kClosureSize = 80, kClosureCaptures = 88;
  // Of the function that a closure's code is.
  static constexpr int64_t kCodeIndex = 8, kCodeRegisters = 24, kCodeClosureParams = 28;
};
inline constexpr uint64_t kNewFrame = 1;  // beside a number of registers' bytes, which is even
inline constexpr uint32_t kCodeArguments = 3;
inline constexpr uint32_t kCodePrefixBytes = 16;
// The Ops before those of the first function: the entry's.
inline constexpr uint32_t kEntryOps = 2;

// The machine's functions for compiled code. `op` is the index of the instruction's Op. They don't
// throw; Failed means that an error waits in the machine.
using CodeFunction = CodeExit (*)(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                                  uint64_t extra);
struct CodeRuntime {
  // Runs an instruction that neither jumps nor calls bytecode; `extra` is its opcode.
  CodeFunction run;
  // Ends the release of the object at `extra`, whose counts were those in the machine's value's
  // head, if that was the last reference or the count is saturated. Unless it was the only one, the
  // counts are one less already.
  CodeFunction released;
  // Stops the call if it is out of fuel or was asked to.
  CodeFunction attend;
  // Before a call: stops it if it was asked to or there is no fuel, of which it takes a unit, and
  // makes room for registers up to `extra` bytes from the base, and for another frame if kNewFrame
  // is set in it.
  CodeFunction charge_call;
  // Prepares a (tail) call of a closure. Left: its frame is ready and the machine's entry is to be
  // entered. Returned: the call is done and its result in the machine's value.
  CodeFunction call_closure;
  CodeFunction tail_call_closure;
  // Stores the unit's constant `extra` in the machine's value, with a reference to it.
  CodeFunction constant;
  // Releases what the frame at the base holds, and makes its registers None.
  CodeFunction clear;
  // Saves the place at which bytecode is to go on; returns Left.
  CodeFunction leave;
  // The packed call of a closure of a program.
  PackedCall closure_call;
};

// A piece, called with the convention above. Only compiled code can call one.
using CodePiece = void (*)();

struct CodeTable {
  uint32_t abi_version;
  uint32_t count;      // of functions, as in the file
  uint64_t code_hash;  // of the bytecode that this was made from (code_hash)
  // Enters a piece with the arguments in the registers from `base` on.
  int32_t (*enter)(void* state, void* base, void* frame, int64_t fuel, CodePiece piece);
  CodePiece exit;              // the piece that the entry's frame returns to
  const CodePiece* functions;  // `count`; they take all arguments from the stack
};
static_assert(sizeof(CodeTable) == 16 + 3 * sizeof(void*));

}  // namespace tenon::vm
