// The pre-decoder: turns verified code into the form that the dispatch loop runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vm/interp/op.h"

namespace tenon::vm {

// Pre-decodes a unit that passed the verifier. The result refers to the unit's constants, and to
// `slots`, one for each of its packed functions: both must stay in place while it lives. Charges
// memory and polls.
DecodedCode predecode(const Unit& unit, std::span<PackedSlot> slots);

// Operands are read before a last use clears its register: if several arguments are one register
// and some of them last uses, only the last argument remains a last use. `last_reader` is scratch
// space, indexed by register. Args is a span of ValueRef. Takes linear time.
template <class Args>
void keep_last_use_of_each(Args&& args, std::vector<uint32_t>& last_reader) {
  const auto count = static_cast<uint32_t>(args.size());
  for (uint32_t i = 0; i < count; ++i) {
    const ValueRef& ref = args[i];
    if (!ref.constant) last_reader[static_cast<size_t>(ref.reg)] = i;
  }
  for (uint32_t i = 0; i < count; ++i) {
    ValueRef& ref = args[i];
    if (!ref.last) continue;
    const uint32_t reader = last_reader[static_cast<size_t>(ref.reg)];
    if (reader == i) continue;
    ref.last = false;
    args[reader].last = true;
  }
}

}  // namespace tenon::vm
