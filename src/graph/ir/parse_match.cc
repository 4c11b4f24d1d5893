// Parses values of data types in IR text: constructors, and `match` with its patterns.

#include "graph/ir/parser.h"
#include "graph/ir/pattern.h"

namespace tenon::graph {

// Some(%x)  Cons[T](%x, %xs)  Nil  Nil[i64]
ExprRef Parser::construct(const TypeRef& expected) {
  const Token first = take();
  const std::string_view name = first.text;
  ConstructorRef ref = signatures_.find_constructor(name);
  auto c = make<Construct>();
  c->constructor = name;
  bool stated = accept("[");
  if (stated) list("]", "after type arguments", [&] { c->type_args.push_back(type()); });
  const Array<String>& params = ref.adt->type_params;
  std::vector<TypeRef> variables;
  std::vector<std::string> names;
  for (const String& param : params) {
    names.push_back(param.str());
    variables.push_back(type_var(param));
  }
  const TypeRef result = adt_type(ref.adt->name, variables);
  ExpectedTypes types(params, ref.constructor->fields, result, expected, signatures_.variances());
  types.state(c->type_args);
  if (opens_call()) {
    take();
    std::vector<Postponed> postponed;
    list(")", "after fields",
         [&] { c->fields.push_back(argument(&types, c->fields.size(), &postponed)); });
    for (const Postponed& later : postponed) c->fields.set(later.index, argument(&types, later));
  }
  if (!stated) c->type_args = types.type_args();
  if (c->type_args.empty() && !params.empty() && !stated &&
      c->fields.size() == ref.constructor->fields.size()) {
    fail_at(first,
            cat("nothing determines the type parameter", params.size() > 1 ? "s " : " ",
                tenon::join(names, ", "), " of ", name),
            cat("type arguments, as in ", name, "[i64]",
                ref.constructor->fields.empty() ? "" : "(...)"));
  }
  return c;
}

// match %x { Some(%y) => { %y } None => { 0 } }  match (%x, %y) { ... }
ExprRef Parser::match(const TypeRef& expected) {
  const Token first_token = take();
  std::vector<Token> arms;
  auto e = make<Match>();
  const bool of_tuple = peek().is("(") && !peek(1).is(")");
  e->value = of_tuple ? builder_.bind(tuple(nullptr)) : operand();
  bool whole = true;
  expect("{", "before the arms of match");
  while (!accept("}")) {
    enter();
    builder_.begin_block();
    arms.push_back(peek());
    e->patterns.push_back(pattern(type_of(e->value)));
    expect("=>", "between a pattern and its arm");
    const bool first = expected || e->arms.empty();
    e->arms.push_back(block("before an arm", first ? expected : type_of_arm(e->arms[0])));
    whole &= e->arms.back() != nullptr;
    leave();
    accept(",");
  }
  if (!whole) throw Lost{};
  at(first_token, [&] { require_arms(*e, arms); });
  return e;
}

// Throws the errors of inference that concern an arm at that arm's token.
void Parser::require_arms(const Match& match, const std::vector<Token>& arms) {
  try {
    decide(match, signatures_);
    TypeRef type;
    for (size_t i = 0; i < arms.size(); ++i) {
      type = join_arm(type, type_of_arm(match.arms[i]), i, signatures_.variances());
    }
  } catch (const ArmError& error) {
    throw Error(error).at(source_.span(arms[error.arm].begin));
  }
}

// A host's variables are words in lower case.
bool Parser::begins_variable() const {
  const Token& t = peek();
  if (t.kind == TokenKind::kVar) return true;
  return make_variable_ && t.kind == TokenKind::kWord && !starts_constant() &&
         !(t.text[0] >= 'A' && t.text[0] <= 'Z');
}

// Node(%left, 3, _)  (%x, None)  _   for a value of that type
PatternRef Parser::pattern(const TypeRef& type) {
  Nest nest(this, &block_depth_);
  const Token first = peek();
  at(first, [&] { require_bounded(type); });
  auto p = make<Pattern>();
  Array<TypeRef> parts;
  const auto fields = [&] {
    list(")", "after a pattern's fields", [&] {
      if (p->fields.size() == parts.size()) {
        fail_at(first, cat("the pattern has more than ", counted(parts.size(), "field")),
                cat("fields of ", to_text(type)));
      }
      p->fields.push_back(pattern(parts[p->fields.size()]));
    });
    if (p->fields.size() == parts.size()) return;
    std::string shape = p->constructor.empty() ? "" : p->constructor.str();
    shape += cat("(", tenon::join(std::vector<std::string>(parts.size(), "_"), ", "), ")");
    fail_at(first, cat("the pattern has ", counted(p->fields.size(), "field")),
            cat(counted(parts.size(), "field"), ", as in ", shape));
  };
  if (accept_word("_")) return p;
  if (begins_variable()) {
    take();
    p->kind = PatternKind::kVariable;
    if (make_variable_) {
      p->var = make_variable_(first.text, type);
    } else {
      p->var = builder_.block_var(first.text, type);
      declare(first, p->var);
    }
  } else if (first.is("(")) {
    parts = at(first, [&] { return tuple_parts(type); });
    take();
    p->kind = PatternKind::kTuple;
    fields();
  } else if (starts_constant()) {
    p->kind = PatternKind::kConstant;
    p->constant = constant_(type);
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

PatternRef Parser::whole_pattern(const TypeRef& type, const Signatures& signatures,
                                 const MakeVariable& variable) {
  signatures_ = signatures;
  make_variable_ = variable;
  return whole_shown("a pattern", [&] { return pattern(type); });
}

PatternRef parse_pattern(std::string_view text, const TypeRef& type, const Signatures& signatures,
                         const MakeVariable& variable) {
  return Parser(text, "pattern").whole_pattern(type, signatures, variable);
}

}  // namespace tenon::graph
