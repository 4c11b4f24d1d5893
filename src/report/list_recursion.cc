#include "report/list_recursion.h"

#include <map>
#include <set>
#include <vector>

#include "vm/isa/instruction.h"

namespace tenon::report::memory {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::Instruction;
using vm::Opcode;

constexpr int64_t kTail = 1;              // the field of a list's cell
constexpr size_t kMaxSteps = 10'000'000;  // instructions, and registers where paths meet

// What a register holds: the list that a parameter held at first, or a tail of it.
struct Tail {
  uint32_t param;
  bool is_shorter;
  bool operator==(const Tail&) const = default;
};
using Holds = std::optional<Tail>;
using State = std::vector<Holds>;

// What both paths hold.
Holds common(const Holds& a, const Holds& b) {
  if (!a || !b || a->param != b->param) return std::nullopt;
  return Tail{a->param, a->is_shorter && b->is_shorter};
}

class Search {
 public:
  Search(const vm::Unit& unit, size_t function)
      : function_(function), code_(unit.functions[function]), lists_(code_.params.size()) {
    State state(code_.register_count);
    for (uint32_t i = 0; i < lists_.size(); ++i) {
      const vm::SignatureType& type = code_.params[i].type;
      lists_[i] = type.kind == vm::SignatureType::Kind::Adt && type.name == "list";
      if (lists_[i]) state[i] = Tail{i, false};
    }
    states_.emplace(0, std::move(state));
    pending_.insert(0);
    Instruction in;
    for (uint32_t at = 0; vm::decode(code_.code, at, &in); at += in.words()) {
      for (const vm::Word word : in.operands) {
        if (!Arg(word).is(ArgKind::Label)) continue;
        labels_.insert(Arg(word).index());
        has_loop_ |= Arg(word).index() <= at;
      }
    }
  }

  std::optional<ListRecursion> run() {
    while (!pending_.empty()) {
      const uint32_t at = *pending_.begin();
      pending_.erase(pending_.begin());
      if (steps_ > kMaxSteps) return std::nullopt;
      follow(at, states_.at(at));
    }
    is_settled_ = true;
    for (const auto& [at, state] : states_) follow(at, state);
    if (is_value_) return std::nullopt;
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (lists_[i]) return ListRecursion{i, calls_ == 1 && !has_loop_ && !tail_calls_};
    }
    return std::nullopt;
  }

 private:
  void follow(uint32_t at, State state) {
    Instruction in;
    for (const uint32_t start = at; vm::decode(code_.code, at, &in); at += in.words()) {
      ++steps_;
      if (at != start && labels_.contains(at)) return flow(at, state);
      if (is_settled_) check(in, state);
      step(in, &state);
      for (const vm::Word word : in.operands) {
        if (Arg(word).is(ArgKind::Label)) flow(Arg(word).index(), state);
      }
      if (in.info->ends()) return;
    }
  }

  void flow(uint32_t to, const State& state) {
    if (is_settled_) return;
    steps_ += state.size();
    const auto [known, is_new] = states_.try_emplace(to, state);
    bool changed = is_new;
    for (size_t i = 0; i < state.size(); ++i) {
      const Holds both = common(known->second[i], state[i]);
      changed |= both != known->second[i];
      known->second[i] = both;
    }
    if (changed) pending_.insert(to);
  }

  static Holds held(Arg arg, const State& state) {
    return arg.is_register() ? state[arg.index()] : std::nullopt;
  }

  static void step(const Instruction& in, State* state) {
    Holds moved, tail;
    switch (in.opcode()) {
      case Opcode::Move:
        moved = held(in.arg(1), *state);
        break;
      case Opcode::GetField:
      case Opcode::BorrowField:
        if (in.arg(2).is(ArgKind::Immediate) && in.arg(2).value() == kTail) {
          moved = shorter(held(in.arg(1), *state));
        }
        break;
      case Opcode::TakeFields:
        tail = shorter(held(in.arg(0), *state));
        break;
      default:
        break;
    }
    for (uint32_t word = 0; word < in.operands.size(); ++word) {
      if (vm::role_of(in, word) == vm::OperandRole::Writes) put(in.arg(word), moved, state);
    }
    if (in.opcode() == Opcode::TakeFields && in.list().size() > kTail) {
      put(Arg(in.list()[kTail]), tail, state);
    }
  }
  static Holds shorter(Holds list) {
    if (list) list->is_shorter = true;
    return list;
  }
  static void put(Arg destination, const Holds& holds, State* state) {
    if (destination.is_register()) (*state)[destination.index()] = holds;
  }

  // Strikes out the parameters that a call of the function doesn't shorten.
  void check(const Instruction& in, const State& state) {
    const bool is_call = in.opcode() == Opcode::Call,
               is_tail_call = in.opcode() == Opcode::TailCall;
    for (const vm::Word word : in.operands) {
      if (!Arg(word).is(ArgKind::Function) || Arg(word).index() != function_) continue;
      is_value_ |= !is_call && !is_tail_call;
      calls_ += is_call;
      tail_calls_ |= is_tail_call;
      const auto list = in.list();
      for (uint32_t i = 0; i < lists_.size() && i < list.size(); ++i) {
        const Holds given = held(Arg(list[i]), state);
        // A tail call doesn't deepen the recursion.
        lists_[i] = lists_[i] && given && given->param == i && (given->is_shorter || is_tail_call);
      }
    }
  }

  const size_t function_;
  const vm::FunctionUnit& code_;
  std::vector<bool> lists_;  // by parameter: a list that every call so far shortens
  std::set<uint32_t> labels_, pending_;
  std::map<uint32_t, State> states_;  // at labels
  bool is_settled_ = false, has_loop_ = false;
  bool is_value_ = false;  // a closure of the function is made in it
  int calls_ = 0;
  size_t steps_ = 0;
  bool tail_calls_ = false;
};

}  // namespace

std::optional<ListRecursion> list_recursion(const vm::Unit& unit, size_t function) {
  return Search(unit, function).run();
}

}  // namespace tenon::report::memory
