#include "graph/ir/parse_scalar.h"

#include <bit>
#include <cmath>

#include "graph/ir/expected_text.h"
#include "graph/ir/kernel_words.h"
#include "graph/ir/name_text.h"
#include "loop/scalar.h"

namespace tenon::graph {
namespace {

// The operand types of an operation, for an error.
const char* operands_of(const loop::ScalarOpInfo& op) {
  const bool bools = takes(op, boolean), ints = takes(op, i64), floats = takes(op, f64);
  if (bools) return ints ? "an integer or bool" : "bool";
  return !ints ? "a float" : floats ? "a number" : "an integer";
}

loop::ExprRef literal(DataType dtype, int64_t bits) {
  auto l = make<loop::Literal>();
  l->dtype = dtype;
  l->bits = bits;
  return l;
}

}  // namespace

// ---- names ----

Ref<const loop::Buffer> ScalarParser::buffer() {
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

Array<Ref<const loop::Buffer>> ScalarParser::buffers(const char* what) {
  Array<Ref<const loop::Buffer>> all;
  p_.expect("(", what);
  p_.list(")", what, [&] { all.push_back(buffer()); });
  return all;
}

Array<String> ScalarParser::integers() {
  Array<String> all;
  if (!p_.accept_word("integers")) return all;
  p_.expect("(", "after 'integers'");
  p_.list(")", "after symbols", [&] {
    bool is_string = p_.peek().kind == TokenKind::kString;
    all.push_back(is_string ? p_.take().text : p_.expect_word("a symbol"));
  });
  return all;
}

void ScalarParser::declare(const Token& name, Named value) {
  if (!names_.emplace(name.text, std::move(value)).second) {
    p_.fail_at(name, cat("%", name_text(name.text), " is already bound"), "another name");
  }
}

Ref<const loop::Var> ScalarParser::new_var(const Token& name, DataType dtype) {
  auto v = make<loop::Var>();
  v->dtype = dtype;
  v->name = name.text;
  declare(name, {{}, v});
  return v;
}

void ScalarParser::part() {
  const Token t = p_.take();
  p_.expect("=", "after a part's name");
  if (!temps_.emplace(t.text, expr()).second) {
    p_.fail_at(t, cat("$", t.text, " is already bound"), "another number");
  }
  temps_here_.push_back(t.text);
}

std::vector<std::string_view> ScalarParser::open_parts() {
  return std::exchange(temps_here_, {});
}

void ScalarParser::close_parts(std::vector<std::string_view> outer) {
  for (std::string_view name : temps_here_) temps_.erase(name);
  temps_here_ = std::move(outer);
}

// ---- expressions ----

const ScalarParser::Named& ScalarParser::find(const Token& name) {
  auto at = names_.find(name.text);
  if (at == names_.end()) {
    p_.fail_at(name, cat("unknown variable %", name_text(name.text)),
               "a buffer or variable of this kernel");
  }
  return at->second;
}

Array<loop::ExprRef> ScalarParser::indices(const Token& name, const loop::Buffer& b) {
  Array<loop::ExprRef> out;
  p_.expect("[", "after a buffer");
  p_.list("]", "after indices", [&] { out.push_back(expr_of(i64, "an index")); });
  if (out.size() != b.shape.size() && out.size() != 1) {
    p_.fail_at(name, cat("%", name_text(name.text), " has rank ", b.shape.size()),
               cat(b.shape.size(), " indices, or one of elements"));
  }
  return out;
}

loop::ExprRef ScalarParser::expr_of(DataType dtype, const char* what) {
  Token at = p_.peek();
  loop::ExprRef e = expr();
  if (e->dtype != dtype) {
    p_.fail_at(at, cat(what, " is ", to_text(e->dtype)), to_text(dtype));
  }
  return e;
}

// An operand, or two with an infix operator between them.
loop::ExprRef ScalarParser::expr() {
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
    p_.fail("two operators without parentheses", "(a + b) + c");
  }
  return e;
}

loop::ExprRef ScalarParser::binary(const Token& at, uint8_t index, loop::ExprRef a,
                                   loop::ExprRef b) {
  auto op = static_cast<loop::BinaryOp>(index);
  if (a->dtype != b->dtype) {
    p_.fail_at(at, cat("operands of ", to_text(a->dtype), " and ", to_text(b->dtype)), "one type");
  }
  if (!takes(info(op), a->dtype)) {
    p_.fail_at(at, cat(at.text, " of ", to_text(a->dtype)), operands_of(info(op)));
  }
  auto e = make<loop::Binary>();
  e->dtype = info(op).tests ? boolean : a->dtype;
  e->op = op;
  e->a = std::move(a);
  e->b = std::move(b);
  return e;
}

// The number between the parentheses of a typed literal.
int64_t ScalarParser::literal_bits(DataType dtype) {
  Token at = p_.peek();
  if (dtype.is_float()) {
    double v = p_.float_value(p_.peek().word("nan") ? f64 : dtype);
    return loop::float_bits(std::isnan(v) || dtype == f64 ? v : loop::round_to(dtype, v));
  }
  int64_t v = p_.int_value("a literal");
  if (dtype.is_complex()) {
    if (v != 0) p_.fail_at(at, cat("a literal of ", to_text(dtype), " is not 0"), "0");
    return 0;
  }
  if (wrap_to(dtype, v) != v)
    p_.fail_at(at, cat(v, " doesn't fit ", to_text(dtype)), range_text(dtype));
  return v;
}

loop::ExprRef ScalarParser::term() {
  const Token t = p_.peek();
  switch (t.kind) {
    case TokenKind::kInt:
      return literal(i64, p_.int_value("a number"));
    case TokenKind::kFloat:
      return literal(f32, literal_bits(f32));
    case TokenKind::kTemp: {
      auto at = temps_.find(t.text);
      if (at == temps_.end()) p_.fail(cat("unknown part $", t.text), "a part that is named before");
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

loop::ExprRef ScalarParser::word(const Token& t) {
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

loop::ExprRef ScalarParser::function(const Token& t) {
  if (t.text == "cast" || t.text == "bit_cast") {
    auto e = make<loop::Cast>();
    e->keeps_bits = t.text == "bit_cast";
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
      p_.fail_at(t, cat(t.text, " of ", to_text(d)), operands_of(info(e->op)));
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

}  // namespace tenon::graph
