#include "graph/ir/free_names.h"

#include <unordered_set>

#include "graph/ir/pattern.h"
#include "graph/ir/walk.h"

namespace tenon::graph {

namespace {

class Search {
 public:
  FreeNames run(const FunctionExpr& literal) {
    function(literal);
    return std::move(out_);
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
      sizes(value);
      if (auto* literal = value.as<FunctionExpr>()) {
        function(*literal);
      } else {
        if (auto* loop = value.as<Loop>()) {
          for (const VarRef& var : loop->vars) define(var);
        } else if (auto* match = value.as<Match>()) {
          for (const PatternRef& pattern : match->patterns) {
            for (const VarRef& var : variables_of(*pattern)) define(var);
          }
        }
        for_each_block(value, [this](const BlockRef& inner) { block(*inner); });
      }
      define(binding->var);
    }
    use(b.result);
  }

  void sizes(const ExprRef& value) {
    if (auto* call = value.as<Call>()) {
      collect_symbols(call->attrs, &out_.symbols);
      if (call->result_type) collect_symbols(call->result_type, &out_.symbols);
      for (const TypeRef& type : call->type_args) collect_symbols(type, &out_.symbols);
    } else if (auto* match = value.as<MatchShape>()) {
      for (const Dim& dim : match->dims) tenon::collect_symbols(dim, &out_.symbols);
    } else if (auto* check = value.as<Check>()) {
      tenon::collect_symbols(check->left, &out_.symbols);
      tenon::collect_symbols(check->right, &out_.symbols);
    } else if (auto* made = value.as<Construct>()) {
      for (const TypeRef& type : made->type_args) collect_symbols(type, &out_.symbols);
    } else if (auto* closure = value.as<Closure>()) {
      for (const TypeRef& type : closure->type_args) collect_symbols(type, &out_.symbols);
    } else if (auto* size = value.as<Size>()) {
      tenon::collect_symbols(size->size, &out_.symbols);
    }
  }

  FreeNames out_;
  std::unordered_set<const Var*> defined_;  // or found to be free
};

}  // namespace

FreeNames free_names(const FunctionExpr& literal) {
  return Search().run(literal);
}

}  // namespace tenon::graph
