#include "loop/evaluator.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "loop/scalar.h"
#include "loop/walk.h"
#include "object/shape.h"
#include "support/failures.h"
#include "support/poll.h"

namespace tenon::loop {
namespace {

struct Memory {
  DataType dtype;
  std::vector<int64_t> shape;
  int64_t count = 0;
  char* data = nullptr;
  std::vector<char> own;

  void* element(int64_t i) { return data + i * dtype.bytes(); }
};

// An expression prepared for evaluation: its nodes in post-order, each with a value that is valid
// for one evaluation.
struct Plan {
  struct Node {
    const Expr* expr;
    std::vector<size_t> operands;
    int64_t value = 0;
    uint64_t epoch = 0;  // the evaluation that `value` belongs to
  };
  std::vector<Node> nodes;  // the root last
  ExprRef root;
};

class Evaluator {
 public:
  explicit Evaluator(const Symbols& symbols) : symbols_(symbols) {}

  void bind_inputs(const Array<Ref<const Buffer>>& buffers, const std::vector<Tensor>& tensors) {
    if (buffers.size() != tensors.size()) {
      throw Error(ErrorKind::Usage, "the number of inputs is wrong")
          .expected(cat(buffers.size()))
          .found(cat(tensors.size()));
    }
    auto wrong = [&](size_t i) {
      std::string shape;
      for (const Dim& d : buffers[i]->shape) shape += (shape.empty() ? "" : ", ") + to_text(d);
      throw Error(ErrorKind::Usage, cat("input ", i, " does not fit buffer ", buffers[i]->name))
          .expected(tensor_type_text(shape, buffers[i]->dtype))
          .found(to_text(tensors[i]));
    };
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Buffer& b = *buffers[i];
      const Tensor& t = tensors[i];
      if (t.dtype() != b.dtype || t.shape().size() != b.shape.size() || !t.compact()) wrong(i);
      for (size_t k = 0; k < b.shape.size(); ++k) {
        const DimNode& d = b.shape[k].node();
        if (d.kind == DimKind::kSymbol) symbols_.try_emplace(d.name.str(), t.shape()[k]);
      }
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      Memory m;
      m.dtype = tensors[i].dtype();
      m.shape.assign(tensors[i].shape().begin(), tensors[i].shape().end());
      m.count = tensors[i].count();
      m.data = static_cast<char*>(tensors[i].data());
      for (size_t k = 0; k < m.shape.size(); ++k) {
        if (size(buffers[i]->shape[k]) != m.shape[k]) wrong(i);
      }
      memory_[buffers[i].get()] = std::move(m);
    }
  }

  Memory& allocate(const Buffer& b) {
    Memory m;
    m.dtype = b.dtype;
    for (const Dim& d : b.shape) m.shape.push_back(std::max<int64_t>(size(d), 0));
    const auto bytes = byte_count(m.shape, b.dtype);
    if (!bytes || static_cast<size_t>(*bytes) > m.own.max_size()) {
      throw Error(ErrorKind::Runtime, cat("buffer ", b.name, " exceeds the address space"))
          .found(cat("sizes ", tenon::to_text(std::span<const int64_t>(m.shape))));
    }
    m.count = *bytes / b.dtype.bytes();
    m.own.assign(static_cast<size_t>(*bytes), static_cast<char>(0xcd));
    Memory& placed = memory_[&b] = std::move(m);
    placed.data = placed.own.data();
    return placed;
  }
  void release(const Buffer& b) { memory_.erase(&b); }
  // From now on the output takes the place of the input, if they have the same size.
  void overwrite(const Buffer& out, const Buffer& in) {
    Memory& from = memory_.at(&in);
    Memory& to = memory_.at(&out);
    if (from.count != to.count) return;
    to.own.assign(from.data, from.data + to.own.size());
    from.data = to.data = to.own.data();
  }

  Tensor take(const Buffer& b) {
    Memory& m = memory_.at(&b);
    return Tensor::copy_of_bytes(m.shape, m.dtype, m.data,
                                 static_cast<size_t>(m.count * m.dtype.bytes()));
  }

  int64_t size(const Dim& d) {
    auto v = evaluate(d, [&](std::string_view s) -> std::optional<int64_t> {
      auto it = symbols_.find(s);
      if (it == symbols_.end()) return std::nullopt;
      return it->second;
    });
    if (!v) {
      throw Error(ErrorKind::Usage, cat("size ", to_text(d), " is not known"))
          .help("give the values of its symbols");
    }
    return *v;
  }

