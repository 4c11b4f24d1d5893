#include "product.h"

#include <map>
#include <set>

#include "vm/interp/dispatch.h"

namespace tenon::bench {
namespace {

using vm::Dispatch;
using vm::Handler;

// How many instructions the handlers that do the work of several take from behind them.
std::map<const void*, size_t> fused_handlers() {
  std::map<const void*, size_t> out;
#define TENON_OPCODE(...)
#define TENON_COMPARISON(identifier, ...)                   \
  out[Dispatch::address_of(Handler::identifier##IfRR)] = 1; \
  out[Dispatch::address_of(Handler::identifier##IfRI)] = 1;
#include "vm/isa/opcodes.def"
  out[Dispatch::address_of(Handler::StepRR)] = 2;
  out[Dispatch::address_of(Handler::StepRI)] = 2;
  return out;
}

uint64_t bytes_of(const vm::OpData& data) {
  if (const auto* o = dynamic_cast<const vm::SwitchOperands*>(&data)) {
    return sizeof *o + o->cases.size() * sizeof(vm::SwitchOperands::Case);
  }
  if (dynamic_cast<const vm::BinaryOperands*>(&data)) return sizeof(vm::BinaryOperands);
  const auto& o = dynamic_cast<const vm::Operands&>(data);
  const uint64_t args = o.args.size() * sizeof(vm::ValueRef);
  if (dynamic_cast<const vm::CallOperands*>(&data)) return sizeof(vm::CallOperands) + args;
  if (const auto* r = dynamic_cast<const vm::RegisterOperands*>(&data)) {
    return sizeof *r + args + r->registers.size() * sizeof(int32_t);
  }
  if (const auto* m = dynamic_cast<const vm::MatchOperands*>(&data)) {
    return sizeof *m + args + m->dims.size() * sizeof(vm::DimCheck);
  }
  return sizeof o + args;
}

}  // namespace

Product::Product(const vm::Unit& unit)
    : unit_(unit), slots_(unit.packed.size()), decoded_(vm::predecode(unit, slots_)) {}

uint64_t Product::file_bytes(std::span<const uint32_t> functions) const {
  uint64_t bytes = 0;
  for (const uint32_t f : functions) bytes += unit_.functions[f].code.size() * sizeof(vm::Word);
  return bytes;
}

uint64_t Product::decoded_bytes(std::span<const uint32_t> functions) const {
  std::set<const vm::OpData*> owned;
  for (const auto& data : decoded_.operands) owned.insert(data.get());
  uint64_t bytes = 0;
  for (const uint32_t f : functions) {
    const vm::FunctionCode& function = decoded_.functions[f];
    for (const vm::Op& op : std::span(function.entry, function.op_count)) {
      bytes += sizeof op;
      if (owned.contains(op.operands)) bytes += bytes_of(*op.operands);
    }
  }
  return bytes;
}

uint64_t Product::executed(const Code& registers, const std::vector<uint64_t>& counts) const {
  static const std::map<const void*, size_t> fused = fused_handlers();
  uint64_t executed = 0;
  for (size_t f = 0; f < registers.functions.size(); ++f) {
    const std::vector<uint32_t>& starts = registers.functions[f].starts;
    std::vector<uint64_t> by_others(starts.size() + 2);  // by instructions before it
    for (size_t i = 0; i < starts.size(); ++i) {
      const uint64_t own = counts[starts[i]] - by_others[i];
      executed += own;
      const auto found = fused.find(decoded_.functions[f].entry[i].handler);
      for (size_t j = 1; found != fused.end() && j <= found->second; ++j) by_others[i + j] += own;
    }
  }
  return executed;
}

}  // namespace tenon::bench
