// Expressions, computes and kernels as text, for people, golden tests and error messages.
#include <charconv>
#include <unordered_map>

#include "loop/kernel.h"
#include "loop/scalar.h"
#include "loop/walk.h"
#include "support/text.h"

namespace tenon::loop {
namespace {

// The sign written before an operand; empty for operations written as a word.
std::string_view sign_of(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNeg:
      return "-";
    case UnaryOp::kNot:
      return "!";
    case UnaryOp::kBitNot:
      return "~";
    default:
      return {};
  }
}

std::string literal_text(const Literal& l) {
  if (l.dtype.is_bool()) return l.bits ? "true" : "false";
  if (l.dtype == i64) return cat(l.bits);
  if (l.dtype.is_float()) {
    double d = as_float(l.bits);
    std::string t = l.dtype == f64 ? cat(d) : cat(static_cast<float>(d));
    return l.dtype == f32 ? (t.find_first_of(".en") == std::string::npos ? t + ".0" : t)
                          : cat(t, ":", l.dtype);
  }
  return l.dtype == u64 ? cat(static_cast<uint64_t>(l.bits), ":", l.dtype)
                        : cat(l.bits, ":", l.dtype);
}

// Distinct names for variables and buffers: a shared name gets a number.
class Names {
 public:
  std::string of(const Object* o, std::string_view wanted) {
    auto [it, fresh] = names_.try_emplace(o);
    if (fresh) {
      int& n = used_[std::string(wanted)];
      it->second = n == 0 ? std::string(wanted) : cat(wanted, "_", n);
      ++n;
    }
    return it->second;
  }
  std::string of(const Var& v) { return of(&v, v.name.view()); }
  std::string of(const Buffer& b) { return of(&b, b.name.view()); }
  std::string temporary() { return cat("t", temporaries_++); }

 private:
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_map<std::string, int> used_;
  int temporaries_ = 0;
};

// An expression's text. Long shared parts and deeply nested parts are named first: pairs of name
// and text are appended to `named` in order.
std::string expr_text(const ExprRef& root, Names* names,
                      std::vector<std::pair<std::string, std::string>>* named) {
  std::unordered_map<const Expr*, int> uses;
  post_order(root, [&](const ExprRef& e) {
    for (const ExprRef& o : operands(*e)) ++uses[o.get()];
  });
  struct Part {
    std::string text;
    bool atom;  // needs no parentheses
    int depth;
  };
  std::unordered_map<const Expr*, Part> parts;
  auto wrapped = [&](const ExprRef& e) {
    const Part& p = parts.at(e.get());
    return p.atom ? p.text : cat("(", p.text, ")");
  };
  auto plain = [&](const ExprRef& e) { return parts.at(e.get()).text; };
  post_order(root, [&](const ExprRef& e) {
    Part p{"", true, 0};
    for (const ExprRef& o : operands(*e)) p.depth = std::max(p.depth, parts.at(o.get()).depth + 1);
    switch (e->kind) {
      case ExprKind::kVar:
        p.text = names->of(static_cast<const Var&>(*e));
        break;
      case ExprKind::kLiteral:
        p.text = literal_text(static_cast<const Literal&>(*e));
        break;
      case ExprKind::kDimValue: {
        p.text = to_text(static_cast<const DimValue&>(*e).dim);
        p.atom = p.text.find(' ') == std::string::npos || p.text.back() == ')';
        break;
      }
      case ExprKind::kLoad: {
        const auto& l = static_cast<const Load&>(*e);
        p.text = cat(names->of(*l.buffer), "[");
        for (size_t i = 0; i < l.indices.size(); ++i) {
          p.text += (i ? ", " : "") + plain(l.indices[i]);
        }
        p.text += "]";
        break;
      }
      case ExprKind::kUnary: {
        const auto& u = static_cast<const Unary&>(*e);
        const std::string_view sign = sign_of(u.op);
        p.text =
            sign.empty() ? cat(info(u.op).word, "(", plain(u.a), ")") : cat(sign, wrapped(u.a));
        break;
      }
      case ExprKind::kBinary: {
        const auto& b = static_cast<const Binary&>(*e);
        std::string_view name = info(b.op).word;
        if (name[0] >= 'a' && name[0] <= 'z') {
          p.text = cat(name, "(", plain(b.a), ", ", plain(b.b), ")");
        } else {
          p.text = cat(wrapped(b.a), " ", name, " ", wrapped(b.b));
          p.atom = false;
        }
        break;
      }
      case ExprKind::kSelect: {
        const auto& s = static_cast<const Select&>(*e);
        p.text = cat("select(", plain(s.condition), ", ", plain(s.if_true), ", ", plain(s.if_false),
                     ")");
        break;
      }
      case ExprKind::kCast: {
        const auto& c = static_cast<const Cast&>(*e);
        p.text = cat(c.keeps_bits ? "bits_as_" : "", e->dtype, "(", plain(c.a), ")");
        break;
      }
      case ExprKind::kCheckedIndex: {
        const auto& c = static_cast<const CheckedIndex&>(*e);
        p.text = cat("checked(", plain(c.index), " < ", to_text(c.extent), ")");
        break;
      }
    }
    bool shared = uses[e.get()] > 1 && p.text.size() > 12;
    if (e != root && (shared || p.depth > 24 || p.text.size() > 160)) {
      std::string name = names->temporary();
      named->emplace_back(name, std::move(p.text));
      p = {name, true, 0};
    }
    parts[e.get()] = std::move(p);
  });
  return parts.at(root.get()).text;
}

std::string type_text(const Buffer& b) {
  std::string sizes;
  for (size_t i = 0; i < b.shape.size(); ++i) sizes += (i ? ", " : "") + to_text(b.shape[i]);
  return tensor_type_text(sizes, b.dtype);
}

class Printer {
 public:
  std::string out;
  Names names;

