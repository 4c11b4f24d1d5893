// The builder: the only way to make functions. It keeps A-normal form, infers the type of every
// binding as it is made, adds the `check` bindings that a type rule could not prove, binds sizes
// that only running tells by `match_shape`, and demands a span.
//
//   Builder b(module_context);
//   auto x = b.param("x", tensor_type(f32, {Dim::symbol("n"), 4}));
//   b.at(Span::node("/relu"));
//   auto y = b.op("relu", {x});
//   FunctionRef f = b.finish("main", y);
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/ir/infer.h"

namespace tenon::graph {

// Signatures of the globals that calls may name, filled before bodies are built (recursion).
using GlobalTypes = Map<String, TypeRef>;

class Builder {
 public:
  explicit Builder(GlobalTypes globals = {});
  explicit Builder(Signatures signatures);

  void at(Span span);  // the span of what is built from here on; needed before the first binding
  const Span& span() const { return span_; }

  // Parameters come before any binding. A symbol that stands alone in a parameter's type is bound.
  Operand param(std::string_view name, TypeRef type);

  // Calls of an operator: attributes are checked and completed by the entry's defaults. An operator
  // with several results gives a tuple; `ops` takes it apart. Throws Error (Usage) with the span.
  Operand op(std::string_view name, const std::vector<Operand>& args, Attrs attrs = {});
  std::vector<Operand> ops(std::string_view name, const std::vector<Operand>& args,
                           Attrs attrs = {});

  Operand call_global(std::string_view name, const std::vector<Operand>& args);
  Operand call_closure(const Operand& closure, const std::vector<Operand>& args);
  Operand call_packed(std::string_view name, const std::vector<Operand>& args, TypeRef result);
  Operand tuple(const std::vector<Operand>& fields);
  Operand field(const Operand& tuple, int64_t index);
  Operand match_shape(const Operand& value, const std::vector<Dim>& dims);
  Operand match_elements(const Operand& value, const std::vector<Dim>& elements);
  // Nothing is bound where the condition is proved or checked already; an Error (Usage) where it is
  // refuted.
  void check(CheckKind kind, const Dim& left, const Dim& right, std::string_view message);

  // Bodies are built by callbacks into nested blocks and return the block's result.
  using Body = std::function<Operand()>;
  Operand if_(const Operand& condition, const Body& then_body, const Body& else_body);
  using LoopBody = std::function<Operand(const std::vector<Operand>& vars)>;
  Operand loop(const std::vector<std::string>& names, const std::vector<TypeRef>& types,
               const std::vector<Operand>& init, const LoopBody& condition, const LoopBody& body);
  // A function literal. With a `self_name` the body gets the function itself as one variable more,
  // the last. It may use whatever is in scope here.
  Operand function(std::string_view self_name, const std::vector<std::string>& names,
                   const std::vector<TypeRef>& types, TypeRef result, const LoopBody& body);

  // Binds any right-hand side whose type the builder infers; `hint` names the variable. Blocks
  // within it were made by begin_block and finish_block.
  Operand bind(ExprRef value, std::string_view hint = "");
  // The same with the type that a program states: what is inferred must fit it.
  Operand bind_as(ExprRef value, TypeRef stated, std::string_view hint = "");
  // The same where the type is known to the caller (passes that copy bindings).
  Operand bind_typed(ExprRef value, TypeRef type, std::string_view hint = "");

  // What this builder bound `operand` to; null for parameters, constants and absent operands.
  ExprRef definition_of(const Operand& operand) const;

  Dim fresh_symbol(std::string_view hint);
  // The elements of a small integer tensor, shape or scalar as expressions: carried by its type, or
  // bound here to fresh symbols. `count` elements are expected.
  std::vector<Dim> elements_of(const Operand& value);

  // Whether the symbol is bound here.
  bool in_scope(std::string_view symbol) const;
  // `value` as something of `type`: itself where it fits, checked or matched where only running
  // tells. `what` names it in errors.
  Operand refine(const Operand& value, const TypeRef& type, const std::string& what);

  // The result type is the result's, without what is told in symbols that no parameter binds.
  // The builder is empty afterwards.
  FunctionRef finish(std::string_view name, const Operand& result, Attrs attrs = {});
  // With a stated result type, which the result is refined to.
  FunctionRef finish_as(std::string_view name, const Operand& result, TypeRef result_type,
                        Attrs attrs = {}, Array<String> type_params = {});

  // Blocks by hand (parser, passes): what is bound between the two calls is in the block. A
  // variable that the block has from outside (of a loop, a pattern, a literal's parameter) is made
  // by `block_var`, which binds the symbols of its type until the block ends.
  void begin_block();
  VarRef block_var(std::string_view name, TypeRef type);
  BlockRef finish_block(const Operand& result);

 private:
  struct Scope {
    std::vector<Ref<const Binding>> bindings;
    std::vector<std::string> symbols;  // bound in this block
    std::vector<std::string> checks;   // keys of conditions checked in this block
    std::vector<const Expr*> matched;  // keys of elements_ added in this block
  };

  Inferred infer(const ExprRef& value);
  VarRef push(ExprRef value, TypeRef type, std::string_view hint);
  void push_checks(const std::vector<Ref<const Check>>& conditions);
  void bind_symbols(const TypeRef& type);
  void bind_symbol(const std::string& name);
  ExprRef refine_arguments(const ExprRef& value);
  Operand match_fresh(const Operand& raw, const TypeRef& type);
  FunctionRef make_function(std::string_view name, const Operand& result, TypeRef result_type,
                            Attrs attrs, Array<String> type_params);

  Signatures signatures_;
  Span span_;
  std::vector<Scope> scopes_;
  std::vector<VarRef> params_;
  std::unordered_map<const Expr*, ExprRef> definitions_;   // by variable
  std::set<std::string, std::less<>> used_symbols_;        // ever, so that fresh ones are new
  std::multiset<std::string, std::less<>> bound_symbols_;  // now
  std::multiset<std::string, std::less<>> checked_;        // conditions that hold here
  std::map<const Expr*, std::vector<Dim>> elements_;       // found by match_elements
  std::map<std::string, int64_t, std::less<>> next_symbol_;
};

// Attributes as `attrs({{"axis", 1}, {"keepdims", true}})`.
Attrs attrs(std::initializer_list<std::pair<const char*, Any>> list);
Any attr_ints(const std::vector<int64_t>& values);
Any attr_floats(const std::vector<double>& values);
Any attr_dims(const std::vector<Dim>& dims);

}  // namespace tenon::graph
