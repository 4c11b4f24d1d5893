// Parses blocks and right-hand sides of IR text.

#include <algorithm>
#include <cctype>
#include <charconv>

#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"
#include "graph/ir/value_words.h"
#include "graph/ir/walk.h"

namespace tenon::graph {

namespace {
constexpr char kRightHandSides[] = "a call, name, constant, tuple, if, loop, match or fn";
constexpr char kNoListLiteral[] =
    "an array is array[i64](1, 2); a list begins with its end: %xs = Cons(2, Nil)";
}  // namespace

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
                     "a parameter, or a variable that is already bound");
  std::vector<std::string> names;
  for (const auto& [name, _] : names_.known) names.emplace_back(name);
  std::ranges::sort(names);
  suggest(&e, token.text, names, "%");
  throw e;
}

// Whether %t.0 follows.
bool Parser::is_field() const {
  const TokenKind number = peek(2).kind;
  return peek(1).is(".") && (number == TokenKind::kInt || number == TokenKind::kFloat);
}

// Whether %x follows, neither called nor the tuple of a field.
bool Parser::is_variable() const {
  return peek().kind == TokenKind::kVar && !peek(1).is(".") &&
         (!peek(1).is("(") || begins_line(at_ + 1));
}

// %x, a constant, or () for an absent operand. Other values without operands of their own are bound
// to a variable: %t.0, @f, size(n), Nil.
Operand Parser::operand(const TypeRef& expected, bool nested) {
  const Token t = peek();
  const size_t start = at_;
  if (t.kind == TokenKind::kVar && !is_field()) {
    take();
    Operand v = variable(t);
    refuse_infix(start, nested);
    return v;
  }
  if (accept("(")) {
    if (accept(")")) return nullptr;
    fail_at(t, "a tuple can't be nested in another expression",
            "a variable, a constant or (): bind the tuple to a variable first");
  }
  if (starts_constant()) {
    Operand c = constant_(expected);
    refuse_infix(start, nested);
    return c;
  }
  const bool constructor = t.kind == TokenKind::kWord && signatures_.find_constructor(t.text).adt;
  if (constructor || t.kind == TokenKind::kVar || t.kind == TokenKind::kGlobal || t.word("size") ||
      (t.word("array") && peek(1).is("["))) {
    Nest nest(this, &value_depth_);
    const ExprRef value = expression(expected);
    const Call* nested_call = t.kind == TokenKind::kGlobal ? value.as<Call>() : nullptr;
    bool nests = nested_call;
    for_each_operand(value, [&](const Operand& part) { nests |= part && !value.is<Field>(); });
    if (nests) {
      fail_at(t,
              cat(constructor ? "a value of " : "the call of ",
                  nested_call ? signatures_.shown(nested_call->callee) : std::string(t.text),
                  " can't be nested in another expression"),
              "a variable or a constant: bind it to a variable first");
    }
    refuse_infix(start, nested);
    return builder_.bind(value);
  }
  if (t.word("fn") && (peek(1).is("(") || peek(1).is("["))) {
    fail("a function can't be nested in another expression",
         "a variable or a constant: bind the function to a variable first, %f = fn...");
  }
  if (t.kind == TokenKind::kWord && peek(1).is("(")) {
    fail(cat("the call of ", t.text, " can't be nested in another expression"),
         "a variable or a constant: bind the call to a variable first");
  }
  if (t.kind == TokenKind::kWord && OperatorTable::global().find(t.text)) {
    fail(cat("the operator ", t.text, " is not a value"), "a function that calls it, such as @f");
  }
  Error e = error_at(t, "an operand is missing", "a variable, a constant, or () for an absent one");
  if (t.is("[")) e.help(kNoListLiteral);
  throw e;
}

// ---- blocks ----

void Parser::end_block() {
  if (accept("}")) return;
  Error e = error_at(peek(), "'}' is missing after the block's result", "'}'");
  if (peek().is("[")) {
    e.help("a field of a tuple is %t.0, an element of an array array_get(%a, 0)");
  } else if (peek().kind != TokenKind::kEnd) {
    e.help(
        "the result is the last line of a block: bind other values to variables, %y = ..., "
        "and make several results a tuple");
  }
  throw e;
}