  void line(int indent, std::string_view text) {
    out.append(static_cast<size_t>(indent) * 2, ' ');
    out += text;
    out += '\n';
  }

  std::string expr(int indent, const ExprRef& e) {
    if (!e) return "null";
    std::vector<std::pair<std::string, std::string>> named;
    std::string text = expr_text(e, &names, &named);
    for (const auto& [name, value] : named) line(indent, cat("where ", name, " = ", value));
    return text;
  }

  std::string list(int indent, const Array<ExprRef>& all) {
    std::string text;
    for (const ExprRef& e : all) text += (text.empty() ? "" : ", ") + expr(indent, e);
    return text;
  }

  std::string axes(const Array<Ref<const Var>>& vars, const Array<Dim>& extents) {
    std::string text;
    for (size_t i = 0; i < vars.size(); ++i) {
      text += cat(i ? ", " : "", names.of(*vars[i]), " < ",
                  i < extents.size() ? to_text(extents[i]) : "?");
    }
    return text;
  }

  void stage(const Stage& s) {
    std::string head = cat(names.of(*s.out), "[", axes(s.axes, s.out->shape), "]: ", s.out->dtype);
    std::string over = axes(s.reduce_axes, s.reduce_extents);
    std::string_view reduction = kReductionNames[static_cast<size_t>(s.reduction)];
    switch (s.kind) {
      case StageKind::kMap: {
        std::string body = expr(1, s.body);
        line(1, cat(head, " = ", body));
        return;
      }
      case StageKind::kScan: {
        std::string body = expr(1, s.body);
        line(1, cat(head, " = scan along ", s.scan_axis, " of ", body));
        return;
      }
      case StageKind::kReduce: {
        std::string body = expr(1, s.body);
        std::string in =
            s.accumulate.is_void() || s.accumulate == s.out->dtype ? "" : cat(" in ", s.accumulate);
        line(1, cat(head, " = ", reduction, in, " over ", over, " of ", body));
        return;
      }
      case StageKind::kScatter: {
        std::string body = expr(1, s.body);
        line(1, cat(head, " = ", body));
        std::string at = list(2, s.scatter_indices), update = expr(2, s.update);
        line(2, cat("then ", reduction, " at [", at, "] over ", over, " of ", update));
        return;
      }
    }
  }

