// Parses blocks and right-hand sides of IR text.

#include <algorithm>

#include "graph/ir/instantiate.h"
#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"
#include "graph/ir/pattern.h"

namespace tenon::graph {

// ---- names ----

void Parser::enter() {
  names_.levels.emplace_back();
}

void Parser::leave() {
  for (std::string_view name : names_.levels.back()) names_.known.erase(name);
  names_.levels.pop_back();
}

void Parser::declare(const Token& token, const Operand& value) {
  if (!names_.known.emplace(token.text, value).second) {
    fail_at(token, cat("%", name_text(token.text), " is already bound"), "another name");
  }
  names_.levels.back().push_back(token.text);
}

Operand Parser::variable(const Token& token) {
  auto at = names_.known.find(token.text);
  if (at != names_.known.end()) return at->second;
  if (!names_.lost.insert(token.text).second) throw Lost{};
  Error e = error_at(token, cat("unknown variable %", name_text(token.text)),
                     "a parameter, or a variable that is bound before");
  std::vector<std::string> names;
  for (const auto& [name, _] : names_.known) names.emplace_back(name);
  std::ranges::sort(names);
  suggest(&e, token.text, names, "%");
  throw e;
}

// %x, a constant, or () for an absent operand.
Operand Parser::operand(bool nested) {
  const Token t = peek();
  const size_t start = at_;
  if (t.kind == TokenKind::kVar) {
    take();
    Operand v = variable(t);
    if (peek().is(".") && peek(1).kind == TokenKind::kInt) {
      fail_at(t,
              cat("the field %", t.text, ".", peek(1).text, " can't be used in another expression"),
              "a variable or a constant: bind the field to a variable first");
    }
    refuse_infix(start, nested);
    return v;
  }
  if (accept("(")) {
    expect(")", "after '(': an operand is a variable, a constant or ()");
    return nullptr;
  }
  if (starts_constant()) {
    Operand c = constant_();
    refuse_infix(start, nested);
    return c;
  }
  if ((t.kind == TokenKind::kWord || t.kind == TokenKind::kGlobal) && peek(1).is("(")) {
    fail(cat("the call of ", t.text, " can't be nested in another expression"),
         "a variable or a constant: bind the call to a variable first");
  }
  fail("an operand is missing", "a variable, a constant, or () for an absent one");
}

// ---- blocks ----

// `{ bindings result }`; the caller must have begun the builder's block and declared its variables.
BlockRef Parser::block(const char* where, const TypeRef& refine_to, const std::string& what) {
  Nest nest(this, &block_depth_);
  expect("{", where);
  enter();
  Operand result;
  const bool whole = attempt([&] { result = block_body(refine_to, what); });
  leave();
  BlockRef out = builder_.finish_block(result);
  return whole ? out : nullptr;
}

// The bindings and the result of a block whose `{` was taken, up to its `}`.
Operand Parser::block_body(const TypeRef& refine_to, const std::string& what) {
  const int64_t braces = braces_;
  const size_t levels = names_.levels.size(), blocks = builder_.open_blocks();
  const auto type_vars = type_vars_;
  Operand result;
  bool whole = true, more = true;
  while (more) {
    const size_t start = at_;
    const bool parsed = attempt([&] {
      more = binding();
      if (more) return skip_semicolons();
      result = block_result();
      skip_semicolons();
      expect("}", "after the block's result");
    });
    if (parsed) continue;
    whole = false;
    // Leaves the scopes in which the error occurred.
    type_vars_ = type_vars;
    while (names_.levels.size() > levels) leave();
    while (builder_.open_blocks() > blocks) builder_.finish_block(nullptr);
    skip_statement(start, braces);
    more = !accept("}") && peek().kind != TokenKind::kEnd;
  }
  if (!whole) throw Lost{};
  if (!refine_to) return result;
  return builder_.refine(result, refine_to, what);
}

Operand Parser::block_result() {
  builder_.at(here());
  Operand result;
  Token first = peek();
  if (first.is("}")) fail("the block has no result", "a variable, a constant, () or a call");
  if (first.is("(") && peek(1).is(")")) {
    take();
    take();
  } else if (starts_constant() ||
             (first.kind == TokenKind::kVar && !peek(1).is("(") && !peek(1).is("."))) {
    result = operand(/*nested=*/false);
  } else {
    ExprRef value = rhs().value;
    builder_.at(stated_span().value_or(source_.span(first.begin)));
    result = builder_.bind(value);
  }
  builder_.at(source_.span(first.begin));
  return result;
}

// Parses one `%x = ...`, `%a, %b = ...` or `check`; returns false at the block's result.
bool Parser::binding() {
  const Token first = peek();
  builder_.at(source_.span(first.begin));
  if (first.word("check")) {
    Ref<const Check> c = check();
    builder_.at(stated_span().value_or(source_.span(first.begin)));
    builder_.bind_as(c, unit_type());
    return true;
  }
  if (first.kind != TokenKind::kVar) return false;
  const Token& second = peek(1);
  if (!second.is("=") && !second.is(":") && !second.is(",")) return false;
  std::vector<Token> targets;
  do {
    targets.push_back(peek());
    expect_kind(TokenKind::kVar, "a variable");
  } while (accept(","));
  TypeRef stated;
  if (targets.size() == 1 && accept(":")) stated = type();
  expect("=", "after what is bound");
  std::string_view hint = targets.size() == 1 ? first.text : std::string_view();
  Rhs r;
  if (peek().word("check")) {
    r.value = check();  // its unit value has a name
  } else {
    r = rhs();
  }
  if (std::optional<Span> s = stated_span()) {
    builder_.at(*s);
  } else {
    builder_.at(source_.span(first.begin));
  }
  if (!r.value) {
    if (stated || targets.size() > 1) {
      fail_at(first, "a name for a constant can't have a type", "%name = constant");
    }
    declare(first, r.constant);
    return true;
  }
  Operand value = stated ? builder_.bind_as(r.value, stated, hint) : builder_.bind(r.value, hint);
  if (targets.size() == 1) {
    declare(first, value);
    return true;
  }
  TypeRef t = type_of(value);
  const auto* tuple = type_as<TupleType>(t);
  if (!tuple || tuple->fields.size() != targets.size()) {
    fail_at(first, cat(targets.size(), " names for a value of type ", to_text(t)));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    auto f = make<Field>();
    f->tuple = value;
    f->index = static_cast<int64_t>(i);
    declare(targets[i], builder_.bind(f, targets[i].text));
  }
  return true;
}

// check n == m, "message"
Ref<const Check> Parser::check() {
  take();
  auto c = make<Check>();
  c->left = dim();
  if (accept("==")) {
    c->kind = CheckKind::kEqual;
  } else if (accept("<=")) {
    c->kind = CheckKind::kLessEqual;
  } else if (accept("~")) {
    c->kind = CheckKind::kBroadcast;
  } else {
    fail("a condition is missing", "==, <= or ~");
  }
  c->right = dim();
  if (accept(",")) c->message = expect_kind(TokenKind::kString, "what fails, in quotes");
  return c;
}

// at("net.onnx", 12, 3, nodes "/conv1", "/relu1")
std::optional<Span> Parser::stated_span() {
  if (!peek().word("at") || !peek(1).is("(")) return std::nullopt;
  Token first = take();
  take();
  Span s;
  if (peek().kind == TokenKind::kString) {
    s.file = take().text;
    if (accept(",")) s.line = static_cast<int32_t>(int_value("a line"));
    if (accept(",")) s.column = static_cast<int32_t>(int_value("a column"));
    if (peek().word("nodes")) fail("a comma is missing", "','");
    if (peek().is(",")) take();
  }
  if (accept_word("nodes")) {
    do {
      s.nodes.emplace_back(expect_kind(TokenKind::kString, "a node's name in quotes"));
    } while (accept(","));
  }
  expect(")", "after a place");
  if (s.empty()) fail_at(first, "a place is empty", "at(\"file\", 1, 1) or at(nodes \"/name\")");
  return s;
}

// ---- right-hand sides ----

namespace {
constexpr char kRightHandSides[] = "a call, constant, tuple, if, loop, match or fn";
}  // namespace

Parser::Rhs Parser::rhs() {
  if (!starts_constant()) return {expression(), nullptr};
  const size_t start = at_;
  Operand c = constant_();
  if (!peek().is("-")) refuse_infix(start, /*nested=*/false);  // the result may follow: -1
  return {nullptr, c};
}

ExprRef Parser::expression() {
  const Token t = peek();
  if (t.kind == TokenKind::kVar) return of_variable();
  if (t.kind == TokenKind::kGlobal) {
    take();
    Array<TypeRef> type_args;
    if (accept("[")) list("]", "after type arguments", [&] { type_args.push_back(type()); });
    expect("(", "before arguments");
    const Ref<Call> made = call(CalleeKind::kGlobal, t.text, nullptr);
    made->type_args = type_args;
    return made;
  }
  if (t.is("(")) return tuple();
  if (t.kind != TokenKind::kWord) fail("a right-hand side is missing", kRightHandSides);
  static constexpr struct {
    std::string_view word;
    ExprRef (Parser::*parse)();
  } kKeywords[] = {
      {"if", &Parser::if_},
      {"loop", &Parser::loop},
      {"match", &Parser::match},
      {"fn", &Parser::function_literal},
      {"closure", &Parser::closure},
      {"size", &Parser::size_value},
      {"match_shape", &Parser::match_shape},
      {"match_elements", &Parser::match_shape},
      {"kernel", &Parser::kernel_call},
      {"packed", &Parser::packed_call},
  };
  for (const auto& keyword : kKeywords) {
    if (t.text == keyword.word) return (this->*keyword.parse)();
  }
  if (signatures_.find_constructor(t.text).adt) return construct();
  return operator_call();
}

// %t.0  %f(%x)
ExprRef Parser::of_variable() {
  const Token t = peek();
  const size_t start = at_;
  Operand v = variable(t);
  take();
  if (accept(".")) {
    auto f = make<Field>();
    f->tuple = v;
    f->index = int_value("a field's number");
    return f;
  }
  if (accept("(")) return call(CalleeKind::kClosure, "", v);
  refuse_infix(start, /*nested=*/false);
  fail_at(t, "a variable alone is not a right-hand side",
          "a call, as in %f(...), or a field, as in %t.0");
}

ExprRef Parser::tuple() {
  take();
  auto tuple = make<Tuple>();
  list(")", "after a tuple's fields", [&] { tuple->fields.push_back(operand()); });
  return tuple;
}

ExprRef Parser::kernel_call() {
  take();
  std::string_view name = expect_kind(TokenKind::kGlobal, "a kernel's name, as in @name");
  expect("(", "before arguments");
  return call(CalleeKind::kKernel, name, nullptr);
}

ExprRef Parser::packed_call() {
  take();
  std::string_view name = expect_kind(TokenKind::kString, "a function's name in quotes");
  expect("(", "before arguments");
  return call(CalleeKind::kPacked, name, nullptr);
}

ExprRef Parser::operator_call() {
  const Token t = take();
  if (!peek().is("(")) {
    Error e = error_at(t, cat("'", t.text, "' is not a right-hand side"), kRightHandSides);
    if (t.text == "return") e.help("the last line of a block is its result: leave out `return`");
    throw e;
  }
  if (signatures_.functions.find(String(t.text)) && !OperatorTable::global().find(t.text)) {
    throw error_at(t, cat("there is no operator '", t.text, "'"))
        .help(cat("the name of a function begins with @: @", t.text));
  }
  try {
    OperatorTable::global().get(t.text);
  } catch (Error& e) {
    throw e.at(source_.span(t.begin));
  }
  take();
  return call(CalleeKind::kOperator, t.text, nullptr);
}

// Parses a call after its `(`.
Ref<Call> Parser::call(CalleeKind kind, std::string_view callee, Operand closure) {
  bool lost = (kind == CalleeKind::kGlobal && lost_items_.contains({"fn", callee})) ||
              (kind == CalleeKind::kKernel && lost_items_.contains({"kernel", callee}));
  if (lost) throw Lost{};
  auto c = make<Call>();
  c->kind = kind;
  c->callee = callee;
  c->closure = std::move(closure);
  const Operator* op =
      kind == CalleeKind::kOperator ? OperatorTable::global().find(callee) : nullptr;
  while (!accept(")")) {
    if (peek().kind == TokenKind::kWord && peek(1).is("=")) {
      // Attributes come last.
      if (kind == CalleeKind::kGlobal || kind == CalleeKind::kClosure) {
        fail("a function takes no attributes", "operands");
      }
      if (kind == CalleeKind::kKernel && peek().text == kIntegersAttr) {
        take();
        take();
        c->attrs.set(kIntegersAttr, Any(Array<Dim>(dims("before a kernel's integers"))));
        accept(",");
        expect(")", "after a kernel's integers");
      } else {
        c->attrs = attr_list(")", op);
      }
      break;
    }
    try {
      c->args.push_back(operand());
    } catch (Lost) {
      lost = true;  // the other operands may have errors of their own
    }
    if (!accept(",")) {
      expect(")", "after arguments");
      break;
    }
  }
  if (lost) throw Lost{};
  if (op) c->attrs = complete_attrs(*op, c->attrs);
  if (kind == CalleeKind::kPacked || (kind == CalleeKind::kKernel && peek().is("->"))) {
    expect("->", "before the result type of a packed function");
    c->result_type = type();
  }
  return c;
}

// Some(%x)  Cons[T](%x, %xs)  Nil[i64]()
ExprRef Parser::construct() {
  const std::string_view name = take().text;
  ConstructorRef ref = signatures_.find_constructor(name);
  auto c = make<Construct>();
  c->constructor = name;
  bool stated = accept("[");
  if (stated) list("]", "after type arguments", [&] { c->type_args.push_back(type()); });
  if (accept("(")) list(")", "after fields", [&] { c->fields.push_back(operand()); });
  if (stated || ref.adt->type_params.empty()) return c;
  // Infers the type arguments from the fields if possible.
  auto f = make<FunctionType>();
  f->type_params = ref.adt->type_params;
  f->params = ref.constructor->fields;
  f->result = unit_type();
  Instance instance = instantiate(*f, c->fields, cat(name, "(...)"));
  for (const String& p : ref.adt->type_params) c->type_args.push_back(instance.type_args.at(p));
  return c;
}

// closure @f(%x)  closure @f[i64](%x)
ExprRef Parser::closure() {
  take();
  auto c = make<Closure>();
  c->function = expect_kind(TokenKind::kGlobal, "a function's name, as in @name");
  if (lost_items_.contains({"fn", c->function.view()})) throw Lost{};
  if (accept("[")) list("]", "after type arguments", [&] { c->type_args.push_back(type()); });
  expect("(", "before the captured arguments");
  list(")", "after the captured arguments", [&] { c->captures.push_back(operand()); });
  return c;
}

// size(2*n)
ExprRef Parser::size_value() {
  take();
  auto s = make<Size>();
  expect("(", "before a size");
  s->size = dim();
  expect(")", "after a size");
  return s;
}

ExprRef Parser::if_() {
  take();
  auto e = make<If>();
  e->condition = operand();
  builder_.begin_block();
  e->then_block = block("after the condition", nullptr, "");
  if (!accept_word("else")) fail("'else' is missing", "else { ... }: every `if` gives a value");
  builder_.begin_block();
  e->else_block = block("after 'else'", nullptr, "");
  if (!e->then_block || !e->else_block) throw Lost{};
  return e;
}

// loop (%i: i64 = 0, ...) while { condition } { body }
ExprRef Parser::loop() {
  Token first = take();
  auto e = make<Loop>();
  std::vector<Token> tokens;
  std::vector<TypeRef> types;
  expect("(", "before a loop's variables");
  list(")", "after a loop's variables", [&] {
    tokens.push_back(peek());
    expect_kind(TokenKind::kVar, "a loop's variable");
    expect(":", "between a variable and its type");
    types.push_back(type());
    expect("=", "before the initial value");
    Operand init = operand();
    e->init.push_back(builder_.refine(
        init, types.back(), cat("the initial value of %", name_text(tokens.back().text))));
  });
  if (!accept_word("while")) fail("'while' is missing", "while { condition } { body }");
  TypeRef all = types.size() == 1 ? types[0] : tuple_type(types);
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto v = make<Var>();
    v->name = tokens[i].text;
    v->type = types[i];
    SymbolSet symbols;
    collect_symbols(types[i], &symbols);
    for (const std::string& s : symbols) {
      if (!builder_.in_scope(s)) {
        fail_at(tokens[i], cat("the symbol ", s, " is not bound before the loop"),
                "sizes that no iteration changes; state only the rank if a size changes");
      }
    }
    e->vars.push_back(v);
  }
  for (bool condition : {true, false}) {
    enter();
    for (size_t i = 0; i < tokens.size(); ++i) declare(tokens[i], e->vars[i]);
    builder_.begin_block();
    (condition ? e->condition : e->body) =
        block(condition ? "after 'while'" : "after the condition", condition ? nullptr : all,
              "the result of the loop's body");
    leave();
  }
  if (!e->condition || !e->body) throw Lost{};
  builder_.at(source_.span(first.begin));
  return e;
}

