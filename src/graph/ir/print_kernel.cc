#include "graph/ir/print_kernel.h"

#include "graph/ir/kernel_words.h"
#include "graph/ir/name_text.h"
#include "graph/ir/print_scalar.h"
#include "loop/walk.h"

namespace tenon::graph {

namespace {

using namespace loop;  // NOLINT: a printer of every node of it

class KernelPrinter : ScalarPrinter {
 public:
  explicit KernelPrinter(std::string* out) : ScalarPrinter(out) {}

  void kernel(const Kernel& k, std::string_view name) {
    count_uses(k.body);
    out_ +=
        cat("kernel @", name_text(name), "(", buffers(k.inputs), ") -> (", buffers(k.outputs), ")");
    out_ += integers(k.integers);
    for (size_t i = 0; i < k.in_place.size(); ++i) {
      out_ += cat(i ? ", " : " in_place(", k.in_place[i].output(), " = ", k.in_place[i].input());
    }
    if (!k.in_place.empty()) out_ += ")";
    out_ += " ";
    block(0, k.body);
    out_ += "\n";
  }

 private:
  // ---- statements ----

  static bool opens_scope(const StmtRef& s) {
    return s->kind == StmtKind::kLet || s->kind == StmtKind::kAlloc;
  }

  void block(int indent, const StmtRef& s) {
    std::vector<const Expr*> outer = open_parts();
    out_ += "{\n";
    statements(indent + 1, s);
    close_parts(std::move(outer));
    pad(indent);
    out_ += "}";
  }

  // Prints the statements of a block. A Seq is printed as its statements, unless it has exactly
  // one, which would read back as that statement. The body of a scope at the end of the block
  // follows it.
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
    switch (s->kind) {
      case StmtKind::kSeq:
        pad(indent);
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
        pad(indent);
        block(indent, s);
        out_ += "\n";
        return;
      case StmtKind::kFor: {
        const auto& f = static_cast<const For&>(*s);
        std::string begin = expr(indent, f.begin), extent = expr(indent, f.extent);
        pad(indent);
        out_ += cat(kForNames[static_cast<size_t>(f.loop)], " ", unique(f.var.get(), f.var->name),
                    " from ", begin, " count ", extent, " ");
        block(indent, f.body);
        out_ += "\n";
        return;
      }
      case StmtKind::kStore: {
        const auto& st = static_cast<const Store&>(*s);
        std::string at = exprs(indent, st.indices), value = expr(indent, st.value);
        return line(indent, cat(unique(st.buffer.get(), st.buffer->name), "[", at, "] = ", value));
      }
      case StmtKind::kPrefetch: {
        const auto& fetched = static_cast<const loop::Prefetch&>(*s);
        const std::string at = exprs(indent, fetched.indices);
        return line(indent, cat("prefetch ", unique(fetched.buffer.get(), fetched.buffer->name),
                                "[", at, "]"));
      }
      case StmtKind::kIf: {
        const auto& i = static_cast<const loop::If&>(*s);
        std::string condition = expr(indent, i.condition);
        pad(indent);
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

  void count_uses(const StmtRef& root) {
    Seen seen;
    for_each_stmt(root, [&](const StmtRef& s) {
      for (const ExprRef& e : direct_exprs(*s)) {
        if (e) ScalarPrinter::count_uses(e, &seen);
      }
    });
  }
};

}  // namespace

void print_kernel(const KernelInterfaceRef& kernel, std::string_view name, std::string* out) {
  if (auto* compute = kernel.as<Compute>()) return print_compute(*compute, name, out);
  if (auto* repeated = kernel.as<Recurrence>()) return print_recurrence(*repeated, name, out);
  KernelPrinter(out).kernel(*kernel.as<Kernel>(), name);
}

}  // namespace tenon::graph
