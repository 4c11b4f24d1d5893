#include "codegen/bytecode/variable_uses.h"

#include <ranges>

#include "graph/ir/walk.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only

namespace {

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
    const bool takes_field = value.is<Field>();
    for_each_operand(value, [&](const Operand& operand) { use(operand, !takes_field); });
  }
};

}  // namespace

VariableUses variable_uses(const FunctionExpr& function) {
  Walk walk;
  walk.block(function.body, true);
  return std::move(walk.out);
}

}  // namespace tenon::codegen
