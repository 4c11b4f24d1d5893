#include "import/onnx/loop_builder.h"

#include <algorithm>

namespace tenon::onnx {

namespace {

using graph::attr_dims;
using graph::attrs;
using graph::TypeRef;

constexpr int64_t kMaxUnrolled = 16;

// A loop variable and which of its sizes never change.
struct Variable {
  DataType dtype;
  Dims dims;
  std::vector<bool> varies;

  bool fixed() const { return std::find(varies.begin(), varies.end(), true) == varies.end(); }
  TypeRef type() const {
    if (fixed()) return graph::tensor_type(dtype, dims);
    return graph::tensor_type_of_rank(dtype, static_cast<int64_t>(dims.size()));
  }
};

class Maker {
 public:
  Maker(NodeContext& cx, const LoopSpec& spec) : cx_(cx), spec_(spec) {}

  LoopResult make() {
    for (const Operand& v : spec_.init) {
      Variable var;
      var.dtype = cx_.dtype(v);
      var.dims = cx_.dims(v);
      var.varies.assign(var.dims.size(), false);
      variables_.push_back(std::move(var));
    }
    find_types();
    bool steady = !conditional_ && (!spec_.go_on || cx_.number(spec_.go_on) == 1.0);
    auto constant = spec_.count ? spec_.count->as_const() : std::nullopt;
    if (steady && constant && *constant <= kMaxUnrolled && (*constant > 0 || spec_.yields == 0)) {
      return unrolled(std::max<int64_t>(*constant, 0));
    }
    return loop(steady);
  }

 private:
  // Builds the body in temporary blocks until the types of its variables reach a fixed point.
  void find_types() {
    for (bool changed = true; changed;) {
      changed = false;
      cx_.b.begin_block();
      Operand index = cx_.b.block_var("i", graph::tensor_type(i64, {}));
      Operands vars;
      for (const Variable& v : variables_) vars.push_back(known(cx_.b.block_var("v", v.type()), v));
      std::optional<LoopStep> step = spec_.step(index, vars);
      if (step) {
        conditional_ = step->go_on && cx_.number(step->go_on) != 1.0;
        for (size_t i = 0; i < variables_.size(); ++i) {
          changed = widen(variables_[i], step->states[i]) || changed;
        }
        yields_.clear();
        for (const Operand& y : step->yields) {
          Variable v;
          v.dtype = cx_.dtype(y);
          v.dims = cx_.dims(y);
          yields_.push_back(std::move(v));
        }
      }
      cx_.b.finish_block({});
      if (!step) cx_.give_up();
    }
    for (const Variable& y : yields_) {
      SymbolSet symbols;
      for (const Dim& d : y.dims) collect_symbols(d, &symbols);
      for (const std::string& s : symbols) {
        if (!cx_.b.in_scope(s)) {
          cx_.unsupported("outputs whose shape is known only inside the loop not implemented");
        }
      }
    }
  }

  bool widen(Variable& v, const Operand& next) {
    if (cx_.dtype(next) != v.dtype)
      cx_.invalid(cat("a loop variable that becomes ", to_text(cx_.dtype(next))), to_text(v.dtype));
    Dims dims = cx_.dims(next);
    if (dims.size() != v.dims.size()) {
      cx_.unsupported("loop variables of changing rank not implemented");
    }
    bool changed = false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (v.varies[i] || dims[i] == v.dims[i] || proves_equal(dims[i], v.dims[i])) continue;
      v.varies[i] = changed = true;
    }
    return changed;
  }

  // `value` with its constant sizes known, and symbols for the sizes that vary.
  Operand known(const Operand& value, const Variable& v) {
    if (v.fixed()) return value;
    Dims dims;
    for (size_t i = 0; i < v.dims.size(); ++i) {
      dims.push_back(v.varies[i] ? cx_.b.fresh_symbol("d") : v.dims[i]);
    }
    return cx_.b.match_shape(value, dims);
  }

