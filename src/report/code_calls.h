// The code of a function step by step, with what its calls read and write: what timelines,
// pictures, the memory plan and `tenon dump` are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/isa/unit.h"

namespace tenon::report {

// What an instruction calls, or makes a value of.
struct Callee {
  enum class Kind : uint8_t { Function, Closure, Packed, Kernel };

  Kind kind = Kind::Closure;
  std::string_view name = "closure";  // the unit's

  std::string label() const;  // as assembly tells functions of the program from others: "@main"
};

// A call instruction. The tensors that it writes are those that nothing has written yet.
struct CodeCall {
  Callee callee;
  const Span* from = nullptr;     // its source, such as ONNX nodes; null if it is not known
  std::vector<uint32_t> outputs;  // the registers whose tensors it writes
  struct Argument {
    bool is_output = false, is_constant = false;
  };
  std::vector<Argument> arguments;
};

// An instruction.
struct CodeStep {
  uint32_t offset = 0;  // in the code, in words: the site of a call
  size_t number = 0;    // counted from 0
  vm::Instruction instruction;
  std::optional<Callee> callee;     // if the instruction names it
  const CodeCall* call = nullptr;   // null for other instructions
  std::vector<uint32_t> reads;      // the registers that it reads
  std::vector<uint32_t> inputs;     // those of `reads` that are neither sizes nor outputs
  std::vector<uint32_t> constants;  // those that it reads
  std::vector<uint32_t> writes;     // the registers that it writes
};

// The code must be verified.
void for_each_step(const vm::Unit& unit, const vm::FunctionUnit& function,
                   const std::function<void(const CodeStep&)>& f);

}  // namespace tenon::report
