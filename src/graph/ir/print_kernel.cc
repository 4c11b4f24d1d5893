#include "graph/ir/print_kernel.h"

#include <unordered_map>
#include <unordered_set>

#include "graph/ir/kernel_words.h"
#include "graph/ir/name_text.h"
#include "graph/ir/type.h"
#include "loop/scalar.h"
#include "loop/walk.h"

namespace tenon::graph {

namespace {

using namespace loop;  // NOLINT: a printer of every node of it

class KernelPrinter {
 public:
  explicit KernelPrinter(std::string* out) : out_(*out) {}

  void kernel(const Kernel& k, std::string_view name) {
    count_uses(k.body);
    out_ +=
        cat("kernel @", name_text(name), "(", buffers(k.inputs), ") -> (", buffers(k.outputs), ")");
    if (!k.integers.empty()) {
      out_ += " integers(";
      for (size_t i = 0; i < k.integers.size(); ++i) {
        if (i) out_ += ", ";
        out_ += dim_text(Dim::symbol(k.integers[i]));
      }
      out_ += ")";
    }
    for (size_t i = 0; i < k.in_place.size(); ++i) {
      out_ += cat(i ? ", " : " in_place(", k.in_place[i][0], " = ", k.in_place[i][1]);
    }
    if (!k.in_place.empty()) out_ += ")";
    out_ += " ";
    block(0, k.body);
    out_ += "\n";
  }

 private:
  void line(int indent, std::string_view text) {
    out_.append(static_cast<size_t>(indent) * 2, ' ');
    out_ += text;
    out_ += "\n";
  }

  // ---- names ----

  std::string unique(const Object* o, std::string_view wanted) {
    auto [at, is_new] = names_.try_emplace(o);
    if (is_new) {
      std::string base(wanted.empty() ? std::string_view("v") : wanted), name = base;
      while (!used_.insert(name).second) name = cat(base, "_", ++next_[base]);
      at->second = "%" + name_text(name);
    }
    return at->second;
  }

  std::string buffer_type(const Buffer& b) {
    return graph::to_text(TypeRef(tensor_type(b.dtype, b.shape.to_vector())));
  }

  std::string buffers(const Array<Ref<const Buffer>>& list) {
    std::string out;
    for (const auto& b : list) {
      out += cat(out.empty() ? "" : ", ", unique(b.get(), b->name), ": ", buffer_type(*b));
    }
    return out;
  }

  // ---- statements ----

  static bool opens_scope(const StmtRef& s) {
    return s->kind == StmtKind::kLet || s->kind == StmtKind::kAlloc;
  }

  // A part's name holds until its block ends: a variable of another loop may look the same.
  void block(int indent, const StmtRef& s) {
    std::vector<const Expr*> outer;
    outer.swap(named_here_);
    out_ += "{\n";
    statements(indent + 1, s);
    for (const Expr* e : named_here_) temps_.erase(e);
    outer.swap(named_here_);
    out_.append(static_cast<size_t>(indent) * 2, ' ');
    out_ += "}";
  }

  // What a block is written as: a Seq by its statements, unless it has exactly one, which would
  // read as that statement alone. A scope that ends the block takes its body's lines behind it.
  void statements(int indent, StmtRef s) {
    while (true) {
      if (s->kind == StmtKind::kSeq) {
        const auto& body = static_cast<const Seq&>(*s).body;
        if (body.size() == 1) return statement(indent, s);
        for (size_t i = 0; i + 1 < body.size(); ++i) statement(indent, body[i]);
        if (body.empty()) return;
        StmtRef last = body.back();
        if (!opens_scope(last)) return statement(indent, last);
        s = last;
      } else if (opens_scope(s)) {
        scope_head(indent, *s);
        s = s->kind == StmtKind::kLet ? static_cast<const Let&>(*s).body
                                      : static_cast<const Alloc&>(*s).body;
      } else {
        return statement(indent, s);
      }
    }
  }

  void scope_head(int indent, const Stmt& s) {
    if (s.kind == StmtKind::kLet) {
      const auto& l = static_cast<const Let&>(s);
      std::string value = expr(indent, l.value);
      line(indent, cat("let ", unique(l.var.get(), l.var->name), " = ", value));
    } else {
      const Buffer& b = *static_cast<const Alloc&>(s).buffer;
      line(indent, cat("scratch ", unique(&b, b.name), ": ", buffer_type(b)));
    }
  }

