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
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/op.h"

namespace tenon::graph {

// Signatures of the globals that calls may name, filled before bodies are built (recursion).
using GlobalTypes = Map<String, TypeRef>;

class Builder {
 public:
  explicit Builder(GlobalTypes globals = {});

  void at(Span span);  // the span of what is built from here on
  const Span& span() const;

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
  void check(CheckKind kind, const Dim& left, const Dim& right, std::string_view message);

  // Bodies are built by callbacks into nested blocks and return the block's result.
  using Body = std::function<Operand()>;
  Operand if_(const Operand& condition, const Body& then_body, const Body& else_body);
  using LoopBody = std::function<Operand(const std::vector<Operand>& vars)>;
  Operand loop(const std::vector<std::string>& names, const std::vector<TypeRef>& types,
               const std::vector<Operand>& init, const LoopBody& condition, const LoopBody& body);
  Operand function(std::string_view self_name, const std::vector<std::string>& names,
                   const std::vector<TypeRef>& types, TypeRef result, const LoopBody& body);

  // Binds any right-hand side whose type the builder infers; `hint` names the variable.
  Operand bind(ExprRef value, std::string_view hint = "");
  // The same where the type is known to the caller (passes that copy bindings).
  Operand bind_typed(ExprRef value, TypeRef type, std::string_view hint = "");

  // What this builder bound `operand` to; null for parameters, constants and absent operands.
  ExprRef definition_of(const Operand& operand) const;

  Dim fresh_symbol(std::string_view hint);
  // The elements of a small integer tensor, shape or scalar as expressions: carried by its type, or
  // bound here to fresh symbols. `count` elements are expected.
  std::vector<Dim> elements_of(const Operand& value);

  FunctionRef finish(std::string_view name, const Operand& result, Attrs attrs = {});
  // Ends a block in the making without a function (passes).
  BlockRef finish_block(const Operand& result);

 private:
  struct Scope;
  GlobalTypes globals_;
  Span span_;
  std::vector<std::vector<Ref<const Binding>>> blocks_;
  std::vector<VarRef> params_;
  std::set<std::string> symbols_;
  int64_t next_name_ = 0;
};

// Attributes as `attrs({{"axis", 1}, {"keepdims", true}})`.
Attrs attrs(std::initializer_list<std::pair<const char*, Any>> list);
Any attr_ints(const std::vector<int64_t>& values);
Any attr_floats(const std::vector<double>& values);
Any attr_dims(const std::vector<Dim>& dims);

}  // namespace tenon::graph
