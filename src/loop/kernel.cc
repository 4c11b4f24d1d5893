#include "loop/kernel.h"

#include <set>
#include <unordered_set>

#include "loop/broken_rule.h"
#include "loop/symbol_set.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {

bool is_empty(const StmtRef& s) {
  return !s || (s->kind == StmtKind::kSeq && static_cast<const Seq&>(*s).body.empty());
}

StmtRef seq(std::vector<StmtRef> body) {
  std::vector<StmtRef> flat;
  for (StmtRef& s : body) {
    if (is_empty(s)) continue;
    if (s->kind == StmtKind::kSeq) {
      const auto& inner = static_cast<const Seq&>(*s).body;
      flat.insert(flat.end(), inner.begin(), inner.end());
    } else {
      flat.push_back(std::move(s));
    }
  }
  if (flat.size() == 1) return flat[0];
  auto s = make<Seq>();
  s->body = Array<StmtRef>(flat);
  return s;
}

StmtRef for_loop(const Ref<const Var>& v, const ExprRef& begin, const ExprRef& extent, ForKind loop,
                 const StmtRef& body) {
  auto n = as_int(extent);
  if (is_empty(body) || (n && *n <= 0)) return seq({});
  const bool is_let = loop != ForKind::kVector && loop != ForKind::kMatrix;
  if (n && *n == 1 && is_let) return let(v, begin, body);
  auto s = make<For>();
  s->var = v;
  s->begin = begin;
  s->extent = extent;
  s->loop = loop;
  s->body = body;
  return s;
}

StmtRef store(const Ref<const Buffer>& buffer, Array<ExprRef> indices, const ExprRef& value) {
  TENON_ASSERT(value->dtype == buffer->dtype, "store of ", value->dtype, " into ", buffer->name,
               " of ", buffer->dtype);
  TENON_ASSERT(indices.size() == buffer->shape.size() || indices.size() == 1, "store into ",
               buffer->name, " with ", indices.size(), " indices");
  auto s = make<Store>();
  s->buffer = buffer;
  s->indices = std::move(indices);
  s->value = value;
  return s;
}

StmtRef prefetch(const Ref<const Buffer>& buffer, Array<ExprRef> indices) {
  TENON_ASSERT(indices.size() == buffer->shape.size() || indices.size() == 1, "prefetch of ",
               buffer->name, " with ", indices.size(), " indices");
  auto s = make<Prefetch>();
  s->buffer = buffer;
  s->indices = std::move(indices);
  return s;
}

StmtRef if_then(const ExprRef& condition, const StmtRef& then_body, const StmtRef& else_body) {
  if (auto c = as_int(condition)) return *c ? then_body : seq({else_body});
  if (is_empty(then_body)) {
    if (is_empty(else_body)) return seq({});
    return if_then(unary(UnaryOp::kNot, condition), else_body);
  }
  auto s = make<If>();
  s->condition = condition;
  s->then_body = then_body;
  if (!is_empty(else_body)) s->else_body = else_body;
  return s;
}

StmtRef let(const Ref<const Var>& v, const ExprRef& value, const StmtRef& body) {
  TENON_ASSERT(v->dtype == value->dtype, "variable ", v->name, " of ", v->dtype, " is bound to ",
               value->dtype);
  if (is_empty(body)) return seq({});
  auto s = make<Let>();
  s->var = v;
  s->value = value;
  s->body = body;
  return s;
}

StmtRef alloc(const Ref<const Buffer>& buffer, const StmtRef& body) {
  if (is_empty(body)) return seq({});
  auto s = make<Alloc>();
  s->buffer = buffer;
  s->body = body;
  return s;
}

KernelRef renamed(const Kernel& kernel, std::string_view name) {
  auto k = make<Kernel>(kernel);
  k->name = String(name);
  return k;
}

namespace {

struct Checker {
  const Kernel& kernel;
  std::unordered_set<const Buffer*> readable, writable;
  std::unordered_set<const Var*> vars;
  std::set<std::string, std::less<>> symbols;  // bound by parameters and integers

  void require(bool holds, std::string_view rule) {
    if (holds) return;
    throw Error(ErrorKind::Internal, cat("kernel ", kernel.name, " is malformed"))
        .rule(std::string(rule))
        .found(to_text(kernel));
  }

  void expr(const ExprRef& root) {
    require(static_cast<bool>(root), "an expression isn't null");
    post_order(root, [&](const ExprRef& e) {
      const std::string_view broken = broken_rule(*e);
      require(broken.empty(), broken);
      if (e->kind == ExprKind::kVar) {
        require(vars.contains(static_cast<const Var*>(e.get())),
                cat("variable ", static_cast<const Var&>(*e).name, " is in scope"));
      } else if (e->kind == ExprKind::kDimValue) {
        size(static_cast<const DimValue&>(*e).dim);
      } else if (e->kind == ExprKind::kCheckedIndex) {
        size(static_cast<const CheckedIndex&>(*e).extent);
      } else if (e->kind == ExprKind::kLoad) {
        const auto& l = static_cast<const Load&>(*e);
        require(readable.contains(l.buffer.get()),
                cat("buffer ", l.buffer->name, " is in scope where it is read"));
        access(l.buffer, l.indices);
      }
    });
  }

  void size(const Dim& d) {
    SymbolSet names;
    collect_symbols(d, &names);
    for (const std::string& name : names) {
      require(symbols.contains(name),
              cat("a symbol is a parameter's dimension or an integer: ", name));
    }
  }