  void statement(int indent, const StmtRef& s) {
    auto pad = [&] { out_.append(static_cast<size_t>(indent) * 2, ' '); };
    switch (s->kind) {
      case StmtKind::kSeq:
        pad();
        if (static_cast<const Seq&>(*s).body.size() == 1) {
          out_ += "seq ";
          block(indent, static_cast<const Seq&>(*s).body[0]);
        } else {
          block(indent, s);
        }
        out_ += "\n";
        return;
      case StmtKind::kLet:
      case StmtKind::kAlloc:
        pad();
        block(indent, s);
        out_ += "\n";
        return;
      case StmtKind::kFor: {
        const auto& f = static_cast<const For&>(*s);
        std::string begin = expr(indent, f.begin), extent = expr(indent, f.extent);
        pad();
        out_ += cat(kLoopWords[static_cast<size_t>(f.loop)], " ", unique(f.var.get(), f.var->name),
                    " from ", begin, " count ", extent, " ");
        block(indent, f.body);
        out_ += "\n";
        return;
      }
      case StmtKind::kStore: {
        const auto& st = static_cast<const Store&>(*s);
        std::string at;
        for (const ExprRef& i : st.indices) at += cat(at.empty() ? "" : ", ", expr(indent, i));
        std::string value = expr(indent, st.value);
        return line(indent, cat(unique(st.buffer.get(), st.buffer->name), "[", at, "] = ", value));
      }
      case StmtKind::kIf: {
        const auto& i = static_cast<const loop::If&>(*s);
        std::string condition = expr(indent, i.condition);
        pad();
        out_ += cat("if ", condition, " ");
        block(indent, i.then_body);
        if (i.else_body) {
          out_ += " else ";
          block(indent, i.else_body);
        }
        out_ += "\n";
        return;
      }
    }
  }

  // ---- expressions ----

  void count_uses(const StmtRef& root) {
    Seen seen;
    for_each_stmt(root, [&](const StmtRef& s) {
      for (const ExprRef& e : direct_exprs(*s)) {
        if (!e) continue;
        ++uses_[e.get()];
        post_order(
            e,
            [&](const ExprRef& n) {
              for (const ExprRef& o : operands(*n)) ++uses_[o.get()];
            },
            &seen);
      }
    });
  }

  static bool is_leaf(const Expr& e) {
    return e.kind == ExprKind::kVar || e.kind == ExprKind::kLiteral;
  }

  // The text, after lines that name the parts which are shared or nested deep.
  std::string expr(int indent, const ExprRef& root) {
    TENON_ASSERT(root, "a kernel with a null expression");
    std::unordered_map<const Expr*, Part> parts;
    post_order(root, [&](const ExprRef& e) {
      if (auto known = temps_.find(e.get()); known != temps_.end()) {
        parts[e.get()] = {known->second, true, 0};
        return;
      }
      // A node all of whose uses lie in named parts is visited but not printed.
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

  struct Part {
    std::string text;
    bool atom = true;  // needs no parentheses
    int depth = 0;
  };

  Part part(const Expr& e, const std::unordered_map<const Expr*, Part>& parts) {
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
        p.text = cat("select(", plain(s.condition), ", ", plain(s.if_true), ", ", plain(s.if_false),
                     ")");
        break;
      }
      case ExprKind::kCast:
        p.text = cat("cast(", short_name(e.dtype), ", ", plain(static_cast<const Cast&>(e).a), ")");
        break;
      case ExprKind::kCheckedIndex: {
        const auto& c = static_cast<const CheckedIndex&>(e);
        p.text = cat("checked(", plain(c.index), ", ", dim_text(c.extent), ")");
        break;
      }
    }
    return p;
  }

  static std::string literal(const Literal& l) {
    if (l.dtype == boolean && (l.bits == 0 || l.bits == 1)) return l.bits ? "true" : "false";
    if (l.dtype == i64) return cat(l.bits);
    if (!l.dtype.is_float()) return cat(short_name(l.dtype), "(", l.bits, ")");
    double d = as_float(l.bits);
    float f = static_cast<float>(d);
    bool narrow = l.dtype != f64 && d == d;
    std::string number = narrow ? element_text(f32, &f) : float_text(d);
    return l.dtype == f32 ? number : cat(short_name(l.dtype), "(", number, ")");
  }

  static constexpr int kMaxDepth = 40;

  std::string& out_;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int64_t> next_;
  std::unordered_map<const Expr*, int> uses_;
  std::unordered_map<const Expr*, std::string> temps_;
  std::vector<const Expr*> named_here_;
  int64_t next_temp_ = 0;
};

}  // namespace

void print_kernel(const loop::Kernel& kernel, std::string_view name, std::string* out) {
  KernelPrinter(out).kernel(kernel, name);
}

}  // namespace tenon::graph
