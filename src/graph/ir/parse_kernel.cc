// Kernels in module text. Shared parts of expressions have names (`$3 = ...`) before the statement
// that uses them first, so that a graph of nodes is read back as it was, and not as a tree.

#include <bit>
#include <cmath>

#include "graph/ir/kernel_words.h"
#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"
#include "loop/scalar.h"

namespace tenon::graph {

class KernelParser {
 public:
  explicit KernelParser(Parser* parser) : p_(*parser) {}

  loop::KernelRef kernel(std::string_view name) {
    auto k = make<loop::Kernel>();
    k->name = name;
    p_.expect("(", "before a kernel's inputs");
    p_.list(")", "after a kernel's inputs", [&] { k->inputs.push_back(buffer()); });
    p_.expect("->", "before a kernel's outputs");
    p_.expect("(", "before a kernel's outputs");
    p_.list(")", "after a kernel's outputs", [&] { k->outputs.push_back(buffer()); });
    if (p_.accept_word("integers")) {
      p_.expect("(", "after 'integers'");
      p_.list(")", "after symbols", [&] {
        bool is_string = p_.peek().kind == TokenKind::kString;
        k->integers.push_back(is_string ? p_.take().text : p_.expect_word("a symbol"));
      });
    }
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
        k->in_place.push_back(Array<int64_t>{out, in});
      });
    }
    k->body = block();
    return k;
  }

 private:
  Ref<const loop::Buffer> buffer() {
    Token name = p_.peek();
    p_.expect_kind(TokenKind::kVar, "a buffer");
    p_.expect(":", "between a buffer and its type");
    Token at = p_.peek();
    if (!p_.accept_word("tensor")) p_.fail("a buffer's type is missing", "tensor[n, 4; f32]");
    auto t = p_.tensor_type_();
    if (!t->dims_known || t->device != 0) {
      p_.fail_at(at, cat("a buffer can't be ", to_text(TypeRef(t))), "known sizes");
    }
    auto b = make<loop::Buffer>();
    b->name = name.text;
    b->dtype = t->dtype;
    b->shape = t->dims;
    declare(name, {b, {}});
    return b;
  }

  struct Named {  // one of the two
    Ref<const loop::Buffer> buffer;
    Ref<const loop::Var> var;
  };

  void declare(const Token& name, Named value) {
    if (!names_.emplace(name.text, std::move(value)).second) {
      p_.fail_at(name, cat("%", name_text(name.text), " is bound already"), "another name");
    }
  }

  Ref<const loop::Var> new_var(const Token& name, DataType dtype) {
    auto v = make<loop::Var>();
    v->dtype = dtype;
    v->name = name.text;
    declare(name, {{}, v});
    return v;
  }

  // ---- statements ----

  // What a block holds so far: statements, or a scope (let, scratch) that takes the rest.
  struct Part {
    loop::StmtRef stmt;
    Ref<loop::Let> let;
    Ref<loop::Alloc> alloc;
  };

  // Of statements from the last to the first.
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
    std::vector<std::string_view> outer_temps;
    outer_scope.swap(scope_);
    outer_temps.swap(temps_here_);
    std::vector<Part> parts;
    while (!p_.accept("}")) {
      if (std::optional<Part> part = statement()) parts.push_back(std::move(*part));
    }
    for (std::string_view name : scope_) names_.erase(name);
    scopes_open_ -= scope_.size();
    scope_.swap(outer_scope);
    for (std::string_view name : temps_here_) temps_.erase(name);
    temps_here_.swap(outer_temps);
    // From the back: each scope takes what follows it.
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
      p_.take();
      p_.expect("=", "after a part's name");
      if (!temps_.emplace(t.text, expr()).second) {
        p_.fail_at(t, cat("$", t.text, " is bound already"), "another number");
      }
      temps_here_.push_back(t.text);
      return std::nullopt;
    }
    if (t.kind == TokenKind::kVar) return Part{store(), {}, {}};
    if (t.kind != TokenKind::kWord) {
      p_.fail("a statement is missing",
              "for, parallel, vector, unrolled, if, let, scratch, a store");
    }
    if (auto kind = index_of(kLoopWords, t.text)) {
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
    p_.fail_at(t, cat("'", t.text, "' is no statement of a kernel"),
               "for, parallel, vector, unrolled, if, let, scratch, a store");
  }

  // for %i in 0 + n { ... }
  loop::StmtRef for_(loop::ForKind kind) {
    p_.take();
    auto s = make<loop::For>();
    s->loop = kind;
    Token name = p_.peek();
    p_.expect_kind(TokenKind::kVar, "a loop's variable");
    if (!p_.accept_word("from")) p_.fail("'from' is missing", "for %i from 0 count n { ... }");
    s->begin = expr_of(i64, "where the loop begins");
    if (!p_.accept_word("count")) p_.fail("'count' is missing", "for %i from 0 count n { ... }");
    s->extent = expr_of(i64, "the number of turns");
    s->var = new_var(name, i64);
    s->body = block();
    names_.erase(name.text);
    return s;
  }

  loop::StmtRef store() {
    Token name = p_.take();
    Ref<const loop::Buffer> b = find(name).buffer;
    if (!b) p_.fail_at(name, cat("%", name_text(name.text), " is no buffer"), "a buffer");
    auto s = make<loop::Store>();
    s->buffer = b;
    s->indices = indices(name, *b);
    p_.expect("=", "after what is stored to");
    s->value = expr_of(b->dtype, "what is stored");
    return s;
  }

  // ---- expressions ----

  const Named& find(const Token& name) {
    auto at = names_.find(name.text);
    if (at == names_.end()) {
      p_.fail_at(name, cat("unknown variable %", name_text(name.text)),
                 "a buffer or variable of this kernel");
    }
    return at->second;
  }

  Array<loop::ExprRef> indices(const Token& name, const loop::Buffer& b) {
    Array<loop::ExprRef> out;
    p_.expect("[", "after a buffer");
    p_.list("]", "after indices", [&] { out.push_back(expr_of(i64, "an index")); });
    if (out.size() != b.shape.size() && out.size() != 1) {
      p_.fail_at(name, cat("%", name_text(name.text), " has rank ", b.shape.size()),
                 cat(b.shape.size(), " indices, or one of elements"));
    }
    return out;
  }

  loop::ExprRef expr_of(DataType dtype, const char* what) {
    Token at = p_.peek();
    loop::ExprRef e = expr();
    if (e->dtype != dtype) {
      p_.fail_at(at, cat(what, " is ", short_name(e->dtype)), short_name(dtype));
    }
    return e;
  }

  // An operand, or two with a sign between them.
  loop::ExprRef expr() {
    Parser::Nest nest(&p_, &p_.value_depth_);
    loop::ExprRef a = term();
    const Token sign = p_.peek();
    if (sign.kind != TokenKind::kSign) return a;
    auto op = index_of(loop::binary_ops(), sign.text);
    if (!op) return a;
    p_.take();
    loop::ExprRef e = binary(sign, *op, a, term());
    const Token& more = p_.peek();
    if (more.kind == TokenKind::kSign && index_of(loop::binary_ops(), more.text)) {
      p_.fail("a second sign without parentheses", "(a + b) + c");
    }
    return e;
  }

  // What the operation takes, for an error.
  static const char* operands_of(const loop::ScalarOpInfo& op) {
    const bool bools = takes(op, boolean), ints = takes(op, i64), floats = takes(op, f64);
    if (bools) return ints ? "an integer or bool" : "bool";
    return !ints ? "a float" : floats ? "a number" : "an integer";
  }

  loop::ExprRef binary(const Token& at, uint8_t index, loop::ExprRef a, loop::ExprRef b) {
    auto op = static_cast<loop::BinaryOp>(index);
    if (a->dtype != b->dtype) {
      p_.fail_at(at, cat("operands of ", short_name(a->dtype), " and ", short_name(b->dtype)),
                 "one type");
    }
    if (!takes(info(op), a->dtype)) {
      p_.fail_at(at, cat(at.text, " of ", short_name(a->dtype)), operands_of(info(op)));
    }
    auto e = make<loop::Binary>();
    e->dtype = info(op).tests ? boolean : a->dtype;
    e->op = op;
    e->a = std::move(a);
    e->b = std::move(b);
    return e;
  }

  static loop::ExprRef literal(DataType dtype, int64_t bits) {
    auto l = make<loop::Literal>();
    l->dtype = dtype;
    l->bits = bits;
    return l;
  }

  // The number between the parentheses of a typed literal.
  int64_t literal_bits(DataType dtype) {
    Token at = p_.peek();
    if (dtype.is_float()) {
      double v = p_.float_value(p_.peek().word("nan") ? f64 : dtype);
      return loop::float_bits(std::isnan(v) || dtype == f64 ? v : loop::round_to(dtype, v));
    }
    int64_t v = p_.int_value("a literal");
    if (wrap_to(dtype, v) != v) p_.fail_at(at, cat(v, " doesn't fit ", short_name(dtype)));
    return v;
  }

  loop::ExprRef term() {
    const Token t = p_.peek();
    switch (t.kind) {
      case TokenKind::kInt:
        return literal(i64, p_.int_value("a number"));
      case TokenKind::kFloat:
        return literal(f32, literal_bits(f32));
      case TokenKind::kTemp: {
        auto at = temps_.find(t.text);
        if (at == temps_.end())
          p_.fail(cat("unknown part $", t.text), "a part that is named before");
        p_.take();
        return at->second;
      }
      case TokenKind::kVar: {
        p_.take();
        const Named& n = find(t);
        if (n.var) return n.var;
        auto l = make<loop::Load>();
        l->dtype = n.buffer->dtype;
        l->buffer = n.buffer;
        l->indices = indices(t, *l->buffer);
        return l;
      }
      case TokenKind::kSign:
        if (t.text == "-") {
          const Token& number = p_.peek(1);
          if (number.kind == TokenKind::kInt) return literal(i64, p_.int_value("a number"));
          return literal(f32, literal_bits(f32));
        }
        if (p_.accept("(")) {
          loop::ExprRef e = expr();
          p_.expect(")", "after an expression");
          return e;
        }
        break;
      case TokenKind::kWord:
        return word(t);
      default:
        break;
    }
    p_.fail("an expression is missing", "a number, %variable, %buffer[...], f(...) or (...)");
  }

  loop::ExprRef word(const Token& t) {
    p_.take();
    if (t.text == "true" || t.text == "false") return literal(boolean, t.text == "true");
    if (t.text == "inf") return literal(f32, loop::float_bits(INFINITY));
    if (t.text == "nan") {
      --p_.at_;
      return literal(f32, literal_bits(f32));
    }
    if (t.text == "dim") {
      p_.expect("(", "after 'dim'");
      auto e = make<loop::DimValue>();
      e->dtype = i64;
      e->dim = p_.dim();
      p_.expect(")", "after a size");
      return e;
    }
    p_.expect("(", "after a function's name");
    loop::ExprRef e = function(t);
    p_.expect(")", "after operands");
    return e;
  }

  void comma() { p_.expect(",", "between operands"); }

  loop::ExprRef function(const Token& t) {
    if (t.text == "cast") {
      auto e = make<loop::Cast>();
      e->dtype = p_.dtype();
      comma();
      e->a = expr();
      return e;
    }
    if (t.text == "select") {
      auto e = make<loop::Select>();
      e->condition = expr_of(boolean, "a condition");
      comma();
      e->if_true = expr();
      comma();
      e->if_false = expr_of(e->if_true->dtype, "the other side of select");
      e->dtype = e->if_true->dtype;
      return e;
    }
    if (t.text == "checked") {
      auto e = make<loop::CheckedIndex>();
      e->dtype = i64;
      e->index = expr_of(i64, "an index");
      comma();
      e->extent = p_.dim();
      return e;
    }
    if (auto op = index_of(loop::unary_ops(), t.text)) {
      auto e = make<loop::Unary>();
      e->op = static_cast<loop::UnaryOp>(*op);
      e->a = expr();
      DataType d = e->a->dtype;
      if (!takes(info(e->op), d)) {
        p_.fail_at(t, cat(t.text, " of ", short_name(d)), operands_of(info(e->op)));
      }
      e->dtype = info(e->op).tests ? boolean : d;
      return e;
    }
    if (auto op = index_of(loop::binary_ops(), t.text)) {
      loop::ExprRef a = expr();
      comma();
      return binary(t, *op, a, expr());
    }
    if (auto dtype = Parser::element_type(t)) return literal(*dtype, literal_bits(*dtype));
    p_.fail_at(t, cat("there is no function '", t.text, "' in kernels"),
               "exp, min, select, cast, checked, dim, i8(1), ...");
  }

  static constexpr size_t kMaxScopes =
      2000;  // each is a level of nesting to whoever walks a kernel

  Parser& p_;
  size_t scopes_open_ = 0;
  std::unordered_map<std::string_view, Named> names_;
  std::unordered_map<std::string_view, loop::ExprRef> temps_;
  std::vector<std::string_view> temps_here_;  // parts named in the block
  std::vector<std::string_view> scope_;       // what lets and scratches of the block declared
};

loop::KernelRef Parser::kernel(const Item& item) {
  at_ = item.at + 2;
  loop::KernelRef k = KernelParser(this).kernel(item.name);
  try {
    loop::check(*k);
  } catch (const Error& e) {
    // Its own words, as the user's mistake.
    Error mine(ErrorKind::Usage, source_.span(tokens_[item.at].begin),
               cat("kernel @", item.name, " breaks a rule"));
    for (const Error::Row& row : e.rows()) {
      if (row.label == "rule") mine.rule(row.text);
    }
    throw mine;
  }
  return k;
}

}  // namespace tenon::graph
