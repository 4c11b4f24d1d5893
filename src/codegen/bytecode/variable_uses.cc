#include "codegen/bytecode/variable_uses.h"

#include <algorithm>
#include <ranges>

#include "graph/ir/walk.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only

namespace {

// Whether no arm binds the value itself.
bool takes_apart(const Match& match) {
  return std::ranges::all_of(match.patterns, [](const PatternRef& pattern) {
    return pattern->kind == PatternKind::kTuple || pattern->kind == PatternKind::kAny;
  });
}

// Visits bindings from last to first, so that all uses of a variable are known at its binding.
class Walk {
 public:
  void block(const BlockRef& block, bool whole) {
    use(block->result, whole);
    for (const auto& binding : std::views::reverse(block->bindings)) {
      value(binding->value, out.whole.contains(binding->var.get()));
    }
  }

  VariableUses out;

 private:
  void use(const Operand& operand, bool whole) {
    auto* var = operand.as<Var>();
    if (!var) return;
    out.used.insert(var);
    if (whole) out.whole.insert(var);
  }

  void value(const ExprRef& value, bool whole) {
    if (auto* loop = value.as<Loop>()) {
      block(loop->body,
            loop->vars.size() == 1);  // with several variables, only the tuple's fields are used
      block(loop->condition, true);
    } else {
      const bool yields = value.is<If>() || value.is<Match>();
      for_each_block(value, [&](const BlockRef& inner) { block(inner, !yields || whole); });
    }
    const auto* match = value.as<Match>();
    const bool takes_fields = value.is<Field>() || (match && takes_apart(*match));
    for_each_operand(value, [&](const Operand& operand) { use(operand, !takes_fields); });
  }
};

}  // namespace

VariableUses variable_uses(const FunctionExpr& function) {
  Walk walk;
  walk.block(function.body, true);
  return std::move(walk.out);
}

}  // namespace tenon::codegen