ExprRef Parser::match() {
  take();
  auto e = make<Match>();
  e->value = operand();
  bool whole = true;
  expect("{", "before the arms of match");
  while (!accept("}")) {
    enter();
    builder_.begin_block();
    e->patterns.push_back(pattern(type_of(e->value)));
    expect("=>", "between a pattern and its arm");
    e->arms.push_back(block("before an arm", nullptr, ""));
    whole &= e->arms.back() != nullptr;
    leave();
    accept(",");
  }
  if (!whole) throw Lost{};
  return e;
}

// Node(%left, 3, _)  (%x, None)  _   for a value of that type
PatternRef Parser::pattern(const TypeRef& type) {
  Nest nest(this, &block_depth_);
  const Token first = peek();
  auto p = make<Pattern>();
  Array<TypeRef> parts;
  const auto fields = [&] {
    list(")", "after a pattern's fields", [&] {
      if (p->fields.size() == parts.size()) {
        fail(cat("the pattern has more than ", counted(parts.size(), "field")));
      }
      p->fields.push_back(pattern(parts[p->fields.size()]));
    });
    if (p->fields.size() == parts.size()) return;
    fail_at(first, cat("the pattern has ", counted(p->fields.size(), "field")),
            cat(counted(parts.size(), "field"), ", as in ", to_text(type)));
  };
  if (accept_word("_")) return p;
  if (first.kind == TokenKind::kVar) {
    take();
    p->kind = PatternKind::kVariable;
    p->var = builder_.block_var(first.text, type);
    declare(first, p->var);
  } else if (first.is("(")) {
    parts = at(first, [&] { return tuple_parts(type); });
    take();
    p->kind = PatternKind::kTuple;
    fields();
  } else if (starts_constant()) {
    p->kind = PatternKind::kConstant;
    p->constant = constant_();
    at(first, [&] { require_constant(*p, type); });
  } else {
    p->kind = PatternKind::kConstructor;
    p->constructor = expect_word("a constructor, a variable, a number, a tuple or _");
    parts = at(first, [&] { return constructor_parts(first.text, type, signatures_); });
    if (accept("(")) {
      fields();
    } else if (!parts.empty()) {
      fail_at(first, cat(first.text, " has ", counted(parts.size(), "field")),
              cat(first.text, "(...) with a pattern for each, or _ alone"));
    }
  }
  return p;
}

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
    expect_kind(TokenKind::kVar, "a parameter");
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

// match_shape(%x, [n, 4])  match_elements(%x, [n, 4])
ExprRef Parser::match_shape() {
  auto m = make<MatchShape>();
  m->elements = take().word("match_elements");
  expect("(", "before a value");
  m->value = operand();
  expect(",", "between a value and sizes");
  m->dims = Array<Dim>(dims("before sizes"));
  expect(")", "after sizes");
  return m;
}

}  // namespace tenon::graph
