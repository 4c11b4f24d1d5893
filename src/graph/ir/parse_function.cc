// Parses functions as values in IR text: function literals and closures.

#include "graph/ir/parser.h"

namespace tenon::graph {

// fn %self(%x: T) -> R { ... }
ExprRef Parser::function_literal() {
  Token first = take();
  auto f = make<FunctionExpr>();
  std::optional<Token> self;
  if (peek().kind == TokenKind::kVar) self = take();
  if (peek().is("[")) {
    fail("a function literal has no type parameters",
         "the type parameters of the function around it, or a function of the module");
  }
  f->span = source_.span(first.begin);
  enter();
  builder_.begin_block();
  expect("(", "before a function's parameters");
  list(")", "after a function's parameters", [&] {
    Token name = peek();
    expect_parameter();
    expect(":", "between a parameter and its type");
    VarRef v = builder_.block_var(name.text, type());
    f->params.push_back(v);
    declare(name, v);
  });
  expect("->", "before a function's result");
  f->result_type = type();
  for (const VarRef& p : f->params) {
    SymbolSet symbols;
    collect_symbols(p->type, &symbols);
    if (p == f->params.back()) collect_symbols(f->result_type, &symbols);
    for (const std::string& s : symbols) {
      if (!builder_.in_scope(s)) fail_at(first, cat("the symbol ", s, " is not bound here"));
    }
  }
  if (accept_word("attrs")) {
    expect("(", "after 'attrs'");
    f->attrs = attr_list(")", nullptr);
  }
  if (self) {
    auto v = make<Var>();
    v->name = self->text;
    v->type = type_of(*f);
    f->self = v;
    f->name = self->text;
    declare(*self, v);
  }
  f->body = block("before a function's body", f->result_type, "the function's result");
  if (!f->body) throw Lost{};
  leave();
  builder_.at(f->span);
  return f;
}

// closure @f(%x)  closure @f[i64](%x)
ExprRef Parser::closure() {
  take();
  auto c = make<Closure>();
  c->function = global_name("a function's name, as in @name");
  if (accept("[")) list("]", "after type arguments", [&] { c->type_args.push_back(type()); });
  const auto* known = type_as<FunctionType>(*signatures_.functions.find(c->function));
  ExpectedTypes types(known->type_params, known->params, known->result, nullptr,
                      signatures_.variances());
  types.state(c->type_args);
  expect("(", "before the captured arguments");
  list(")", "after the captured arguments", [&] {
    const size_t i = c->captures.size();
    c->captures.push_back(operand(types.of(i)));
    types.add(i, c->captures.back());
  });
  return c;
}

}  // namespace tenon::graph
