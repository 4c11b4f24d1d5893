// Parses loop nests in module text.
#include <tuple>

#include "graph/ir/check.h"
#include "graph/ir/kernel_words.h"
#include "graph/ir/name_text.h"
#include "graph/ir/parse_scalar.h"

namespace tenon::graph {

namespace {
std::string statements() {
  const std::vector<std::string> loops(std::begin(loop::kForNames), std::end(loop::kForNames));
  return cat(tenon::join(loops, ", "), ", if, let, scratch, prefetch, a store");
}
}  // namespace

class KernelParser : ScalarParser {
 public:
  explicit KernelParser(Parser* parser) : ScalarParser(parser) {}

  loop::KernelRef kernel(std::string_view name) {
    auto k = make<loop::Kernel>();
    k->name = name;
    k->inputs = buffers("around a kernel's inputs");
    p_.expect("->", "before a kernel's outputs");
    k->outputs = buffers("around a kernel's outputs");
    k->integers = integers();
    if (p_.accept_word("in_place")) {
      p_.expect("(", "after 'in_place'");
      p_.list(")", "after pairs", [&] {
        Token at = p_.peek();
        int64_t out = p_.int_value("an output's number");
        p_.expect("=", "between an output and an input");
        int64_t in = p_.int_value("an input's number");
        if (out < 0 || out >= static_cast<int64_t>(k->outputs.size()) || in < 0 ||
            in >= static_cast<int64_t>(k->inputs.size())) {
          p_.fail_at(at, "there is no such output or input");
        }
        k->in_place.push_back({out, in});
      });
    }
    k->body = block();
    return k;
  }

 private:
  // ---- statements ----

  // A part of a block: a statement, or a scope (let, scratch) that contains the rest of the block.
  struct Part {
    loop::StmtRef stmt;
    Ref<loop::Let> let;
    Ref<loop::Alloc> alloc;
  };

  // Makes one statement of several, given from last to first.
  static loop::StmtRef as_stmt(const std::vector<loop::StmtRef>& reversed) {
    if (reversed.size() == 1) return reversed[0];
    auto s = make<loop::Seq>();
    s->body = Array<loop::StmtRef>(reversed.rbegin(), reversed.rend());
    return s;
  }

  loop::StmtRef block() {
    Parser::Nest nest(&p_, &p_.block_depth_);
    p_.expect("{", "before statements");
    std::vector<std::string_view> outer_scope;
    outer_scope.swap(scope_);
    std::vector<std::string_view> outer_parts = open_parts();
    std::vector<Part> parts;
    while (!p_.accept("}")) {
      if (std::optional<Part> part = statement()) parts.push_back(std::move(*part));
    }
    for (std::string_view name : scope_) forget(name);
    scopes_open_ -= scope_.size();
    scope_.swap(outer_scope);
    close_parts(std::move(outer_parts));
    // From back to front: each scope contains what follows it.
    std::vector<loop::StmtRef> rest;
    for (size_t i = parts.size(); i-- > 0;) {
      Part& part = parts[i];
      if (part.stmt) {
        rest.push_back(std::move(part.stmt));
        continue;
      }
      loop::StmtRef body = as_stmt(rest);
      if (part.let) {
        part.let->body = body;
        rest = {part.let};
      } else {
        part.alloc->body = body;
        rest = {part.alloc};
      }
    }
    return as_stmt(rest);
  }

  std::optional<Part> statement() {
    const Token t = p_.peek();
    if (t.is("{")) return Part{block(), {}, {}};
    if (t.kind == TokenKind::kTemp) {
      part();
      return std::nullopt;
    }
    if (t.kind == TokenKind::kVar) return Part{store(), {}, {}};
    if (t.kind != TokenKind::kWord) {
      p_.fail("a statement is missing", statements());
    }
    if (auto kind = index_of(loop::kForNames, t.text)) {
      return Part{for_(static_cast<loop::ForKind>(*kind)), {}, {}};
    }
    p_.take();
    if ((t.text == "let" || t.text == "scratch") && ++scopes_open_ > kMaxScopes) {
      p_.fail_at(t, "too many lets and scratches are open", cat("at most ", kMaxScopes));
    }
    if (t.text == "seq") {
      auto s = make<loop::Seq>();
      s->body = {block()};
      return Part{s, {}, {}};
    }
    if (t.text == "prefetch") {
      auto s = make<loop::Prefetch>();
      std::tie(s->buffer, s->indices) = element();
      return Part{s, {}, {}};
    }
    if (t.text == "if") {
      auto s = make<loop::If>();
      s->condition = expr_of(boolean, "a condition");
      s->then_body = block();
      if (p_.accept_word("else")) s->else_body = block();
      return Part{s, {}, {}};
    }
    if (t.text == "let") {
      Token name = p_.peek();
      p_.expect_kind(TokenKind::kVar, "a variable");
      p_.expect("=", "after a variable");
      auto s = make<loop::Let>();
      s->value = expr();
      s->var = new_var(name, s->value->dtype);
      scope_.push_back(name.text);
      return Part{{}, s, {}};
    }
    if (t.text == "scratch") {
      auto s = make<loop::Alloc>();
      scope_.push_back(p_.peek().text);
      s->buffer = buffer();
      return Part{{}, {}, s};
    }
    p_.fail_at(t, cat("'", t.text, "' is not a statement of a kernel"), statements());
  }

  // for %i from 0 count n { ... }
  loop::StmtRef for_(loop::ForKind kind) {
    p_.take();
    auto s = make<loop::For>();
    s->loop = kind;
    Token name = p_.peek();
    p_.expect_kind(TokenKind::kVar, "a loop's variable");
    if (!p_.accept_word("from")) p_.fail("'from' is missing", "for %i from 0 count n { ... }");
    s->begin = expr_of(i64, "where the loop begins");
    if (!p_.accept_word("count")) p_.fail("'count' is missing", "for %i from 0 count n { ... }");
    s->extent = expr_of(i64, "the number of iterations");
    s->var = new_var(name, i64);
    s->body = block();
    forget(name.text);
    return s;
  }

  loop::StmtRef store() {
    auto s = make<loop::Store>();
    std::tie(s->buffer, s->indices) = element();
    p_.expect("=", "after what is stored to");
    s->value = expr_of(s->buffer->dtype, "what is stored");
    return s;
  }

  // %buffer[...]
  std::pair<Ref<const loop::Buffer>, Array<loop::ExprRef>> element() {
    Token name = p_.take();
    Ref<const loop::Buffer> b = find(name).buffer;
    if (!b) p_.fail_at(name, cat("%", name_text(name.text), " is not a buffer"), "a buffer");
    Array<loop::ExprRef> at = indices(name, *b);
    return {std::move(b), std::move(at)};
  }

  static constexpr size_t kMaxScopes = 2000;  // each is a level of nesting in the kernel

  size_t scopes_open_ = 0;
  std::vector<std::string_view> scope_;  // names that lets and scratches of the block declared
};

loop::KernelInterfaceRef Parser::kernel(const Item& item) {
  at_ = item.at + 2;
  loop::KernelRef k = KernelParser(this).kernel(item.name);
  try {
    loop::check(*k);
  } catch (const Error& e) {
    breaks_rule(item, e);
  }
  return k;
}

void Parser::breaks_rule(const Item& item, const Error& error) const {
  throw broken_kernel(cat(item.kind, " @", item.name), source_.span(tokens_[item.at].begin), error);
}

}  // namespace tenon::graph