  void set(const Ref<const Var>& v, int64_t value) { vars_[v.get()] = value; }

  // Doesn't recurse over expressions; evaluates only the chosen side of a Select.
  int64_t eval(const ExprRef& e) {
    Plan& plan = plan_of(e);
    uint64_t epoch = ++epoch_;
    std::vector<size_t> stack{plan.nodes.size() - 1};
    while (!stack.empty()) {
      Plan::Node& node = plan.nodes[stack.back()];
      auto ready = [&](size_t i) { return plan.nodes[i].epoch == epoch; };
      auto value = [&](size_t i) { return plan.nodes[i].value; };
      if (node.epoch == epoch) {
        stack.pop_back();
        continue;
      }
      if (node.expr->kind == ExprKind::kSelect) {
        if (!ready(node.operands[0])) {
          stack.push_back(node.operands[0]);
          continue;
        }
        size_t side = node.operands[value(node.operands[0]) ? 1 : 2];
        if (!ready(side)) {
          stack.push_back(side);
          continue;
        }
        node.value = value(side);
      } else {
        bool all = true;
        for (size_t o : node.operands) {
          if (ready(o)) continue;
          stack.push_back(o);
          all = false;
        }
        if (!all) continue;
        std::vector<int64_t> operands;
        for (size_t o : node.operands) operands.push_back(value(o));
        node.value = apply(*node.expr, operands);
      }
      node.epoch = epoch;
      stack.pop_back();
    }
    return plan.nodes.back().value;
  }

  int64_t offset(const Buffer& b, const std::vector<int64_t>& at, Memory** memory) {
    auto it = memory_.find(&b);
    TENON_ASSERT(it != memory_.end(), "buffer ", b.name, " has no memory");
    Memory& m = it->second;
    *memory = &m;
    int64_t offset = 0;
    bool inside = true;
    if (at.size() == 1 && m.shape.size() != 1) {
      offset = at[0];
      inside = offset >= 0 && offset < m.count;
    } else {
      for (size_t i = 0; i < at.size() && inside; ++i) {
        inside = at[i] >= 0 && at[i] < m.shape[i];
        if (inside) offset = offset * m.shape[i] + at[i];
      }
    }
    if (!inside) {
      throw Error(ErrorKind::Internal, cat("access outside buffer ", b.name))
          .found(tenon::to_text(std::span<const int64_t>(at)))
          .expected(cat("within ", tenon::to_text(std::span<const int64_t>(m.shape))));
    }
    return offset;
  }

  void write(const Buffer& b, const std::vector<int64_t>& at, int64_t value) {
    Memory* m;
    int64_t o = offset(b, at, &m);
    scalar_store(m->dtype, m->element(o), value);
  }
  int64_t read(const Buffer& b, const std::vector<int64_t>& at) {
    Memory* m;
    int64_t o = offset(b, at, &m);
    return scalar_load(m->dtype, m->element(o));
  }

  void run(const StmtRef& s) {
    switch (s->kind) {
      case StmtKind::kSeq:
        for (const StmtRef& b : static_cast<const Seq&>(*s).body) run(b);
        return;
      case StmtKind::kFor: {
        const auto& f = static_cast<const For&>(*s);
        int64_t begin = eval(f.begin), extent = eval(f.extent);
        for (int64_t i = 0; i < extent; ++i) {
          ticker_.tick();
          // Wraps, as in compiled kernels.
          const int64_t step = f.loop == ForKind::kParallel ? extent - 1 - i : i;
          set(f.var,
              static_cast<int64_t>(static_cast<uint64_t>(begin) + static_cast<uint64_t>(step)));
          run(f.body);
        }
        return;
      }
      case StmtKind::kStore: {
        const auto& st = static_cast<const Store&>(*s);
        std::vector<int64_t> at;
        for (const ExprRef& i : st.indices) at.push_back(eval(i));
        int64_t value = eval(st.value);
        write(*st.buffer, at, value);
        return;
      }
      case StmtKind::kPrefetch:
        return;
      case StmtKind::kIf: {
        const auto& i = static_cast<const If&>(*s);
        if (eval(i.condition)) {
          run(i.then_body);
        } else if (i.else_body) {
          run(i.else_body);
        }
        return;
      }
      case StmtKind::kLet: {
        const auto& l = static_cast<const Let&>(*s);
        set(l.var, eval(l.value));
        run(l.body);
        return;
      }
      case StmtKind::kAlloc: {
        const auto& a = static_cast<const Alloc&>(*s);
        allocate(*a.buffer);
        run(a.body);
        release(*a.buffer);
        return;
      }
    }
  }

