#include "graph/ir/free_names.h"

#include <unordered_set>

#include "graph/ir/walk.h"

namespace tenon::graph {

namespace {

class Search {
 public:
  FreeNames run(const FunctionExpr& literal) {
    function(literal);
    return std::move(out_);
  }
  std::vector<VarRef> run(const Block& b, const Array<VarRef>& known) {
    for (const VarRef& var : known) define(var);
    block(b);
    return std::move(out_.variables);
  }

 private:
  // Recurses over nesting only.
  void function(const FunctionExpr& f) {
    for (const VarRef& param : f.params) define(param);
    if (f.self) define(f.self);
    collect_symbols(f.result_type, &out_.symbols);
    block(*f.body);
  }

  void define(const VarRef& var) {
    defined_.insert(var.get());
    collect_symbols(var->type, &out_.symbols);
  }

  void use(const Operand& operand) {
    const auto var = operand.cast<const Var>();
    if (var && defined_.insert(var.get()).second) out_.variables.push_back(var);
  }

  void block(const Block& b) {
    for (const auto& binding : b.bindings) {
      const ExprRef& value = binding->value;
      for_each_operand(value, [this](const Operand& operand) { use(operand); });
      collect_symbols(value, &out_.symbols);
      if (auto* literal = value.as<FunctionExpr>()) {
        function(*literal);
      } else {
        for (const VarRef& var : block_variables(value)) define(var);
        for_each_block(value, [this](const BlockRef& inner) { block(*inner); });
      }
      define(binding->var);
    }
    use(b.result);
  }

  FreeNames out_;
  std::unordered_set<const Var*> defined_;  // or found to be free
};

}  // namespace

FreeNames free_names(const FunctionExpr& literal) {
  return Search().run(literal);
}

std::vector<VarRef> free_variables(const Block& block, const Array<VarRef>& known) {
  return Search().run(block, known);
}

}  // namespace tenon::graph
