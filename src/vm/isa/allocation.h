// What an instruction allocates, for tools that describe code.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "vm/isa/instruction.h"

namespace tenon::vm {

// The tensor that an instruction with the flag `fresh` makes.
struct FreshTensor {
  DataType dtype;
  std::optional<std::span<const Word>> dims;  // nullopt: a value holds them all
  // Where it is in the storage of a register; nullopt: in a block of its own.
  struct Place {
    uint32_t storage;
    Arg offset;
  };
  std::optional<Place> place;

  std::optional<int64_t> bytes() const;  // nullopt if they are only known at run time
};
// Nullopt for other instructions.
std::optional<FreshTensor> fresh_tensor(const Instruction& instruction);

// A block of memory: make_tensor takes one, and an instruction with a device as operand.
struct Block {
  std::optional<int64_t> bytes;  // nullopt if they are only known at run time
};
// Nullopt for other instructions.
std::optional<Block> block_of(const Instruction& instruction);

}  // namespace tenon::vm
