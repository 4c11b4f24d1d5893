// Runs a program's compiled code (vm/executable/code_abi.h) in place of the dispatch loop.
#pragma once

#include "vm/executable/code_abi.h"
#include "vm/interp/machine.h"

namespace tenon::vm {

class CompiledCode {
 public:
  // As Dispatch::run, which takes over where the code leaves. The frames are those of bytecode
  // again when it throws.
  static void run(Machine& machine, const CodeTable& table, const FunctionCode& function);

 private:
  template <auto kBody>  // one of those below
  static CodeExit guarded(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                          uint64_t extra) noexcept;
  static Machine& arrive(void* state, void* base, void* frame, int64_t fuel, uint64_t op);
  static void fail(Machine& m);
  static void to_bytecode(Machine& m, const Machine::Frame* entry);
  static CodePiece piece_of(const Machine& m, const FunctionCode& function);

  // The bodies of CodeRuntime's functions.
  static void run_instruction(Machine& m, const Op& op, AnyView* base, uint64_t opcode);
  static void attend(Machine& m, const Op& op, AnyView* base, uint64_t extra);
  static void charge_call(Machine& m, const Op& op, AnyView* base, uint64_t room);
  static CodeExit call_closure(Machine& m, const Op& op, AnyView* base, uint64_t extra);
  static CodeExit tail_call_closure(Machine& m, const Op& op, AnyView* base, uint64_t extra);
  static CodeExit released(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                           uint64_t object) noexcept;
  static CodeExit constant(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                           uint64_t index) noexcept;
  static CodeExit clear(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                        uint64_t extra) noexcept;
  static CodeExit leave(void* state, void* base, void* frame, int64_t fuel, uint64_t op,
                        uint64_t extra) noexcept;
};

}  // namespace tenon::vm