  // Recurses as deep as the kernel's loops.
  void stmt(int indent, const StmtRef& s) {
    if (!s) return line(indent, "null");
    switch (s->kind) {
      case StmtKind::kSeq:
        for (const StmtRef& b : static_cast<const Seq&>(*s).body) stmt(indent, b);
        return;
      case StmtKind::kFor: {
        const auto& f = static_cast<const For&>(*s);
        const std::string_view kind = kForNames[static_cast<size_t>(f.loop)];
        std::string begin = expr(indent, f.begin), extent = expr(indent, f.extent);
        std::string range =
            begin == "0" ? cat("< ", extent) : cat("in ", begin, " + [0, ", extent, ")");
        line(indent, cat(kind, f.loop == ForKind::kSerial ? "" : " for", " ", names.of(*f.var), " ",
                         range, ":"));
        return stmt(indent + 1, f.body);
      }
      case StmtKind::kStore: {
        const auto& st = static_cast<const Store&>(*s);
        std::string at = list(indent, st.indices), value = expr(indent, st.value);
        return line(indent, cat(names.of(*st.buffer), "[", at, "] = ", value));
      }
      case StmtKind::kPrefetch: {
        const auto& fetched = static_cast<const Prefetch&>(*s);
        const std::string at = list(indent, fetched.indices);
        return line(indent, cat("prefetch ", names.of(*fetched.buffer), "[", at, "]"));
      }
      case StmtKind::kIf: {
        const auto& i = static_cast<const If&>(*s);
        std::string condition = expr(indent, i.condition);
        line(indent, cat("if ", condition, ":"));
        stmt(indent + 1, i.then_body);
        if (i.else_body) {
          line(indent, "else:");
          stmt(indent + 1, i.else_body);
        }
        return;
      }
      case StmtKind::kLet: {
        const auto& l = static_cast<const Let&>(*s);
        std::string value = expr(indent, l.value);
        line(indent, cat("let ", names.of(*l.var), " = ", value));
        return stmt(indent, l.body);
      }
      case StmtKind::kAlloc: {
        const auto& a = static_cast<const Alloc&>(*s);
        line(indent, cat("scratch ", names.of(*a.buffer), ": ", type_text(*a.buffer)));
        return stmt(indent, a.body);
      }
    }
  }

  std::string parameters(const Array<Ref<const Buffer>>& all) {
    std::string text;
    for (const auto& b : all) {
      text += cat(text.empty() ? "" : ", ", names.of(*b), ": ", type_text(*b));
    }
    return text;
  }
};

}  // namespace

std::string to_text(const ExprRef& e) {
  Names names;
  std::vector<std::pair<std::string, std::string>> named;
  std::string text = expr_text(e, &names, &named);
  for (size_t i = 0; i < named.size(); ++i) {
    text += cat(i ? ", " : " where ", named[i].first, " = ", named[i].second);
  }
  return text;
}

std::string to_text(const Compute& compute) {
  Printer p;
  std::string inputs = p.parameters(compute.inputs);
  std::string outputs;
  for (const auto& b : compute.outputs) {
    outputs += (outputs.empty() ? "" : ", ") + p.names.of(*b);
  }
  p.line(0, cat("compute(", inputs, ") -> ", outputs, ":"));
  for (const auto& s : compute.stages) p.stage(*s);
  return std::move(p.out);
}

std::string to_text(const Kernel& kernel) {
  Printer p;
  std::string inputs = p.parameters(kernel.inputs), outputs = p.parameters(kernel.outputs);
  std::string integers;
  for (const String& s : kernel.integers) integers += cat("; ", s);
  std::string head = cat("kernel ", kernel.name, "(", inputs, integers, ") -> ", outputs);
  for (const InPlace& pair : kernel.in_place) {
    head += cat(" in_place(", p.names.of(*kernel.outputs[static_cast<size_t>(pair.output())]),
                " = ", p.names.of(*kernel.inputs[static_cast<size_t>(pair.input())]), ")");
  }
  p.line(0, head + ":");
  p.stmt(1, kernel.body);
  return std::move(p.out);
}

}  // namespace tenon::loop
