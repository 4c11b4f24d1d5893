// The builder constructs functions. It maintains A-normal form, infers the type of every binding as
// it is made, adds `check` bindings for conditions that a type rule can't prove, binds sizes that
// are only known at run time with `match_shape`, and requires a span.
//
//   Builder b;
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

class Builder {
 public:
  // The signatures are what functions may name: those of functions that are built later, too.
  explicit Builder(Signatures signatures = {});

  const Signatures& signatures() const { return signatures_; }
  void set_signatures(Signatures signatures) { signatures_ = std::move(signatures); }

  void at(Span span);  // sets the span of the bindings that follow; required before the first one
  const Span& span() const { return span_; }

  // Parameters precede all bindings. Dimensions of a parameter that are a single symbol bind it.
  Operand param(std::string_view name, TypeRef type);

  // Calls an operator. Attributes are checked, and missing ones get their defaults. An operator
  // with several results returns a tuple; `ops` returns its fields. Throws Usage with the span.
  Operand op(std::string_view name, const std::vector<Operand>& args, Attrs attrs = {});
  std::vector<Operand> ops(std::string_view name, const std::vector<Operand>& args,
                           Attrs attrs = {});

  // Without type arguments, the arguments determine them.
  Operand call_global(std::string_view name, const std::vector<Operand>& args,
                      const std::vector<TypeRef>& type_args = {});
  Operand call_closure(const Operand& closure, const std::vector<Operand>& args);
  Operand call_packed(std::string_view name, const std::vector<Operand>& args, TypeRef result,
                      Attrs attrs = {});
  Operand tuple(const std::vector<Operand>& fields);
  Operand field(const Operand& tuple, int64_t index);
  Operand match_shape(const Operand& value, const std::vector<Dim>& dims);
  Operand match_elements(const Operand& value, const std::vector<Dim>& elements);
  // Adds a check unless the condition is proved or already checked. Throws Usage if it is refuted.
  void check(CheckKind kind, const Dim& left, const Dim& right, std::string_view message);

  // Callbacks build nested blocks and return the block's result. If one throws, its block is
  // discarded, and the caller may go on with the function.
  using Body = std::function<Operand()>;
  BlockRef block(const Body& body);
  Operand if_(const Operand& condition, const Body& then_body, const Body& else_body);
  using LoopBody = std::function<Operand(const std::vector<Operand>& vars)>;
  Operand loop(const std::vector<std::string>& names, const std::vector<TypeRef>& types,
               const std::vector<Operand>& init, const LoopBody& condition, const LoopBody& body);
  // A function literal. With a `self_name`, the body gets the function itself as an additional last
  // variable. It may use everything in scope.
  Operand function(std::string_view self_name, const std::vector<std::string>& names,
                   const std::vector<TypeRef>& types, TypeRef result, const LoopBody& body);

  // What `bind` would infer, where the builder stands.
  Inferred infer(const ExprRef& value);
  // Binds a right-hand side and infers its type; `hint` is the variable's name. Blocks within it
  // must have been made by begin_block and finish_block.
  Operand bind(ExprRef value, std::string_view hint = "");
  // The same with the type that a program states, which the inferred type must fit. An operator's
  // result keeps an inferred type that is more precise.
  Operand bind_as(ExprRef value, TypeRef stated, std::string_view hint = "");
  // The same without inference, for callers that know the type, such as passes that copy bindings.
  Operand bind_typed(ExprRef value, TypeRef type, std::string_view hint = "");
  Operand bind_stated(const Ref<const Call>& call, std::string_view hint = "");  // of its own type

  // The right-hand side that this builder bound `operand` to; null for parameters, constants and
  // absent operands.
  ExprRef definition_of(const Operand& operand) const;

  // The scalar's value as a tensor of rank 0, whose type carries it if it is known.
  Operand tensor_of(const Operand& scalar);

  // Fresh symbols will differ from those of this function, too: of one that is copied, before all
  // of its symbols are bound.
  void avoid_symbols_of(FunctionRef function) { avoided_ = std::move(function); }
  Dim fresh_symbol(std::string_view hint);
  // The elements of a small integer tensor, shape or scalar as expressions: carried by its type, or
  // bound to fresh symbols. Throws Usage if the type doesn't determine how many there are.
  std::vector<Dim> elements_of(const Operand& value);

  // Whether the symbol is in scope.
  bool in_scope(std::string_view symbol) const;
  std::vector<std::string> symbols() const;  // those in scope, sorted
  // `value` as a value of `type`: itself if its type fits, otherwise checked or matched at run
  // time. `what` names it in errors.
  Operand refine(const Operand& value, const TypeRef& type, const std::string& what);

  // Finishes the function. The result type is that of `result`, without sizes that mention symbols
  // that no parameter binds. The builder is empty afterwards.
  FunctionRef finish(std::string_view name, const Operand& result, Attrs attrs = {},
                     Array<String> type_params = {});
  // The same with a stated result type, to which the result is refined.
  FunctionRef finish_as(std::string_view name, const Operand& result, TypeRef result_type,
                        Attrs attrs = {}, Array<String> type_params = {});

  // For the parser and passes: bindings between begin_block and finish_block belong to a nested
  // block. `block_var` makes a variable that the block gets from outside (a loop variable, a field
  // of a pattern, a parameter of a literal) and binds the symbols of its type until the block ends.
  size_t open_blocks() const { return scopes_.size(); }  // with the function's own
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

  VarRef push(ExprRef value, TypeRef type, std::string_view hint);
  void push_checks(const std::vector<Ref<const Check>>& conditions);
  void leave_block();
  void bind_symbols(const TypeRef& type);
  void bind_symbol(const std::string& name);
  ExprRef refine_arguments(const ExprRef& value);
  ExprRef take_tensors(const Call& call);
  Operand match_fresh(const Operand& raw, const TypeRef& type);
  FunctionRef make_function(std::string_view name, const Operand& result, TypeRef result_type,
                            Attrs attrs, Array<String> type_params);

  Signatures signatures_;
  Span span_;
  std::vector<Scope> scopes_;
  std::vector<VarRef> params_;
  // A variable, which the key points to, and what it is bound to, of a block that may be discarded.
  struct Definition {
    VarRef variable;
    ExprRef value;
  };
  std::unordered_map<const Expr*, Definition> definitions_;
  std::set<std::string, std::less<>> used_symbols_;  // all, so that fresh ones are new
  FunctionRef avoided_;  // has symbols that aren't yet among these; null for none
  std::multiset<std::string, std::less<>> bound_symbols_;  // now
  std::multiset<std::string, std::less<>> checked_;        // conditions that hold here
  std::map<const Expr*, std::vector<Dim>> elements_;       // found by match_elements
  std::map<std::string, int64_t, std::less<>> next_symbol_;
};

// Makes attributes: `attrs({{"axis", 1}, {"keepdims", true}})`.
Attrs attrs(std::initializer_list<std::pair<const char*, Any>> list);
Any attr_ints(const std::vector<int64_t>& values);
Any attr_floats(const std::vector<double>& values);
Any attr_dims(const std::vector<Dim>& dims);

}  // namespace tenon::graph
