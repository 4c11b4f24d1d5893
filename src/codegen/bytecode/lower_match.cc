// Match: its decision tree as tests and jumps; each arm's code stands once.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "codegen/bytecode/join.h"
#include "graph/ir/pattern.h"
#include "support/poll.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only
using vm::Arg;
using vm::Opcode;

class FunctionLowering::MatchLowering {
 public:
  MatchLowering(FunctionLowering* function, const Match& match, Join* join)
      : function_(*function),
        code_(function->code_),
        match_(match),
        tree_(decide(match, function->signatures_)),
        join_(*join),
        span_(function->unit_.add_span(function->span_)),
        ways_(tree_.decisions.size()) {}

  void run() {
    count_ways(tree_.root);
    const auto fields = function_.fields_.find(match_.value.as<Var>());
    if (fields != function_.fields_.end()) {
      for (uint32_t i = 1; i < tree_.parts.size(); ++i) {
        if (tree_.parts[i].parent != 0) continue;
        const Arg field = fields->second[tree_.parts[i].field];
        known_[{i, field.is(vm::ArgKind::Borrowed)}] = field;
      }
    } else {
      const Arg whole = function_.value(match_.value);
      known_[{0, whole.is(vm::ArgKind::Borrowed)}] = whole;
    }
    Parts parts = known_;
    decide_here(tree_.root, parts);
    // Code to which several decisions lead, when all of them have been written.
    for (size_t next = 0; next < shared_.size(); ++next) {
      code_.start(shared_[next].block);
      Parts parts = known_;
      decide_here(shared_[next].decision, parts);
    }
  }

 private:
  // The parts that are in registers on the way to here: owned, and borrowed.
  using Parts = std::map<std::pair<uint32_t, bool>, Arg>;

  void count_ways(uint32_t id) {
    if (ways_[id]++) return;
    const Decision& decision = tree_.decisions[id];
    for (const Decision::Case& c : decision.cases) count_ways(c.next);
    if (decision.otherwise != Decision::kNone) count_ways(decision.otherwise);
  }

  // `borrow`: whether it may be borrowed.
  Arg part(uint32_t index, bool borrow, Parts* parts) {
    for (const bool borrowed : {false, true}) {
      const auto known = parts->find({index, borrowed});
      if (known != parts->end() && borrowed <= borrow) return known->second;
    }
    const MatchedPart& p = tree_.parts[index];
    const Arg whole = part(p.parent, true, parts);
    const bool is_cell = tree_.parts[p.parent].type.is<AdtType>();
    const Arg made = function_.field_of(whole, p.field, p.type, borrow && owns(p.type),
                                        is_cell ? p.siblings : 0);
    return (*parts)[{index, made.is(vm::ArgKind::Borrowed)}] = made;
  }

  // Writes the decision into the current block.
  void decide_here(uint32_t id, Parts& parts) {
    poll();
    code_.set_span(span_);  // an arm before has left that of its own bindings
    const Decision& decision = tree_.decisions[id];
    if (decision.kind == Decision::Kind::kArm) return arm(decision.arm, parts);
    Arg value = part(decision.part, true, &parts);
    if (decision.kind == Decision::Kind::kConstructor) {
      const Arg tag = code_.make(/*owns=*/false);
      code_.emit(Opcode::GetTag, {tag, value});
      value = tag;
    } else if (!value.is_register()) {
      value = function_.load(value);
    }
    // The last of the cases takes what is left, if they are all that there are. A cell that the
    // host made may have any tag.
    const bool is_whole = decision.otherwise == Decision::kNone;
    const bool any_tag = is_whole && decision.kind == Decision::Kind::kConstructor;
    const size_t tested = decision.cases.size() - (is_whole && !any_tag ? 1 : 0);
    const uint32_t rest =
        tested < decision.cases.size() ? decision.cases.back().next : decision.otherwise;
    const auto fits = [](const Decision::Case& c) { return vm::fits_immediate(c.value); };
    if (tested > (any_tag ? 2 : 1) && std::ranges::all_of(decision.cases, fits)) {
      std::vector<SwitchCase> cases;
      for (size_t i = 0; i < tested; ++i) {
        cases.push_back({decision.cases[i].value, code_.make_block()});
      }
      const BlockId otherwise = code_.make_block();
      code_.switch_on(value, cases, otherwise);
      for (size_t i = 0; i < tested; ++i) {
        code_.start(cases[i].target);
        go_to(decision.cases[i].next, parts);
      }
      code_.start(otherwise);
    } else {
      for (size_t i = 0; i < tested; ++i) {
        const Arg equal = code_.make(/*owns=*/false);
        const BlockId here = code_.make_block(), next = code_.make_block();
        const Arg number = function_.integer(constant_int(decision.cases[i].value));
        code_.emit(Opcode::Eq, {equal, value, number});
        code_.branch(equal, here, next);
        code_.start(here);
        go_to(decision.cases[i].next, parts);
        code_.start(next);
      }
    }
    if (any_tag) return unknown_tag(tree_.parts[decision.part].type);
    go_to(rest, parts);
  }

  void unknown_tag(const TypeRef& type) {
    const std::string message =
        cat("the tag of the matched cell isn't one of ", to_text(type), "'s constructors");
    code_.emit(Opcode::Fatal, {Arg::constant(function_.constants_.of_text(message))});
    code_.left();
  }

  // Leads from the current block to a decision, which is written here if nothing else leads to it.
  void go_to(uint32_t id, Parts parts) {
    if (ways_[id] == 1) return decide_here(id, parts);
    const auto [at, fresh] = blocks_.try_emplace(id, 0);
    if (fresh) at->second = code_.make_block();
    code_.jump(at->second);
    if (--left_.try_emplace(id, ways_[id]).first->second == 0) {
      shared_.push_back({id, at->second});
    }
  }

  void arm(uint32_t index, Parts& parts) {
    // What the pattern tells of sizes holds in the arm alone.
    const SizeLowering::Scope scope(&function_.sizes_);
    const std::vector<VarRef> variables = variables_of(*match_.patterns[index]);
    for (size_t i = 0; i < variables.size(); ++i) {
      const VarRef& var = variables[i];
      // A cell holds values of any size and type; the arm relies on those of the pattern, even if
      // all that it used of the value was its size.
      if (!has_sizes(var->type) && !function_.uses_.used.contains(var.get())) continue;
      const Arg value =
          part(tree_.bound[index][i], function_.borrowing_.is_borrowed(var.get()), &parts);
      function_.values_[var.get()] = value;
      const auto* scalar = var->type.as<ScalarType>();
      const bool is_known =
          value.is_none() || (scalar && !(scalar->value_known && value.is_register()));
      if (!is_known) function_.sizes_.match_result(value, var->type);
    }
    join_.arm(match_.arms[index]);
  }

  FunctionLowering& function_;
  VirtualCode& code_;
  const Match& match_;
  const DecisionTree tree_;
  Join& join_;
  const uint32_t span_;  // of the match
  Parts known_;          // before the match: the value, or the fields of a tuple that is never made
  std::vector<uint32_t> ways_;                   // that lead to each decision
  std::unordered_map<uint32_t, uint32_t> left_;  // of them, not yet written
  std::unordered_map<uint32_t, BlockId> blocks_;
  struct Shared {
    uint32_t decision;
    BlockId block;
  };
  std::vector<Shared> shared_;
};

void FunctionLowering::lower_match(const Binding& binding, const Match& match, bool tail) {
  Join join(this, binding.var, tail);
  MatchLowering(this, match, &join).run();
  join.finish();
}

}  // namespace tenon::codegen
