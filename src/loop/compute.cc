#include "loop/compute.h"

#include <unordered_set>

#include "loop/broken_rule.h"
#include "loop/symbol_set.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

std::vector<Ref<const Var>> index_vars(std::string_view prefix, size_t n) {
  std::vector<Ref<const Var>> vars;
  for (size_t i = 0; i < n; ++i) vars.push_back(var(cat(prefix, i), i64));
  return vars;
}

}  // namespace

Ref<const Buffer> buffer(std::string_view name, DataType dtype, const std::vector<Dim>& shape) {
  auto b = make<Buffer>();
  b->name = String(name);
  b->dtype = dtype;
  b->shape = Array<Dim>(shape);
  return b;
}

Ref<const Stage> map_stage(
    const Ref<const Buffer>& out,
    const std::function<ExprRef(const std::vector<ExprRef>& indices)>& body) {
  std::vector<Ref<const Var>> axes = index_vars("i", out->shape.size());
  auto s = make<Stage>();
  s->kind = StageKind::kMap;
  s->out = out;
  s->axes = Array<Ref<const Var>>(axes);
  s->body = body(std::vector<ExprRef>(axes.begin(), axes.end()));
  return s;
}

Ref<const Stage> reduce_stage(
    const Ref<const Buffer>& out, Reduction reduction, const std::vector<Dim>& extents,
    const std::function<ExprRef(const std::vector<ExprRef>& indices,
                                const std::vector<ExprRef>& reduce_indices)>& body) {
  std::vector<Ref<const Var>> axes = index_vars("i", out->shape.size());
  std::vector<Ref<const Var>> over = index_vars("k", extents.size());
  auto s = make<Stage>();
  s->kind = StageKind::kReduce;
  s->out = out;
  s->axes = Array<Ref<const Var>>(axes);
  s->reduction = reduction;
  s->reduce_axes = Array<Ref<const Var>>(over);
  s->reduce_extents = Array<Dim>(extents);
  s->body = body(std::vector<ExprRef>(axes.begin(), axes.end()),
                 std::vector<ExprRef>(over.begin(), over.end()));
  if (reduction == Reduction::kSum || reduction == Reduction::kProd) {
    DataType t = s->body->dtype;
    s->accumulate = t.is_float() && t.bits < 32 ? f32 : t;
  }
  return s;
}

std::vector<ExprRef> broadcast_indices(const Ref<const Buffer>& b,
                                       const std::vector<ExprRef>& indices,
                                       const std::vector<Dim>& space) {
  size_t rank = b->shape.size();
  TENON_ASSERT(rank <= space.size() && indices.size() == space.size(), "broadcast of ", b->name,
               " of rank ", rank, " to rank ", space.size());
  size_t skipped = space.size() - rank;
  std::vector<ExprRef> at;
  for (size_t i = 0; i < rank; ++i) {
    const Dim& size = b->shape[i];
    const ExprRef& whole = indices[skipped + i];
    if (size.is_const(1)) {
      at.push_back(index(0));
    } else if (size == space[skipped + i] || lower_bound(size).value_or(0) >= 2) {
      at.push_back(whole);
    } else {
      // Stride 0 if the size is 1. (Nothing is loaded if the size is 0.)
      at.push_back(binary(BinaryOp::kMul, whole, dim_value(min(Dim(1), size - Dim(1)))));
    }
  }
  return at;
}

ExprRef load_broadcast(const Ref<const Buffer>& b, const std::vector<ExprRef>& indices,
                       const std::vector<Dim>& space) {
  return load(b, Array<ExprRef>(broadcast_indices(b, indices, space)));
}

bool is_arg_reduction(Reduction r) {
  return finds_greatest(r) || r == Reduction::kArgMinFirst || r == Reduction::kArgMinLast;
}

bool finds_greatest(Reduction r) {
  return r == Reduction::kArgMaxFirst || r == Reduction::kArgMaxLast;
}

