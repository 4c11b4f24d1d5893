#include "stack_plan.h"

#include <algorithm>

namespace tenon::bench {
namespace {

using vm::Arg;
using vm::Opcode;

class Plan {
 public:
  Plan(const std::vector<Step>& steps, size_t registers)
      : steps_(steps), plan_(steps.size()), starts_(steps.size()), definition_(registers) {}

  std::vector<StackStep> run() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].leads) begin_block();
      step(i);
      if (i + 1 == steps_.size() || steps_[i + 1].leads) end_block(i);
    }
    return std::move(plan_);
  }

 private:
  // A value on the stack.
  struct Stay {
    int32_t from, to;
  };

  void begin_block() {
    stays_.clear();
    std::ranges::fill(definition_, -1);
  }
  void end_block(size_t last) {
    for (size_t r = 0; r < definition_.size(); ++r) {
      if (definition_[r] >= 0 && steps_[last].live[r]) at(definition_[r]).in_local = true;
    }
  }
  StackStep& at(int32_t step) { return plan_[static_cast<size_t>(step)]; }

  void step(size_t i);
  std::vector<int32_t> choose(const std::vector<Arg>& reads, int32_t user) const;
  bool crosses(Stay stay) const;
  bool may_push_early(Arg arg, int32_t from, int32_t user) const;

  const std::vector<Step>& steps_;
  std::vector<StackStep> plan_;
  // Of each step: where the code that computes its operands on the stack begins.
  std::vector<int32_t> starts_;
  // In the block so far:
  std::vector<Stay> stays_;
  std::vector<int32_t> definition_;  // of each register, the last step that writes it, or -1
};

bool Plan::crosses(Stay stay) const {
  return std::ranges::any_of(stays_, [&](Stay other) {
    return other.from < stay.from ? stay.from < other.to && other.to < stay.to
                                  : other.from < stay.to && stay.to < other.to;
  });
}

// Whether the operand has the same value before the step `from`, and moving it out of its register
// there takes it from no other step.
bool Plan::may_push_early(Arg arg, int32_t from, int32_t user) const {
  if (!arg.is_register()) return true;
  for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(user); ++i) {
    if (steps_[i].writes == static_cast<int32_t>(arg.index())) return false;
    if (!arg.is(vm::ArgKind::LastUse)) continue;
    for (const Arg read : steps_[i].reads) {
      if (read.is_register() && read.index() == arg.index()) return false;
    }
  }
  return true;
}

// For each operand, the step whose value can stay on the stack for it, or -1.
std::vector<int32_t> Plan::choose(const std::vector<Arg>& reads, int32_t user) const {
  std::vector<int32_t> chosen(reads.size(), -1);
  int32_t below = -1;   // the last chosen step
  size_t unchosen = 0;  // the first operand above it
  for (size_t i = 0; i < reads.size(); ++i) {
    if (!reads[i].is_register()) continue;
    const int32_t from = definition_[reads[i].index()];
    if (from <= below || plan_[static_cast<size_t>(from)].stays || crosses({from, user})) continue;
    bool fits = true;
    for (size_t j = unchosen; j < i; ++j) {
      fits = fits && may_push_early(reads[j], starts_[static_cast<size_t>(from)], user);
    }
    if (!fits) continue;
    chosen[i] = below = from;
    unchosen = i + 1;
  }
  return chosen;
}

void Plan::step(size_t i) {
  const Step& step = steps_[i];
  StackStep& out = plan_[i];
  const auto user = static_cast<int32_t>(i);
  out.opcode = step.instruction.opcode();
  out.reads = step.reads;
  out.kept_by = choose(out.reads, user);
  if (exchanged(out.opcode) != Opcode::None) {
    const std::vector<Arg> reversed(step.reads.rbegin(), step.reads.rend());
    std::vector<int32_t> kept_by = choose(reversed, user);
    auto kept = [](const std::vector<int32_t>& steps) {
      return std::ranges::count_if(steps, [](int32_t s) { return s >= 0; });
    };
    if (kept(kept_by) > kept(out.kept_by)) {
      out.opcode = exchanged(out.opcode);
      out.reads = reversed;
      out.kept_by = std::move(kept_by);
    }
  }
  starts_[i] = user;
  for (size_t operand = out.reads.size(); operand-- > 0;) {
    const int32_t from = out.kept_by[operand];
    if (from < 0) continue;
    at(from).stays = true;
    stays_.push_back({from, user});
    starts_[i] = starts_[static_cast<size_t>(from)];
  }
  // An operand is pushed before the code of the next one that stays on the stack.
  int32_t place = user;
  for (size_t operand = out.reads.size(); operand-- > 0;) {
    const int32_t from = out.kept_by[operand];
    if (from >= 0) {
      place = starts_[static_cast<size_t>(from)];
      continue;
    }
    const Arg arg = out.reads[operand];
    if (arg.is_register() && definition_[arg.index()] >= 0) {
      at(definition_[arg.index()]).in_local = true;
    }
    // Below what the instructions in between push there.
    std::vector<StackStep::Push>& before = at(place).pushes;
    before.insert(before.begin(), {i, operand});
  }
  if (step.writes >= 0) definition_[static_cast<size_t>(step.writes)] = user;
}

}  // namespace

std::vector<StackStep> plan_stack(const std::vector<Step>& steps, size_t registers) {
  return Plan(steps, registers).run();
}

}  // namespace tenon::bench
