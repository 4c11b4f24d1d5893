#include "graph/ir/print_scalar.h"

#include "graph/ir/kernel_words.h"
#include "graph/ir/name_text.h"
#include "graph/ir/type.h"
#include "loop/scalar.h"
#include "loop/walk.h"

namespace tenon::graph {

using namespace loop;  // NOLINT: a printer of every node of it

namespace {

constexpr int kMaxDepth = 40;

bool is_leaf(const Expr& e) {
  return e.kind == ExprKind::kVar || e.kind == ExprKind::kLiteral;
}

std::string literal(const Literal& l) {
  if (l.dtype == boolean && (l.bits == 0 || l.bits == 1)) return l.bits ? "true" : "false";
  if (l.dtype == i64) return cat(l.bits);
  if (!l.dtype.is_float()) return cat(to_text(l.dtype), "(", l.bits, ")");
  double d = as_float(l.bits);
  float f = static_cast<float>(d);
  bool narrow = l.dtype != f64 && d == d;
  std::string number = narrow ? element_text(f32, &f) : float_text(d);
  return l.dtype == f32 ? number : cat(to_text(l.dtype), "(", number, ")");
}

}  // namespace

void ScalarPrinter::line(int indent, std::string_view text) {
  pad(indent);
  out_ += text;
  out_ += "\n";
}

// ---- names ----

std::string ScalarPrinter::unique(const Object* o, std::string_view wanted) {
  auto [at, is_new] = names_.try_emplace(o);
  if (is_new) {
    std::string base(wanted.empty() ? std::string_view("v") : wanted), name = base;
    while (!used_.insert(name).second) name = cat(base, "_", ++next_[base]);
    at->second = {name, "%" + name_text(name)};
  }
  return at->second.text;
}

std::string ScalarPrinter::buffer_type(const Buffer& b) {
  return graph::to_text(TypeRef(tensor_type(b.dtype, b.shape.to_vector())));
}

std::string ScalarPrinter::buffers(const Array<Ref<const Buffer>>& list) {
  std::string out;
  for (const auto& b : list) {
    out += cat(out.empty() ? "" : ", ", unique(b.get(), b->name), ": ", buffer_type(*b));
  }
  return out;
}

void ScalarPrinter::forget(const Object* o) {
  auto it = names_.find(o);
  if (it == names_.end()) return;
  used_.erase(it->second.plain);
  names_.erase(it);
}

std::string ScalarPrinter::integers(const Array<String>& names) {
  if (names.empty()) return "";
  std::string out;
  for (const String& name : names) {
    out += cat(out.empty() ? " integers(" : ", ", dim_text(Dim::symbol(name)));
  }
  return out + ")";
}

// ---- expressions ----

void ScalarPrinter::count_uses(const ExprRef& root, Seen* seen) {
  ++uses_[root.get()];
  post_order(
      root,
      [&](const ExprRef& n) {
        for (const ExprRef& o : operands(*n)) ++uses_[o.get()];
      },
      seen);
}

std::vector<const Expr*> ScalarPrinter::open_parts() {
  return std::exchange(named_here_, {});
}

void ScalarPrinter::close_parts(std::vector<const Expr*> outer) {
  for (const Expr* e : named_here_) temps_.erase(e);
  named_here_ = std::move(outer);
}

std::string ScalarPrinter::exprs(int indent, const Array<ExprRef>& list) {
  std::string out;
  for (const ExprRef& e : list) out += cat(out.empty() ? "" : ", ", expr(indent, e));
  return out;
}

std::string ScalarPrinter::expr(int indent, const ExprRef& root) {
  TENON_ASSERT(root, "a kernel with a null expression");
  std::unordered_map<const Expr*, Part> parts;
  post_order(root, [&](const ExprRef& e) {
    if (auto known = temps_.find(e.get()); known != temps_.end()) {
      parts[e.get()] = {known->second, true, 0};
      return;
    }
    // A node whose uses all lie in named parts is visited but not printed.
    Part p = part(*e, parts);
    bool shared = uses_[e.get()] > 1 && !is_leaf(*e);
    if (shared || (p.depth > kMaxDepth && e != root) || p.text.size() > 2000) {
      std::string name = cat("$", next_temp_++);
      line(indent, cat(name, " = ", p.text));
      temps_[e.get()] = name;
      named_here_.push_back(e.get());
      p = {name, true, 0};
    }
    parts[e.get()] = std::move(p);
  });
  return parts.at(root.get()).text;
}

ScalarPrinter::Part ScalarPrinter::part(const Expr& e,
                                        const std::unordered_map<const Expr*, Part>& parts) {
  Part p;
  for (const ExprRef& o : operands(e)) p.depth = std::max(p.depth, parts.at(o.get()).depth + 1);
  auto plain = [&](const ExprRef& o) { return parts.at(o.get()).text; };
  auto wrapped = [&](const ExprRef& o) {
    const Part& q = parts.at(o.get());
    return q.atom ? q.text : cat("(", q.text, ")");
  };
  switch (e.kind) {
    case ExprKind::kVar:
      p.text = unique(&e, static_cast<const loop::Var&>(e).name);
      break;
    case ExprKind::kLiteral:
      p.text = literal(static_cast<const Literal&>(e));
      break;
    case ExprKind::kDimValue:
      p.text = cat("dim(", dim_text(static_cast<const DimValue&>(e).dim), ")");
      break;
    case ExprKind::kLoad: {
      const auto& l = static_cast<const Load&>(e);
      std::string at;
      for (const ExprRef& i : l.indices) at += cat(at.empty() ? "" : ", ", plain(i));
      p.text = cat(unique(l.buffer.get(), l.buffer->name), "[", at, "]");
      break;
    }
    case ExprKind::kUnary: {
      const auto& u = static_cast<const Unary&>(e);
      p.text = cat(info(u.op).word, "(", plain(u.a), ")");
      break;
    }
    case ExprKind::kBinary: {
      const auto& b = static_cast<const Binary&>(e);
      std::string_view word = info(b.op).word;
      p.atom = !is_sign(word);
      p.text = p.atom ? cat(word, "(", plain(b.a), ", ", plain(b.b), ")")
                      : cat(wrapped(b.a), " ", word, " ", wrapped(b.b));
      break;
    }
    case ExprKind::kSelect: {
      const auto& s = static_cast<const Select&>(e);
      p.text =
          cat("select(", plain(s.condition), ", ", plain(s.if_true), ", ", plain(s.if_false), ")");
      break;
    }
    case ExprKind::kCast: {
      const auto& c = static_cast<const Cast&>(e);
      p.text = cat(c.keeps_bits ? "bit_cast(" : "cast(", to_text(e.dtype), ", ", plain(c.a), ")");
      break;
    }
    case ExprKind::kCheckedIndex: {
      const auto& c = static_cast<const CheckedIndex&>(e);
      p.text = cat("checked(", plain(c.index), ", ", dim_text(c.extent), ")");
      break;
    }
  }
  return p;
}

}  // namespace tenon::graph