bool finds_last(Reduction r) {
  return r == Reduction::kArgMaxLast || r == Reduction::kArgMinLast;
}

ExprRef identity(Reduction r, DataType t) {
  switch (r) {
    case Reduction::kSum:
      return literal(t, 0);
    case Reduction::kProd:
      return literal(t, 1);
    case Reduction::kMax:
      return lowest(t);
    case Reduction::kMin:
      return highest(t);
    case Reduction::kAnd:
      return t.is_bool() ? literal_int(t, 1) : literal_int(t, -1);
    case Reduction::kOr:
      return literal_int(t, 0);
    default:
      break;
  }
  TENON_ASSERT(false, "reduction ", r, " has no initial value");
  return nullptr;
}

ExprRef combine(Reduction r, const ExprRef& acc, const ExprRef& value) {
  switch (r) {
    case Reduction::kNone:
      return value;
    case Reduction::kSum:
      return binary(BinaryOp::kAdd, acc, value);
    case Reduction::kProd:
      return binary(BinaryOp::kMul, acc, value);
    case Reduction::kMax:
      return binary(BinaryOp::kMax, acc, value);
    case Reduction::kMin:
      return binary(BinaryOp::kMin, acc, value);
    case Reduction::kAnd:
      return binary(BinaryOp::kAnd, acc, value);
    case Reduction::kOr:
      return binary(BinaryOp::kOr, acc, value);
    default:
      break;
  }
  TENON_ASSERT(false, "reduction ", r, " has no operator");
  return nullptr;
}

DataType accumulator_type(const Stage& s) {
  bool sum = s.reduction == Reduction::kSum || s.reduction == Reduction::kProd;
  return sum && !s.accumulate.is_void() ? s.accumulate : s.body->dtype;
}

namespace {

struct Checker {
  const Compute& compute;
  std::unordered_set<const Buffer*> known;
  const Stage* stage = nullptr;

  void require(bool holds, std::string_view rule) {
    if (holds) return;
    Error e(ErrorKind::Internal, "a compute is malformed");
    if (stage && stage->out) e.where(cat("stage ", stage->out->name));
    e.rule(std::string(rule));
    e.found(to_text(compute));
    throw e;
  }

  void expr(const ExprRef& root, const std::unordered_set<const Var*>& vars) {
    require(static_cast<bool>(root), "an expression isn't null");
    post_order(root, [&](const ExprRef& e) {
      const std::string_view broken = broken_rule(*e);
      require(broken.empty(), broken);
      if (e->kind == ExprKind::kVar) {
        require(vars.contains(static_cast<const Var*>(e.get())),
                cat("variable ", static_cast<const Var&>(*e).name, " is an axis of the stage"));
      } else if (e->kind == ExprKind::kLoad) {
        const auto& l = static_cast<const Load&>(*e);
        bool own = stage->kind == StageKind::kScan && l.buffer == stage->out;
        require(own || known.contains(l.buffer.get()),
                cat("buffer ", l.buffer->name, " is an input or the result of an earlier stage"));
        require(l.indices.size() == l.buffer->shape.size(), "one index per dimension");
      }
    });
  }

  // Booleans have no arithmetic, floats no bit operations, and complex numbers neither.
  void reduces(Reduction r, DataType t) {
    require(r == Reduction::kNone || !t.is_complex(), "complex numbers are only moved");
    if (r == Reduction::kSum || r == Reduction::kProd) {
      require(!t.is_bool(), "sums and products are of numbers");
    } else if (r == Reduction::kAnd || r == Reduction::kOr) {
      require(!t.is_float(), "and, or combine integers or booleans");
    }
  }

  void sizes(const Buffer& b) {
    for (const Dim& d : b.shape) {
      require(may_be_size(d), cat("a size of ", b.name, " isn't negative"));
    }
  }