  // Calls `body` for every point, in row-major order.
  void for_each_point(const Array<Ref<const Var>>& vars, const Array<Dim>& extents,
                      const std::function<void(const std::vector<int64_t>&)>& body) {
    std::vector<int64_t> sizes, at(vars.size(), 0);
    for (const Dim& d : extents) sizes.push_back(size(d));
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n <= 0; })) return;
    for (;;) {
      ticker_.tick();
      for (size_t i = 0; i < at.size(); ++i) set(vars[i], at[i]);
      body(at);
      size_t i = at.size();
      while (i > 0 && ++at[i - 1] == sizes[i - 1]) at[--i] = 0;
      if (i == 0) return;
    }
  }

  void stage(const Stage& s) {
    allocate(*s.out);
    for_each_point(s.axes, s.out->shape, [&](const std::vector<int64_t>& at) {
      write(*s.out, at, s.kind == StageKind::kReduce ? reduction(s) : eval(s.body));
    });
    if (s.kind != StageKind::kScatter) return;
    for_each_point(s.reduce_axes, s.reduce_extents, [&](const std::vector<int64_t>&) {
      std::vector<int64_t> to;
      for (const ExprRef& i : s.scatter_indices) to.push_back(eval(i));
      int64_t value = eval(s.update);
      if (s.reduction != Reduction::kNone) {
        value = step(s.reduction, s.out->dtype, read(*s.out, to), value);
      }
      write(*s.out, to, value);
    });
  }

 private:
  static int64_t step(Reduction r, DataType t, int64_t acc, int64_t value) {
    static constexpr BinaryOp ops[] = {BinaryOp::kAdd, BinaryOp::kAdd, BinaryOp::kMul,
                                       BinaryOp::kMax, BinaryOp::kMin, BinaryOp::kAnd,
                                       BinaryOp::kOr};
    return *scalar_binary(ops[static_cast<size_t>(r)], t, acc, value);
  }

  int64_t reduction(const Stage& s) {
    if (is_arg_reduction(s.reduction)) return place_of_extreme(s);
    DataType t = accumulator_type(s);
    int64_t acc = static_cast<const Literal&>(*identity(s.reduction, t)).bits;
    for_each_point(s.reduce_axes, s.reduce_extents, [&](const std::vector<int64_t>&) {
      acc = step(s.reduction, t, acc, scalar_cast(t, s.body->dtype, eval(s.body)));
    });
    return scalar_cast(s.out->dtype, t, acc);
  }

  int64_t place_of_extreme(const Stage& s) {
    const bool greatest = finds_greatest(s.reduction), last = finds_last(s.reduction);
    DataType t = s.body->dtype;
    int64_t best = 0, place = 0;
    for_each_point(s.reduce_axes, s.reduce_extents, [&](const std::vector<int64_t>& at) {
      int64_t v = eval(s.body);
      auto is_nan = [&](int64_t x) {
        return t.is_float() && scalar_unary(UnaryOp::kIsNan, t, x) != 0;
      };
      bool take = at[0] == 0;
      if (!take && is_nan(v)) {
        take = last || !is_nan(best);
      } else if (!take && !is_nan(best)) {
        BinaryOp compare = last ? BinaryOp::kLe : BinaryOp::kLt;
        take = *scalar_binary(compare, t, greatest ? best : v, greatest ? v : best) != 0;
      }
      if (take) best = v, place = at[0];
    });
    return place;
  }

  Plan& plan_of(const ExprRef& e) {
    Plan& plan = plans_[e.get()];
    if (plan.root) return plan;
    plan.root = e;
    std::unordered_map<const Expr*, size_t> number;
    post_order(e, [&](const ExprRef& node) {
      Plan::Node n{node.get(), {}};
      for (const ExprRef& o : operands(*node)) n.operands.push_back(number.at(o.get()));
      number[node.get()] = plan.nodes.size();
      plan.nodes.push_back(std::move(n));
    });
    return plan;
  }

  int64_t apply(const Expr& e, const std::vector<int64_t>& a) {
    switch (e.kind) {
      case ExprKind::kVar: {
        auto it = vars_.find(static_cast<const Var*>(&e));
        TENON_ASSERT(it != vars_.end(), "variable ", static_cast<const Var&>(e).name,
                     " has no value");
        return it->second;
      }
      case ExprKind::kLiteral:
        return static_cast<const Literal&>(e).bits;
      case ExprKind::kDimValue:
        return size(static_cast<const DimValue&>(e).dim);
      case ExprKind::kLoad:
        return read(*static_cast<const Load&>(e).buffer, a);
      case ExprKind::kUnary: {
        const auto& u = static_cast<const Unary&>(e);
        return scalar_unary(u.op, u.a->dtype, a[0]);
      }
      case ExprKind::kBinary: {
        const auto& b = static_cast<const Binary&>(e);
        auto v = scalar_binary(b.op, b.a->dtype, a[0], a[1]);
        if (!v) throw division_by_zero();
        return *v;
      }
      case ExprKind::kCast: {
        const auto& c = static_cast<const Cast&>(e);
        return c.keeps_bits ? scalar_bit_cast(e.dtype, c.a->dtype, a[0])
                            : scalar_cast(e.dtype, c.a->dtype, a[0]);
      }
      case ExprKind::kCheckedIndex: {
        const int64_t extent =
            std::max<int64_t>(size(static_cast<const CheckedIndex&>(e).extent), 0);
        if (a[0] < -extent || a[0] >= extent) {
          throw Error(ErrorKind::Runtime, "an index is out of range")
              .found(cat(a[0]))
              .expected(extent == 0 ? "none: there are no elements"
                                    : cat("from ", -extent, " to ", extent - 1));
        }
        return a[0] < 0 ? a[0] + extent : a[0];
      }
      case ExprKind::kSelect:
        break;
    }
    TENON_ASSERT(false, "a select is evaluated by eval");
    return 0;
  }

  Symbols symbols_;
  std::unordered_map<const Var*, int64_t> vars_;
  std::unordered_map<const Buffer*, Memory> memory_;
  Ticker ticker_;
  std::unordered_map<const Expr*, Plan> plans_;
  uint64_t epoch_ = 0;
};

