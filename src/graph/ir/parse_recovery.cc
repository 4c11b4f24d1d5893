// Errors of the parser, and how it goes on after one.
//
// An error leaves the statement or item that has it. What depends on it, such as a use of a
// variable that it would have bound, is left too, without a second error. Parsing goes on at the
// next line that begins a statement of the same block, or at the next item.

#include <algorithm>

#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"
#include "graph/ir/text.h"

namespace tenon::graph {

// ---- errors ----

namespace {

std::string token_text(const Token& t) {
  switch (t.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kVar:
      return "%" + name_text(t.text);
    case TokenKind::kGlobal:
      return "@" + name_text(t.text);
    case TokenKind::kTemp:
      return cat("$", t.text);
    case TokenKind::kString:
      return quoted(t.text.substr(0, 40));
    default:
      return cat("'", t.text.substr(0, 60), "'");
  }
}

}  // namespace

Error Parser::error_at(const Token& token, const std::string& message,
                       const std::string& expected) const {
  Error e(ErrorKind::Usage, source_.span(token.begin), message);
  e.found(token_text(token));
  if (!expected.empty()) e.expected(expected);
  return e;
}

void Parser::fail_at(const Token& token, const std::string& message,
                     const std::string& expected) const {
  throw error_at(token, message, expected);
}

void Parser::fail(const std::string& message, const std::string& expected) const {
  fail_at(peek(), message, expected);
}

void Parser::show(Error* error) const {
  if (!tokens_.empty()) error->at(here());
  const Span& span = error->span();
  // The parser of an imported file of the same name has shown it: the root, which imports itself.
  const bool shown =
      std::ranges::find(error->rows(), cat(span.line), &Error::Row::label) != error->rows().end();
  if (span.file == source_.name() && !shown) show_line(error, source_.text(), span);
}

void Parser::skip_argument() {
  for (int open = 0; peek().kind != TokenKind::kEnd; take()) {
    const Token& t = peek();
    const bool closes = t.is(")") || t.is("]") || t.is("}");
    if (open == 0 && (closes || t.is(","))) return;
    open += t.is("(") || t.is("[") || t.is("{") ? 1 : closes ? -1 : 0;
  }
}

void Parser::record(Error error) {
  // Errors without a location get that of the current binding.
  if (!builder_.span().empty()) error.at(builder_.span());
  if (error.kind() != ErrorKind::Usage) throw error;
  show(&error);
  errors_.push_back(std::move(error));
  if (errors_.size() == kMaxErrors) throw Enough{};
}

void Parser::throw_recorded() {
  if (errors_.empty()) return;
  std::ranges::stable_sort(
      errors_, {}, [](const Error& e) { return std::pair(e.span().line, e.span().column); });
  Error all = errors_[0];
  for (size_t i = 1; i < errors_.size(); ++i) all.also(errors_[i]);
  if (errors_.size() == kMaxErrors) {
    all.also(Error(ErrorKind::Usage, cat(source_.name(), " has more errors than are listed here")));
  }
  throw all;
}

// ---- hints ----

std::string Parser::text_of(size_t from, size_t to) const {
  const size_t begin = tokens_[from].begin;
  std::string_view text = source_.text().substr(begin, tokens_[to].begin - begin);
  return std::string(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
}

void Parser::refuse_infix(size_t left, bool nested) const {
  const Token& sign = peek();
  if (sign.kind != TokenKind::kSign) return;
  const Operator* op = OperatorTable::global().find_sign(sign.text);
  if (!op) return;
  // The right operand: a token, or a number and its sign.
  const size_t right = at_ + 1;
  const bool negative = tokens_[std::min(right, tokens_.size() - 1)].is("-");
  const size_t end = right + (negative ? 2 : 1);
  Error e = error_at(sign, cat("there is no infix operator '", sign.text, "'"));
  if (end < tokens_.size()) {
    std::string b = text_of(right, end);
    b.resize(std::min(b.find_first_of(" \t\r\n"), b.size()));  // a comment may follow it
    e.expected(cat(op->name, "(", text_of(left, at_), ", ", b, ")"));
  } else {
    e.expected(cat(op->name, "(...)"));
  }
  if (nested) e.help("bind the call to a variable first");
  throw e;
}

void Parser::skip_semicolons() {
  for (; peek().is(";"); take()) {
    if (std::exchange(semicolon_reported_, true)) continue;
    record(error_at(peek(), "a ';' after a statement", "no sign: a line break is enough")
               .help("remove it, and those that follow"));
  }
}

// ---- recovery ----

bool Parser::begins_line(size_t token) const {
  const std::string_view before = source_.text().substr(0, tokens_[token].begin);
  const size_t last = before.find_last_not_of(" \t\r");
  return last == std::string_view::npos || before[last] == '\n';
}

bool Parser::begins_item(size_t token) const {
  const auto at = [&](size_t i) -> const Token& {
    return tokens_[std::min(token + i, tokens_.size() - 1)];
  };
  if (!begins_line(token)) return false;
  if (at(0).word("type")) return at(1).kind == TokenKind::kWord;
  if (at(1).kind != TokenKind::kGlobal) return false;
  // A call of a kernel also begins with `kernel @name(`.
  return at(0).word("fn") || at(0).word("compute") ||
         (at(0).word("kernel") && (at(3).is(")") || at(4).is(":")));
}

void Parser::skip_to_item() {
  do take();
  while (peek().kind != TokenKind::kEnd && !begins_item(at_));
}

void Parser::skip_statement(size_t start, int64_t braces) {
  int64_t parentheses = 0;  // open ones of the statement
  auto pass = [&](const Token& t) {
    if (t.is("(") || t.is("[")) ++parentheses;
    if (t.is(")") || t.is("]")) --parentheses;
    if (t.kind == TokenKind::kVar && !names_.known.contains(t.text)) names_.lost.insert(t.text);
  };
  auto begins_statement = [&] {
    const Token &t = peek(), &next = peek(1);
    if (braces_ != braces || at_ == start || !begins_line(at_)) return false;
    // A line that binds a variable begins a statement, even if a parenthesis is missing before it.
    if (t.word("check") || (t.kind == TokenKind::kVar && next.is("="))) return true;
    if (parentheses > 0 || t.kind == TokenKind::kSign) return false;
    return !t.word("at") && !t.word("else") && !t.word("while");
  };
  for (size_t i = start; i < at_; ++i) pass(tokens_[i]);
  while (peek().kind != TokenKind::kEnd && !begins_statement()) {
    if (peek().is("}") && braces_ == braces) return;
    pass(take());
  }
}

}  // namespace tenon::graph