  void check_stage(const Stage& s) {
    stage = &s;
    require(static_cast<bool>(s.out) && !known.contains(s.out.get()), "a stage has its own buffer");
    sizes(*s.out);
    require(s.axes.size() == s.out->shape.size(), "one axis per dimension of the result");
    for (const auto* axes : {&s.axes, &s.reduce_axes}) {
      for (const auto& a : *axes) require(a->dtype == i64, "axes are i64");
    }
    require(s.reduce_axes.size() == s.reduce_extents.size(), "one extent per reduced axis");
    for (const Dim& d : s.reduce_extents) {
      require(may_be_size(d), "the extent of a reduced axis isn't negative");
    }
    std::unordered_set<const Var*> vars;
    for (const auto& a : s.axes) vars.insert(a.get());
    std::unordered_set<const Var*> reduced;
    for (const auto& a : s.reduce_axes) reduced.insert(a.get());
    require(vars.size() == s.axes.size() && reduced.size() == s.reduce_axes.size(),
            "axes are distinct");

    if (s.kind == StageKind::kReduce) vars.insert(reduced.begin(), reduced.end());
    expr(s.body, vars);
    switch (s.kind) {
      case StageKind::kMap:
      case StageKind::kScan:
        require(s.body->dtype == s.out->dtype, "the body's dtype is the result's");
        require(s.reduce_axes.empty(), "nothing is reduced");
        if (s.kind == StageKind::kScan) {
          require(s.scan_axis >= 0 && s.scan_axis < static_cast<int64_t>(s.axes.size()),
                  "the scan axis is one of the axes");
        }
        break;
      case StageKind::kReduce:
        require(s.reduction != Reduction::kNone, "a reduction is named");
        require(!s.body->dtype.is_complex() && !s.out->dtype.is_complex(),
                "complex numbers are only moved");
        if (is_arg_reduction(s.reduction)) {
          require(s.reduce_axes.size() == 1 && s.out->dtype == i64,
                  "the place of an extreme is an i64 on one axis");
        } else if (s.reduction != Reduction::kSum && s.reduction != Reduction::kProd) {
          require(s.body->dtype == s.out->dtype, "the body's dtype is the result's");
        }
        require(s.accumulate.is_void() || s.reduction == Reduction::kSum ||
                    s.reduction == Reduction::kProd,
                "only sums and products have their own accumulator dtype");
        require(is_scalar(accumulator_type(s)),
                "an accumulator is an integer, a float or a boolean");
        reduces(s.reduction, accumulator_type(s));
        break;
      case StageKind::kScatter:
        require(s.body->dtype == s.out->dtype, "the body's dtype is the result's");
        require(s.scatter_indices.size() == s.out->shape.size(), "one scatter index per dimension");
        for (const ExprRef& i : s.scatter_indices) {
          expr(i, reduced);
          require(i->dtype == i64, "scatter indices are i64");
        }
        expr(s.update, reduced);
        require(s.update->dtype == s.out->dtype, "the update's dtype is the result's");
        require(!is_arg_reduction(s.reduction), "a scatter has a combining operator or none");
        reduces(s.reduction, s.out->dtype);
        break;
    }
    known.insert(s.out.get());
  }
};

}  // namespace

void check(const Compute& compute) {
  Checker c{compute, {}};
  for (const auto& b : compute.inputs) {
    c.require(static_cast<bool>(b) && c.known.insert(b.get()).second, "inputs are distinct");
    c.sizes(*b);
  }
  size_t inputs = c.known.size();
  for (const auto& s : compute.stages) {
    c.require(static_cast<bool>(s), "a stage isn't null");
    c.check_stage(*s);
  }
  c.stage = nullptr;
  c.require(c.known.size() == inputs + compute.stages.size(), "results are distinct");
  std::unordered_set<const Buffer*> results, outputs;
  for (const auto& s : compute.stages) results.insert(s->out.get());
  for (const auto& b : compute.outputs) {
    c.require(results.contains(b.get()), "an output is the result of a stage");
    c.require(outputs.insert(b.get()).second, "outputs are distinct");
  }
}