  LoopResult unrolled(int64_t count) {
    LoopResult out{spec_.init, {}};
    std::vector<Operands> rows(spec_.yields);
    for (int64_t i = 0; i < count; ++i) {
      std::optional<LoopStep> step = spec_.step(cx_.integer(i), out.states);
      if (!step) cx_.give_up();
      out.states = step->states;
      for (size_t k = 0; k < rows.size(); ++k) {
        rows[k].push_back(cx_.unsqueeze(step->yields[k], {0}));
      }
    }
    for (const Operands& r : rows) out.yields.push_back(cx_.concat(r, 0));
    return out;
  }

  Dims stacked(const Dim& count, const Variable& y) {
    Dims dims = {count};
    dims.insert(dims.end(), y.dims.begin(), y.dims.end());
    return dims;
  }

  // loop (i, go_on, states..., stacks...)
  LoopResult loop(bool steady) {
    std::vector<std::string> names = {"i"};
    std::vector<TypeRef> types = {graph::tensor_type(i64, {})};
    Operands init = {cx_.integer(0)};
    if (!steady) {
      names.emplace_back("go_on");
      types.push_back(graph::tensor_type(boolean, {}));
      init.push_back(spec_.go_on ? cx_.reshape(spec_.go_on, {}) : cx_.scalar(boolean, 1));
    }
    size_t first_state = names.size();
    for (size_t k = 0; k < variables_.size(); ++k) {
      names.push_back(cat("state_", k));
      types.push_back(variables_[k].type());
      init.push_back(spec_.init[k]);
    }
    size_t first_stack = names.size();
    for (size_t k = 0; k < yields_.size(); ++k) {
      const Variable& y = yields_[k];
      names.push_back(cat("stack_", k));
      types.push_back(graph::tensor_type_of_rank(y.dtype, static_cast<int64_t>(y.dims.size()) + 1));
      init.push_back(cx_.full(y.dtype, 0, stacked(0, y)));
    }
    auto condition = [&](const Operands& vars) -> Operand {
      Operand go;
      if (spec_.limit) go = cx_.op("less", {vars[0], spec_.limit});
      if (!steady) go = go ? cx_.op("logical_and", {go, vars[1]}) : vars[1];
      return go ? go : cx_.scalar(boolean, 1);
    };
    auto body = [&](const Operands& vars) -> Operand {
      Operands states;
      for (size_t k = 0; k < variables_.size(); ++k) {
        states.push_back(known(vars[first_state + k], variables_[k]));
      }
      std::optional<LoopStep> step = spec_.step(vars[0], states);
      TENON_ASSERT(step, "a loop's body was built before");
      Operands next = {cx_.add(vars[0], cx_.integer(1))};
      if (!steady) {
        next.push_back(step->go_on ? cx_.reshape(step->go_on, {}) : cx_.scalar(boolean, 1));
      }
      next.insert(next.end(), step->states.begin(), step->states.end());
      for (size_t k = 0; k < yields_.size(); ++k) {
        Operand so_far =
            cx_.b.match_shape(vars[first_stack + k], stacked(cx_.b.fresh_symbol("k"), yields_[k]));
        next.push_back(cx_.op("append", {so_far, step->yields[k]}));
      }
      return next.size() == 1 ? next[0] : cx_.b.tuple(next);
    };
    Operand all = cx_.b.loop(names, types, init, condition, body);
    auto result = [&](size_t i) {
      return names.size() == 1 ? all : cx_.b.field(all, static_cast<int64_t>(i));
    };
    LoopResult out;
    for (size_t k = 0; k < variables_.size(); ++k) {
      out.states.push_back(known(result(first_state + k), variables_[k]));
    }
    for (size_t k = 0; k < yields_.size(); ++k) {
      Dim count = steady && spec_.count && proves_nonnegative(*spec_.count)
                      ? *spec_.count
                      : cx_.b.fresh_symbol("k");
      out.yields.push_back(cx_.b.match_shape(result(first_stack + k), stacked(count, yields_[k])));
    }
    return out;
  }

  NodeContext& cx_;
  const LoopSpec& spec_;
  std::vector<Variable> variables_, yields_;
  bool conditional_ = false;  // the body decides whether to continue
};

}  // namespace

LoopResult build_loop(NodeContext& cx, const LoopSpec& spec) {
  return Maker(cx, spec).make();
}

}  // namespace tenon::onnx
