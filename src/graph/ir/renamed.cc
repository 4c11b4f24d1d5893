#include "graph/ir/renamed.h"

#include <unordered_map>

#include "graph/ir/walk.h"

namespace tenon::graph {
namespace {

class Renaming {
 public:
  Renaming(const DimSubstitution& sizes, const Map<String, TypeRef>& types)
      : sizes_(sizes), types_(types) {}

  void map(const VarRef& old, const Operand& now) { map_[old.get()] = now; }

  BlockRef block(const Block& b) {
    auto out = make<Block>();
    for (const auto& binding : b.bindings) {
      auto now = make<Binding>();
      now->span = binding->span;
      now->value = value(binding->value);
      now->var = var(binding->var);
      out->bindings.push_back(now);
    }
    out->result = operand(b.result);
    return out;
  }

 private:
  Operand operand(const Operand& old) const {
    const auto* var = old.as<Var>();
    return var ? map_.at(var) : old;
  }

  VarRef var(const VarRef& old) {
    auto now = make<Var>(*old);
    now->type = type(old->type);
    map(old, now);
    return now;
  }

  TypeRef type(const TypeRef& old) const {
    return old ? substitute_type_vars(substitute(old, sizes_), types_) : old;
  }
  Dim size(const Dim& old) const { return tenon::substitute(old, sizes_); }

  // A copy in which operands are replaced; then the names that this kind of value has, and its
  // blocks.
  ExprRef value(const ExprRef& old) {
    const ExprRef now = map_operands(old, [this](const Operand& o) { return operand(o); });
    if (const auto* call = now.as<Call>()) {
      auto copy = make<Call>(*call);
      copy->attrs = substitute(call->attrs, sizes_);
      copy->result_type = type(call->result_type);
      copy->type_args = types(call->type_args);
      return copy;
    }
    if (const auto* construct = now.as<Construct>()) {
      auto copy = make<Construct>(*construct);
      copy->type_args = types(construct->type_args);
      return copy;
    }
    if (const auto* closure = now.as<Closure>()) {
      auto copy = make<Closure>(*closure);
      copy->type_args = types(closure->type_args);
      return copy;
    }
    if (const auto* known = now.as<Size>()) {
      auto copy = make<Size>(*known);
      copy->size = size(known->size);
      return copy;
    }
    if (const auto* match = now.as<MatchShape>()) {
      auto copy = make<MatchShape>(*match);
      copy->dims = match->dims.map([this](const Dim& d) { return size(d); });
      return copy;
    }
    if (const auto* check = now.as<Check>()) {
      auto copy = make<Check>(*check);
      copy->left = size(check->left);
      copy->right = size(check->right);
      return copy;
    }
    return with_blocks(now);
  }

  ExprRef with_blocks(const ExprRef& now) {
    if (const auto* branch = now.as<If>()) {
      auto copy = make<If>(*branch);
      copy->then_block = block(*branch->then_block);
      copy->else_block = block(*branch->else_block);
      return copy;
    }
    if (const auto* loop = now.as<Loop>()) {
      auto copy = make<Loop>(*loop);
      copy->vars = loop->vars.map([this](const VarRef& v) { return var(v); });
      copy->condition = block(*loop->condition);
      copy->body = block(*loop->body);
      return copy;
    }
    if (const auto* match = now.as<Match>()) {
      auto copy = make<Match>(*match);
      copy->patterns.clear();
      copy->arms.clear();
      for (size_t i = 0; i < match->arms.size(); ++i) {
        copy->patterns.push_back(pattern(*match->patterns[i]));
        copy->arms.push_back(block(*match->arms[i]));
      }
      return copy;
    }
    TENON_ASSERT(!now.is<FunctionExpr>(), "a body that is copied has a function literal");
    return now;  // a tuple or a field: no names
  }

  PatternRef pattern(const Pattern& old) {
    auto now = make<Pattern>(old);
    if (old.var) now->var = var(old.var);
    now->fields = old.fields.map([this](const PatternRef& field) { return pattern(*field); });
    return now;
  }

  Array<TypeRef> types(const Array<TypeRef>& old) const {
    return old.map([this](const TypeRef& t) { return type(t); });
  }

  const DimSubstitution& sizes_;
  const Map<String, TypeRef>& types_;
  std::unordered_map<const Var*, Operand> map_;
};

}  // namespace

BlockRef renamed_body(const FunctionExpr& function, const std::vector<Operand>& args,
                      const DimSubstitution& sizes, const Map<String, TypeRef>& types) {
  Renaming renaming(sizes, types);
  for (size_t i = 0; i < args.size(); ++i) renaming.map(function.params[i], args[i]);
  return renaming.block(*function.body);
}

}  // namespace tenon::graph