// ---- the interface derived from the stages

namespace {

// Visits every size in the compute, parameters first.
void for_each_dim(const Compute& c, const std::function<void(const Dim&)>& visit) {
  auto shape = [&](const Buffer& b) {
    for (const Dim& d : b.shape) visit(d);
  };
  for (const auto* list : {&c.inputs, &c.outputs}) {
    for (const auto& b : *list) shape(*b);
  }
  for (const auto& s : c.stages) {
    shape(*s->out);
    for (const Dim& d : s->reduce_extents) visit(d);
    for_each_expr(*s, [&](const ExprRef& e) {
      if (e->kind == ExprKind::kDimValue) visit(static_cast<const DimValue&>(*e).dim);
      if (e->kind == ExprKind::kCheckedIndex) visit(static_cast<const CheckedIndex&>(*e).extent);
    });
  }
}

Array<String> unbound_symbols(const Compute& c) {
  std::unordered_set<std::string> bound;
  for (const auto* list : {&c.inputs, &c.outputs}) {
    for (const auto& b : *list) {
      for (const Dim& d : b->shape) {
        if (d.kind() == DimKind::kSymbol) bound.insert(d.node().name.str());
      }
    }
  }
  SymbolSet all;
  for_each_dim(c, [&](const Dim& d) { collect_symbols(d, &all); });
  Array<String> integers;
  for (const std::string& s : all) {
    if (!bound.contains(s)) integers.push_back(String(s));
  }
  return integers;
}

// True if the load reads, for each element of the stage's result, the one with the same indices. An
// axis of extent 1 has one index.
bool reads_the_element_written(const Load& l, const Stage& s) {
  const Array<Dim>& shape = l.buffer->shape;
  for (size_t k = 0; k < shape.size(); ++k) {
    const bool same = l.indices[k].get() == s.axes[k].get();
    if (!same && !(shape[k].is_const(1) && as_int(l.indices[k]) == 0)) return false;
  }
  return true;
}

// Pairs of an output and an input of the same type, where the kernel reads the input only at the
// element that it writes, and only for that write.
Array<InPlace> in_place_pairs(const Compute& c) {
  Array<InPlace> pairs;
  for (size_t o = 0; o < c.outputs.size(); ++o) {
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      const Buffer &out = *c.outputs[o], &in = *c.inputs[i];
      if (out.dtype != in.dtype || out.shape.to_vector() != in.shape.to_vector()) continue;
      bool fits = true, read = false;
      for (const auto& s : c.stages) {
        bool writes = s->out.get() == &out && s->kind == StageKind::kMap;
        for_each_load(*s, [&](const Load& l) {
          if (l.buffer.get() != &in) return;
          read = true;
          fits = fits && writes && reads_the_element_written(l, *s);
        });
      }
      if (fits && read) pairs.push_back({static_cast<int64_t>(o), static_cast<int64_t>(i)});
    }
  }
  return pairs;
}

}  // namespace

ComputeRef whole_kernel(Array<Ref<const Buffer>> inputs, Array<Ref<const Stage>> stages,
                        Array<Ref<const Buffer>> outputs, bool in_bounds) {
  auto c = make<Compute>();
  c->inputs = std::move(inputs);
  c->outputs = std::move(outputs);
  c->stages = std::move(stages);
  check(*c);
  c->integers = unbound_symbols(*c);
  c->in_place = in_place_pairs(*c);
  c->in_bounds = in_bounds;
  return c;
}

void check_whole(const Compute& compute) {
  check(compute);
  Checker c{compute, {}};
  c.require(compute.integers.to_vector() == unbound_symbols(compute).to_vector(),
            "integers are the symbols that no parameter binds, in order of appearance");
  c.require(compute.in_place.to_vector() == in_place_pairs(compute).to_vector(),
            "pairs in place are those that the stages allow");
}

}  // namespace tenon::loop