// As many of the pairs as can be used at once.
std::vector<InPlace> disjoint(const Array<InPlace>& pairs) {
  std::vector<InPlace> out;
  for (const InPlace& pair : pairs) {
    const auto shares = [&](const InPlace& other) {
      return pair.output() == other.output() || pair.input() == other.input();
    };
    if (std::ranges::none_of(out, shares)) out.push_back(pair);
  }
  return out;
}

}  // namespace

std::vector<Tensor> evaluate(const Compute& compute, const std::vector<Tensor>& inputs,
                             const Symbols& symbols) {
  Evaluator e(symbols);
  e.bind_inputs(compute.inputs, inputs);
  for (const auto& s : compute.stages) e.stage(*s);
  std::vector<Tensor> out;
  for (const auto& b : compute.outputs) out.push_back(e.take(*b));
  return out;
}

std::vector<Tensor> evaluate(const Kernel& kernel, const std::vector<Tensor>& inputs,
                             const Symbols& symbols) {
  const auto results = [&](const std::vector<InPlace>& pairs) {
    Evaluator e(symbols);
    e.bind_inputs(kernel.inputs, inputs);
    for (const auto& b : kernel.outputs) e.allocate(*b);
    for (const InPlace& pair : pairs) {
      e.overwrite(*kernel.outputs[static_cast<size_t>(pair.output())],
                  *kernel.inputs[static_cast<size_t>(pair.input())]);
    }
    e.run(kernel.body);
    std::vector<Tensor> out;
    for (const auto& b : kernel.outputs) out.push_back(e.take(*b));
    return out;
  };
  std::vector<Tensor> out = results({});
  const std::vector<InPlace> pairs = disjoint(kernel.in_place);
  if (pairs.empty()) return out;
  const std::vector<Tensor> in_place = results(pairs);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto bytes = static_cast<size_t>(out[i].bytes());
    if (bytes == 0 || std::memcmp(out[i].data(), in_place[i].data(), bytes) == 0) continue;
    throw Error(ErrorKind::Internal, cat("kernel '", kernel.name, "' computes other values of ",
                                         kernel.outputs[i]->name, " in place"));
  }
  return out;
}

}  // namespace tenon::loop
