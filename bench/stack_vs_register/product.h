// Figures of the product's own code for the same programs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code.h"
#include "vm/interp/decode.h"

namespace tenon::bench {

class Product {
 public:
  explicit Product(const vm::Unit& unit);

  // Of some functions: the bytes of the code in a file, and as the dispatch loop runs it.
  uint64_t file_bytes(std::span<const uint32_t> functions) const;
  uint64_t decoded_bytes(std::span<const uint32_t> functions) const;
  // How many instructions the dispatch loop executes, which fuses some, given how often the
  // register machine executed the instruction at each of its bytes.
  uint64_t executed(const Code& registers, const std::vector<uint64_t>& counts) const;

 private:
  const vm::Unit& unit_;
  std::vector<vm::PackedSlot> slots_;
  vm::DecodedCode decoded_;
};

}  // namespace tenon::bench
