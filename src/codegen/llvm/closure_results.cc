#include "codegen/llvm/closure_results.h"

#include <algorithm>
#include <vector>

#include "support/poll.h"
#include "vm/isa/operand_index.h"

namespace tenon::codegen {
namespace {

using vm::Arg;
using vm::Instruction;
using vm::Opcode;
using vm::OperandRole;
using Kind = RegisterKind;

// The kind that each register's next use expects, over all paths: Dead if no use tells, Any if
// uses disagree.
using Uses = std::vector<Kind>;

Kind joined(Kind a, Kind b) {
  if (a == b || b == Kind::Dead) return a;
  return a == Kind::Dead ? b : Kind::Any;
}

// What the operands of an instruction that are integers are in programs of the compiler's: not
// booleans.
bool takes_integers(Opcode opcode) {
  switch (opcode) {
    case Opcode::Add:
    case Opcode::AddChecked:
    case Opcode::Sub:
    case Opcode::SubChecked:
    case Opcode::Mul:
    case Opcode::MulChecked:
    case Opcode::Lt:
    case Opcode::Le:
    case Opcode::Gt:
    case Opcode::Ge:
    case Opcode::MakeShape:
      return true;
    default:
      return false;
  }
}

Kind result_of(const vm::SignatureType& type) {
  return type.kind == vm::SignatureType::Kind::Function ? kind_of(type.parts.back()) : Kind::Any;
}

// What each register returns when it is called, if all that is ever written to it tells the same.
std::vector<Kind> results_by_register(const BytecodeFlow& flow, const vm::Unit& unit) {
  std::vector<Kind> results(flow.function.register_count, Kind::Dead);
  for (size_t i = 0; i < flow.function.params.size(); ++i) {
    results[i] = result_of(flow.function.params[i].type);
  }
  const auto written = [&](const Instruction& in) {
    switch (in.opcode()) {
      case Opcode::Move: {
        const Arg from = in.arg(vm::operand(Opcode::Move, "src"));
        return from.is_register() ? results[from.index()] : Kind::Any;
      }
      case Opcode::AllocClosure:
        return kind_of(
            unit.functions[in.arg(vm::operand(Opcode::AllocClosure, "function")).index()].result);
      case Opcode::Call:
        return result_of(
            unit.functions[in.arg(vm::operand(Opcode::Call, "callee")).index()].result);
      default:
        return Kind::Any;
    }
  };
  for (bool changed = true; changed;) {
    changed = false;
    poll();
    for (const Instruction& in : flow.instructions) {
      for_each_write(in, [&](uint32_t r) {
        const Kind all = joined(results[r], written(in));
        changed |= all != results[r];
        results[r] = all;
      });
    }
  }
  return results;
}

class Search {
 public:
  Search(const BytecodeFlow& flow, const vm::Unit& unit)
      : flow_(flow),
        unit_(unit),
        results_(results_by_register(flow, unit)),
        at_begin_(flow.blocks.size(), none()) {}

  std::map<uint32_t, Kind> run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = flow_.blocks.size(); b-- > 0;) {
        poll();
        Uses uses = before(flow_.blocks[b], nullptr);
        changed |= uses != at_begin_[b];
        at_begin_[b] = std::move(uses);
      }
    }
    std::map<uint32_t, Kind> out;
    for (const FlowBlock& block : flow_.blocks) before(block, &out);
    return out;
  }

 private:
  Uses none() const { return Uses(flow_.function.register_count, Kind::Dead); }

  // The uses where the block begins; stores those of what its calls of closures return in `out`.
  Uses before(const FlowBlock& block, std::map<uint32_t, Kind>* out) const {
    Uses uses = none();
    const auto add = [&](uint32_t next) {
      for (size_t r = 0; r < uses.size(); ++r) uses[r] = joined(uses[r], at_begin_[next][r]);
    };
    for (const uint32_t next : block.next) add(next);
    if (block.resumes) add(*block.resumes);
    for (uint32_t i = block.end; i-- > block.first;) {
      const Instruction& in = flow_.instructions[i];
      Kind written = Kind::Dead;
      for_each_write(in, [&](uint32_t r) {
        written = uses[r];
        uses[r] = Kind::Dead;
      });
      if (out && in.opcode() == Opcode::CallClosure) {
        const Kind stated = result_of_call(in);
        const Kind result = is_number(stated) ? stated : written;
        if (is_number(result)) out->emplace(i, result);
      }
      read(in, written, &uses);
    }
    return uses;
  }

  Kind result_of_call(const Instruction& in) const {
    const Arg callee = in.arg(vm::operand(Opcode::CallClosure, "callee"));
    return callee.is_register() ? results_[callee.index()] : Kind::Any;
  }

  void read(const Instruction& in, Kind written, Uses* uses) const {
    const auto use = [&](Arg arg, Kind kind) {
      if (arg.is_register() && kind != Kind::Dead) (*uses)[arg.index()] = kind;
    };
    switch (in.opcode()) {
      case Opcode::Move:
        use(in.arg(vm::operand(Opcode::Move, "src")), written);
        return;
      case Opcode::Ret:
        use(in.arg(vm::operand(Opcode::Ret, "value")), kind_of(flow_.function.result));
        return;
      case Opcode::If:
        use(in.arg(vm::operand(Opcode::If, "cond")), Kind::Bool);
        return;
      case Opcode::Call:
        pass(in, in.arg(vm::operand(Opcode::Call, "callee")), use);
        return;
      case Opcode::TailCall:
        pass(in, in.arg(vm::operand(Opcode::TailCall, "callee")), use);
        return;
      default:
        break;
    }
    for (uint32_t word = 0; word < in.operands.size(); ++word) {
      if (vm::role_of(in, word) != OperandRole::ReadsNumber) continue;
      if (in.info->has_operand(vm::OperandKind::Float)) {
        use(in.arg(word), Kind::Float);
      } else if (takes_integers(in.opcode())) {
        use(in.arg(word), Kind::Int);
      }
    }
  }

  template <class Use>
  void pass(const Instruction& in, Arg callee, const Use& use) const {
    const auto& params = unit_.functions[callee.index()].params;
    const auto list = in.list();
    for (size_t i = 0; i < list.size() && i < params.size(); ++i) {
      use(Arg(list[i]), kind_of(params[i].type));
    }
  }

  const BytecodeFlow& flow_;
  const vm::Unit& unit_;
  const std::vector<Kind> results_;  // by register
  std::vector<Uses> at_begin_;       // of the blocks
};

}  // namespace

std::map<uint32_t, RegisterKind> closure_results(const BytecodeFlow& flow, const vm::Unit& unit) {
  const bool has_any = std::ranges::any_of(
      flow.instructions, [](const Instruction& in) { return in.opcode() == Opcode::CallClosure; });
  if (!has_any) return {};
  return Search(flow, unit).run();
}

}  // namespace tenon::codegen