// `{ bindings result }`; the caller must have begun the builder's block and declared its variables.
BlockRef Parser::block(const char* where, const TypeRef& expected, const std::string& refined) {
  Nest nest(this, &block_depth_);
  expect("{", where);
  enter();
  Operand result;
  const bool whole = attempt([&] { result = block_body(expected, refined); });
  leave();
  BlockRef out = builder_.finish_block(result);
  return whole ? out : nullptr;
}

// The bindings and the result of a block whose `{` was taken, up to its `}`.
Operand Parser::block_body(const TypeRef& expected, const std::string& refined) {
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
      result = block_result(expected);
      skip_semicolons();
      end_block();
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
  return refined.empty() ? result : builder_.refine(result, expected, refined);
}

Operand Parser::block_result(const TypeRef& expected) {
  builder_.at(here());
  Operand result;
  Token first = peek();
  if (first.is("}")) fail("the block has no result", "a variable, a constant, () or a call");
  if (first.is("(") && peek(1).is(")")) {
    take();
    take();
  } else if (starts_constant() || is_variable()) {
    result = operand(expected, /*nested=*/false);
  } else {
    ExprRef value = rhs(expected).value;
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
    if (targets.size() == 1 || !accept_word("_")) expect_kind(TokenKind::kVar, "a variable or _");
  } while (accept(","));
  TypeRef stated;
  if (targets.size() == 1 && accept(":")) stated = type();
  expect("=", "after what is bound");
  std::string_view hint = targets.size() == 1 ? first.text : std::string_view();
  Rhs r;
  if (peek().word("check")) {
    r.value = check();  // its unit value has a name
  } else {
    r = rhs(stated);
  }
  if (std::optional<Span> s = stated_span()) {
    builder_.at(*s);
  } else {
    builder_.at(source_.span(first.begin));
  }
  if (r.alias && stated && !is_subtype(type_of(r.alias), stated, signatures_.variances())) {
    throw error_at(first, cat("the ", r.alias.is<Var>() ? "variable" : "constant",
                              " doesn't have the stated type"))
        .found(to_text(type_of(r.alias)))
        .expected(to_text(stated));
  }
  const Operand value = r.alias  ? r.alias
                        : stated ? builder_.bind_as(r.value, stated, hint)
                                 : builder_.bind(r.value, hint);
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
    if (targets[i].word("_")) continue;
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

Parser::Rhs Parser::rhs(const TypeRef& expected) {
  const size_t start = at_;
  Operand c;
  if (starts_constant()) {
    c = constant_(expected);
  } else if (is_variable()) {
    c = variable(take());
  } else {
    return {expression(expected), nullptr};
  }
  if (!peek().is("-")) refuse_infix(start, /*nested=*/false);  // the result may follow: -1
  return {nullptr, c};
}

ExprRef Parser::expression(const TypeRef& expected) {
  const Token t = peek();
  if (t.kind == TokenKind::kVar) return of_variable();
  if (t.kind == TokenKind::kGlobal) return of_global(expected);
  if (t.is("(")) return tuple(expected);
  if (t.kind != TokenKind::kWord) {
    Error e = error_at(t, "a right-hand side is missing", kRightHandSides);
    if (t.is("[")) e.help(kNoListLiteral);
    throw e;
  }
  if (t.text == "if") return if_(expected);
  if (t.text == "match") return match(expected);
  static constexpr struct {
    std::string_view word;
    ExprRef (Parser::*parse)();
  } kKeywords[] = {
      {"loop", &Parser::loop},
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
  if (signatures_.find_constructor(t.text).adt) return construct(expected);
  return operator_call();
}

// After `.`: a field's number, or those of a field and a field of it, `1.0`, which are one word.
std::vector<int64_t> Parser::field_numbers() {
  const Token t = peek();
  const size_t point = t.text.find('.');
  if (t.kind != TokenKind::kFloat || point == std::string_view::npos) {
    return {int_value("a field's number")};
  }
  std::vector<int64_t> out;
  for (const std::string_view part : {t.text.substr(0, point), t.text.substr(point + 1)}) {
    int64_t number = 0;
    const auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (ec != std::errc() || end != part.data() + part.size()) {
      fail("a field's number is missing", "an integer");
    }
    out.push_back(number);
  }
  take();
  return out;
}

// A `(` on a new line begins the next statement: `%f = @g` may stand before the result `(%f, 1)`.
bool Parser::opens_call() const {
  return peek().is("(") && !begins_line(at_);
}

// %t.0  %t.1.0  %f(%x)  %t.0(%x)
ExprRef Parser::of_variable() {
  Operand v = variable(take());
  Ref<Field> field;
  while (accept(".")) {
    for (const int64_t index : field_numbers()) {
      if (field) v = builder_.bind(field);
      field = make<Field>();
      field->tuple = v;
      field->index = index;
    }
  }
  if (!opens_call()) return field;
  if (field) v = builder_.bind(field);
  take();
  const auto* type = type_as<FunctionType>(type_of(v));
  if (!type) return call(CalleeKind::kClosure, "", v);
  ExpectedTypes expected({}, type->params, type->result, nullptr, signatures_.variances());
  return call(CalleeKind::kClosure, "", v, &expected);
}

// @f(%x)  @f[i64](%x)  @f  @f[i64]
ExprRef Parser::of_global(const TypeRef& expected) {
  const std::string name = global_name("a function's name, as in @name");
  const auto* function = type_as<FunctionType>(signatures_.functions.at(String(name)));
  Array<TypeRef> type_args;
  const bool stated = accept("[");
  if (stated) list("]", "after type arguments", [&] { type_args.push_back(type()); });
  if (!opens_call()) {
    auto value = make<Closure>();
    value->function = name;
    value->type_args =
        stated ? type_args : type_args_for(*function, expected, signatures_.variances());
    return value;
  }
  take();
  ExpectedTypes types(function->type_params, function->params, function->result, expected,
                      signatures_.variances());
  types.state(type_args);
  const Ref<Call> made = call(CalleeKind::kGlobal, name, nullptr, &types);
  made->type_args = stated || types.arguments_determine() ? type_args : types.type_args();
  return made;
}

ExprRef Parser::tuple(const TypeRef& expected) {
  take();
  auto tuple = make<Tuple>();
  const auto* types = expected ? type_as<TupleType>(expected) : nullptr;
  list(")", "after a tuple's fields", [&] {
    const size_t i = tuple->fields.size();
    tuple->fields.push_back(
        operand(types && i < types->fields.size() ? types->fields[i] : nullptr));
  });
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
  if (is_value_word(t.text) && accept("(")) return value_function(t);
  if (t.text == "array" && peek().is("[")) return array();
  if (!peek().is("(")) {
    Error e = error_at(t, cat("'", t.text, "' is not a right-hand side"), kRightHandSides);
    if (t.text == "return") e.help("the last line of a block is its result: leave out `return`");
    if (t.text == "let") e.help("a binding begins with its variable: %x = ...");
    throw e;
  }
  if (std::isupper(static_cast<unsigned char>(t.text[0])) != 0) {
    Error e = error_at(t, cat("no data type has a constructor ", t.text));
    suggest(&e, t.text, signatures_.constructor_names());
    throw e;
  }
  if (signatures_.functions.find(String(t.text)) && !OperatorTable::global().find(t.text)) {
    throw error_at(t, cat("there is no operator '", t.text, "'"))
        .help(cat("the name of a function begins with @: @", t.text));
  }
  try {
    OperatorTable::global().get(t.text);
  } catch (Error& e) {
    if (t.text == "array") e.help("an array names its elements' type: array[i64](1, 2)");
    throw e.at(source_.span(t.begin));
  }
  take();
  return call(CalleeKind::kOperator, t.text, nullptr);
}

// array_get(%a, %i), after its `(`
ExprRef Parser::value_function(const Token& word) {
  std::vector<Operand> args;
  list(")", "after arguments",
       [&] { args.push_back(operand(expected_of_value_word(word.text, args))); });
  return at(word, [&] { return value_call(word.text, args, signatures_.variances()); });
}

// array[i64](%x, %y), after `array`: the elements are pushed one by one to an empty array.
ExprRef Parser::array() {
  expect("[", "before the type of an array's elements");
  const TypeRef element = type();
  expect("]", "after the type of an array's elements");
  ExprRef made = empty_array(element);
  expect("(", "before an array's elements");
  list(")", "after an array's elements", [&] {
    const Token token = peek();
    const Operand value = operand(element);
    const Operand before = builder_.bind(made);
    made = at(token, [&] {
      return value_call("array_push", {before, value}, signatures_.variances());
    });
  });
  return made;
}

// One of several arguments. `Nil`, `@f` and numbers are read again after the others if nothing that
// is known yet determines their types.
Operand Parser::argument(ExpectedTypes* types, size_t index, std::vector<Postponed>* postponed) {
  const TypeRef expected = types->of(index);
  const size_t words = peek().is("-") ? 2 : 1;
  const Token &last = peek(words - 1), &next = peek(words);
  const bool has_types =
      last.kind == TokenKind::kGlobal || last.kind == TokenKind::kInt ||
      last.kind == TokenKind::kFloat ||
      (last.kind == TokenKind::kWord && signatures_.find_constructor(last.text).adt);
  if (!expected && has_types && (next.is(",") || next.is(")"))) {
    postponed->push_back({index, at_});
    at_ += words;
    return nullptr;
  }
  Operand value = operand(expected);
  types->add(index, value);
  return value;
}

Operand Parser::argument(ExpectedTypes* types, const Postponed& later) {
  const size_t end = std::exchange(at_, later.at);
  Operand value = operand(types->of(later.index));
  types->add(later.index, value);
  at_ = end;
  return value;
}

// Parses a call after its `(`.
Ref<Call> Parser::call(CalleeKind kind, std::string_view callee, Operand closure,
                       ExpectedTypes* expected) {
  if (kind == CalleeKind::kKernel && lost_items_.contains({"kernel", std::string(callee)})) {
    throw Lost{};
  }
  auto c = make<Call>();
  c->kind = kind;
  c->callee = callee;
  c->closure = std::move(closure);
  const Operator* op =
      kind == CalleeKind::kOperator ? OperatorTable::global().find(callee) : nullptr;
  std::vector<Postponed> postponed;
  bool lost = false;
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
      c->args.push_back(expected ? argument(expected, c->args.size(), &postponed) : operand());
    } catch (Lost) {
      lost = true;  // the other operands may have errors of their own
      skip_argument();
    }
    if (!accept(",")) {
      expect(")", "after arguments");
      break;
    }
  }
  for (const Postponed& later : postponed) c->args.set(later.index, argument(expected, later));
  if (lost) throw Lost{};
  if (op) c->attrs = complete_attrs(*op, c->attrs);
  if (kind == CalleeKind::kPacked || (kind == CalleeKind::kKernel && peek().is("->"))) {
    expect("->", "before the result type of a packed function");
    c->result_type = type();
  }
  return c;
}