  void sizes(const Buffer& b) {
    for (const Dim& d : b.shape) {
      size(d);
      require(may_be_size(d), cat("a size of ", b.name, " isn't negative"));
    }
  }

  void access(const Ref<const Buffer>& b, const Array<ExprRef>& indices) {
    require(indices.size() == b->shape.size() || indices.size() == 1,
            cat("buffer ", b->name, " is indexed by dimension or by one offset"));
  }

  void bind(const Ref<const Var>& v) {
    require(static_cast<bool>(v) && vars.insert(v.get()).second,
            cat("a variable is bound once at a time: ", v->name));
  }

  // Statements nest as deep as a kernel's loops, which schedules limit.
  void stmt(const StmtRef& s, bool in_task, bool in_vector) {
    require(static_cast<bool>(s), "a statement isn't null");
    for (const ExprRef& e : direct_exprs(*s)) expr(e);
    switch (s->kind) {
      case StmtKind::kFor: {
        const auto& f = static_cast<const For&>(*s);
        require(f.var->dtype == i64 && f.begin->dtype == i64 && f.extent->dtype == i64,
                "loops count in i64");
        const bool constant = f.loop != ForKind::kSerial && f.loop != ForKind::kParallel;
        require(!constant || as_int(f.extent),
                "vector, unrolled and matrix loops have constant extents");
        require(f.loop != ForKind::kParallel || !in_task,
                "a parallel loop is in no loops but serial ones");
        require(!in_vector || f.loop == ForKind::kUnrolled,
                "a vector loop contains only unrolled loops");
        bind(f.var);
        stmt(f.body, in_task || f.loop != ForKind::kSerial,
             in_vector || f.loop == ForKind::kVector);
        vars.erase(f.var.get());
        return;
      }
      case StmtKind::kStore: {
        const auto& st = static_cast<const Store&>(*s);
        require(writable.contains(st.buffer.get()),
                cat("buffer ", st.buffer->name, " is an output or scratch in scope"));
        require(st.value->dtype == st.buffer->dtype, "a stored value has the buffer's dtype");
        for (const ExprRef& i : st.indices) require(i->dtype == i64, "indices are i64");
        access(st.buffer, st.indices);
        return;
      }
      case StmtKind::kPrefetch: {
        const auto& fetched = static_cast<const Prefetch&>(*s);
        require(
            readable.contains(fetched.buffer.get()) && !in_vector,
            cat("buffer ", fetched.buffer->name, " is in scope where it is fetched, not in lanes"));
        for (const ExprRef& i : fetched.indices) {
          require(i->dtype == i64, "indices are i64");
          post_order(i, [&](const ExprRef& e) {
            require(e->kind != ExprKind::kLoad && !can_fail(*e), "a prefetch can't fail");
          });
        }
        access(fetched.buffer, fetched.indices);
        return;
      }
      case StmtKind::kLet: {
        const auto& l = static_cast<const Let&>(*s);
        require(l.var->dtype == l.value->dtype, "a variable has the dtype of its value");
        bind(l.var);
        stmt(l.body, in_task, in_vector);
        vars.erase(l.var.get());
        return;
      }
      case StmtKind::kAlloc: {
        const auto& a = static_cast<const Alloc&>(*s);
        require(readable.insert(a.buffer.get()).second,
                cat("scratch is allocated once at a time: ", a.buffer->name));
        sizes(*a.buffer);
        writable.insert(a.buffer.get());
        stmt(a.body, in_task, in_vector);
        readable.erase(a.buffer.get());
        writable.erase(a.buffer.get());
        return;
      }
      case StmtKind::kIf:
        require(static_cast<const If&>(*s).condition->dtype == boolean, "a condition is a boolean");
        [[fallthrough]];
      case StmtKind::kSeq:
        for (const StmtRef& b : direct_bodies(*s)) stmt(b, in_task, in_vector);
        return;
    }
  }
};

}  // namespace

void check(const Kernel& kernel) {
  Checker c{kernel, {}, {}, {}, {}};
  for (const String& name : kernel.integers) {
    c.require(c.symbols.insert(name.str()).second, cat("integers are distinct: ", name));
  }
  for (const auto* parameters : {&kernel.inputs, &kernel.outputs}) {
    for (const auto& b : *parameters) {
      for (const Dim& d : b->shape) {
        if (d.kind() == DimKind::kSymbol) c.symbols.insert(d.node().name.str());
      }
    }
  }
  for (const auto* parameters : {&kernel.inputs, &kernel.outputs}) {
    for (const auto& b : *parameters) {
      c.sizes(*b);
    }
  }
  for (const auto& b : kernel.inputs) c.readable.insert(b.get());
  for (const auto& b : kernel.outputs) {
    c.readable.insert(b.get());
    c.writable.insert(b.get());
  }
  c.require(c.readable.size() == kernel.inputs.size() + kernel.outputs.size(),
            "parameters are distinct");
  for (const InPlace& pair : kernel.in_place) {
    c.require(pair.output() >= 0 && pair.input() >= 0 &&
                  pair.output() < static_cast<int64_t>(kernel.outputs.size()) &&
                  pair.input() < static_cast<int64_t>(kernel.inputs.size()),
              "an in-place pair names an output and an input");
    const Buffer& out = *kernel.outputs[static_cast<size_t>(pair.output())];
    const Buffer& in = *kernel.inputs[static_cast<size_t>(pair.input())];
    c.require(out.dtype == in.dtype,
              "an output has the element type of the input whose place it takes");
  }
  c.stmt(kernel.body, false, false);
}

}  // namespace tenon::loop