// size(2*n)
ExprRef Parser::size_value() {
  take();
  expect("(", "before a size");
  const Dim size = dim();
  expect(")", "after a size");
  return make_size(size);
}

// What the arms after this one should be; null if it has an error.
TypeRef Parser::type_of_arm(const BlockRef& arm) {
  if (!arm) return nullptr;
  return erase_symbols(type_of(arm->result),
                       [this](std::string_view symbol) { return builder_.in_scope(symbol); });
}

ExprRef Parser::if_(const TypeRef& expected) {
  take();
  auto e = make<If>();
  e->condition = operand();
  builder_.begin_block();
  e->then_block = block("after the condition", expected);
  if (!accept_word("else")) fail("'else' is missing", "else { ... }: every `if` gives a value");
  e->else_block = else_block(expected ? expected : type_of_arm(e->then_block));
  if (!e->then_block || !e->else_block) throw Lost{};
  return e;
}

// A block, or an `if` alone in its place.
BlockRef Parser::else_block(const TypeRef& expected) {
  builder_.begin_block();
  if (peek().kind != TokenKind::kWord || peek().text != "if")
    return block("after 'else'", expected);
  Nest nest(this, &block_depth_);
  enter();  // an error leaves this scope and the builder's where the statement around it ends
  const Operand result = block_result(expected);
  leave();
  return builder_.finish_block(result);
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
    Operand init = operand(types.back());
    e->init.push_back(builder_.refine(
        init, types.back(), cat("the initial value of %", name_text(tokens.back().text))));
  });
  if (!accept_word("while")) fail("'while' is missing", "while { condition } { body }");
  TypeRef all = loop_type(types);
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
    if (condition) {
      e->condition = block("after 'while'");
    } else {
      e->body = block("after the condition", all, "the result of the loop's body");
    }
    leave();
  }
  if (!e->condition || !e->body) throw Lost{};
  builder_.at(source_.span(first.begin));
  return e;
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
