#include "import/onnx/loop_builder.h"

#include <algorithm>

#include "import/onnx/container.h"

namespace tenon::onnx {

namespace {

using graph::attr_dims;
using graph::attrs;
using graph::TensorType;
using graph::TypeRef;

constexpr int64_t kMaxUnrolled = 16;

// A loop variable: a tensor and which of its sizes never change, or another value and its type.
struct Variable {
  DataType dtype;
  Dims dims;
  std::vector<bool> varies;
  bool any_rank = false;
  bool loses_rank = false;  // any_rank, because iterations change it
  TypeRef other;            // open; null for a tensor
  bool plain = false;       // iterations make no optional values, though it may begin as one

  bool fixed() const { return std::find(varies.begin(), varies.end(), true) == varies.end(); }
  TypeRef type() const {
    if (other) return other;
    if (any_rank) return graph::tensor_type_unknown(dtype);
    if (fixed()) return graph::tensor_type(dtype, dims);
    return graph::tensor_type_of_rank(dtype, static_cast<int64_t>(dims.size()));
  }
};

// What each iteration yields, and which of its sizes only the iteration knows.
struct Yield {
  DataType dtype;
  Dims dims;
  std::vector<bool> inside;

  bool open() const { return std::find(inside.begin(), inside.end(), true) != inside.end(); }
};

class Maker {
 public:
  Maker(NodeContext& cx, const LoopSpec& spec)
      : cx_(cx), spec_(spec), states_(spec.init), rows_(spec.yields.size()), go_on_(spec.go_on) {}

  LoopResult make() {
    while (true) {
      begin();
      if (find_types()) break;
      // A variable changes its rank: the next iteration, which is certain to run, runs before the
      // loop, or all iterations if they are few.
      run_ahead(!conditional_ && is_short() ? *constant_count() : started_ + 1);
      if (ended_) return all_ran();
    }
    if (steady() && is_short() && (*constant_count() > 0 || spec_.yields.empty())) {
      run_ahead(*constant_count());
      if (ended_) return all_ran();
      begin();
      find_types();
    }
    return loop();
  }

 private:
  std::optional<int64_t> constant_count() const {
    return spec_.count ? spec_.count->as_const() : std::nullopt;
  }
  bool is_short() const {
    const auto count = constant_count();
    return count && *count <= kMaxUnrolled;
  }
  bool goes_on() const { return !go_on_ || cx_.number(go_on_) == 1.0; }
  // Whether only the count ends the loop.
  bool steady() const { return !conditional_ && goes_on(); }
  bool next_is_certain() const {
    const auto count = constant_count();
    return started_ < kMaxUnrolled && count && *count > started_ && goes_on();
  }

  void begin() {
    variables_.clear();
    for (const Operand& v : states_) {
      Variable var;
      const TypeRef type = graph::type_of(v);
      const auto* tensor = graph::type_as<TensorType>(type);
      if (tensor == nullptr) {
        var.other = open_type(cx_, v);
      } else {
        var.dtype = tensor->dtype;
        var.any_rank = tensor->rank < 0;
        if (!var.any_rank) var.dims = cx_.dims(v);
        var.varies.assign(var.dims.size(), false);
      }
      variables_.push_back(std::move(var));
    }
  }

  // Builds the body in temporary blocks until the types of its variables reach a fixed point.
  // Returns false if a variable changes its rank in an iteration that is certain to run.
  bool find_types() {
    for (bool changed = true; changed;) {
      changed = false;
      cx_.b.begin_block();
      Operand index = cx_.b.block_var("i", graph::tensor_type(i64, {}));
      Operands vars;
      for (const Variable& v : variables_) vars.push_back(known(cx_.b.block_var("v", v.type()), v));
      std::optional<LoopStep> step = trial(index, vars);
      if (step) {
        for (Operand& x : step->states) x = cx_.with_symbols(x);
        for (Operand& x : step->yields) x = cx_.with_symbols(x);
      }
      cx_.b.finish_block({});
      if (!step) cx_.give_up();
      conditional_ = step->go_on && cx_.number(step->go_on) != 1.0;
      for (size_t i = 0; i < variables_.size(); ++i) {
        if (next_is_certain() && changes_rank(variables_[i], step->states[i])) return false;
        changed = widen(variables_[i], step->states[i]) || changed;
      }
      if (!changed) find_yields(step->yields);
    }
    return true;
  }

  std::optional<LoopStep> trial(const Operand& index, const Operands& vars) {
    try {
      return spec_.step(index, vars);
    } catch (const Error& e) {
      const bool rank_lost = std::ranges::any_of(variables_, &Variable::loses_rank);
      if (!rank_lost || e.kind() != ErrorKind::Usage) throw;
      cx_.unsupported(
          "loop variables of changing rank not implemented for operators that need the rank");
    }
  }

  void find_yields(const Operands& yields) {
    yields_.clear();
    for (const Operand& y : yields) {
      const TypeRef type = graph::type_of(y);
      const auto* tensor = graph::type_as<TensorType>(type);
      if (is_imaginary(y)) {
        cx_.unsupported("outputs of elements of a sequence that nothing is put into");
      }
      if (tensor == nullptr) {
        cx_.invalid(cat("a value of type ", to_text(type), " for an output of every iteration"),
                    "a tensor");
      }
      if (tensor->rank < 0) {
        cx_.unsupported("outputs whose rank is known only at run time not implemented");
      }
      Yield yield{tensor->dtype, cx_.dims(y), {}};
      for (const Dim& d : yield.dims) yield.inside.push_back(!is_in_scope(d));
      yields_.push_back(std::move(yield));
    }
  }

  bool is_in_scope(const Dim& d) const {
    SymbolSet symbols;
    collect_symbols(d, &symbols);
    return std::ranges::all_of(symbols, [&](const std::string& s) { return cx_.b.in_scope(s); });
  }

  static bool changes_rank(const Variable& v, const Operand& next) {
    const TypeRef type = graph::type_of(next);
    const auto* tensor = graph::type_as<TensorType>(type);
    return !v.other && !v.any_rank && tensor != nullptr &&
           tensor->rank != static_cast<int64_t>(v.dims.size());
  }

  bool widen(Variable& v, const Operand& next) {
    if (is_imaginary(next)) return false;
    const TypeRef type = graph::type_of(next);
    const auto* tensor = graph::type_as<TensorType>(type);
    const TypeRef joined = join_open(cx_, v.type(), in_scope(cx_, open_type(cx_, next)));
    if (!joined) {
      const bool tensors = tensor != nullptr && !v.other;
      cx_.invalid(
          cat("a loop variable that becomes ", tensors ? to_text(tensor->dtype) : to_text(type)),
          tensors ? to_text(v.dtype) : to_text(v.type()));
    }
    if (v.other || tensor == nullptr) return widen_other(v, joined, next);
    if (v.any_rank) return false;
    if (changes_rank(v, next)) return v.any_rank = v.loses_rank = true;
    Dims dims = cx_.dims(next);
    bool changed = false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (v.varies[i] || dims[i] == v.dims[i] || proves_equal(dims[i], v.dims[i])) continue;
      v.varies[i] = changed = true;
    }
    return changed;
  }

  static bool widen_other(Variable& v, const TypeRef& joined, const Operand& next) {
    v.plain = !is_optional(next);
    if (v.other && graph::same_type(v.other, joined)) return false;
    v.other = joined;
    return true;
  }

  // `value` with its constant sizes known, and symbols for the sizes that vary.
  Operand known(const Operand& value, const Variable& v) {
    if (v.other || v.any_rank || v.fixed()) return value;
    Dims dims;
    for (size_t i = 0; i < v.dims.size(); ++i) {
      dims.push_back(v.varies[i] ? cx_.b.fresh_symbol("d") : v.dims[i]);
    }
    return cx_.b.match_shape(value, dims);
  }

  // Runs iterations before the loop until `end` have run, the last one is over, or it is known only
  // at run time whether the next one runs.
  void run_ahead(int64_t end) {
    while (started_ < end && !ended_) {
      std::optional<LoopStep> step = spec_.step(cx_.integer(started_), states_);
      if (!step) cx_.give_up();
      ++started_;
      states_ = step->states;
      for (size_t k = 0; k < rows_.size(); ++k) {
        rows_[k].push_back(cx_.unsqueeze(step->yields[k], {0}));
      }
      if (step->go_on) go_on_ = step->go_on;
      ended_ = go_on_ && cx_.number(go_on_) == 0.0;
      if (!goes_on()) break;
    }
    ended_ = ended_ || started_ >= constant_count().value_or(started_ + 1);
  }

  LoopResult all_ran() {
    LoopResult out;
    for (size_t k = 0; k < states_.size(); ++k) out.states.push_back(result(states_[k], k));
    for (const Operands& r : rows_) out.yields.push_back(cx_.concat(r, 0));
    return out;
  }

  // The final value of a variable.
  Operand result(const Operand& value, size_t k) {
    return variables_[k].plain && is_optional(value) ? value_of(cx_, value) : value;
  }

  static Dims stacked(const Dim& count, const Dims& sizes) {
    Dims dims = {count};
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    return dims;
  }

  // What is stacked before the loop.
  Operand first_rows(size_t k) {
    if (!rows_[k].empty()) return cx_.concat(rows_[k], 0);
    const ValueType& stated = spec_.yields[k];
    Dims sizes = yields_[k].dims;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!yields_[k].inside[i]) continue;
      const bool known = stated.shape.size() == sizes.size() && stated.shape[i].value >= 0;
      sizes[i] = known ? stated.shape[i].value : 0;
    }
    return cx_.full(yields_[k].dtype, 0, stacked(0, sizes));
  }

  Operand appended(const Operand& rows, const Operand& row) {
    if (cx_.dtype(row) != string_elements) return cx_.op("append", {rows, row});
    return cx_.concat({rows, cx_.unsqueeze(row, {0})}, 0);  // strings don't grow in place
  }

  // `rows` with one more. What is yielded first gives the sizes that only iterations know, so that
  // no rows may have any.
  Operand with_row(const Operand& rows, const Operand& row, size_t k) {
    const Yield& yield = yields_[k];
    const Dim count = cx_.b.fresh_symbol("k");
    if (!yield.open()) {
      return appended(cx_.b.match_shape(rows, stacked(count, yield.dims)), row);
    }
    const Dims sizes = cx_.dims(row);
    Dims found = sizes;
    for (size_t i = 0; i < found.size(); ++i) {
      if (yield.inside[i]) found[i] = cx_.b.fresh_symbol("d");
    }
    const Operand matched = cx_.b.match_shape(rows, stacked(count, found));
    for (size_t i = 0; i < found.size(); ++i) {
      if (!yield.inside[i]) continue;
      cx_.b.check(graph::CheckKind::kEqual, count * found[i], count * sizes[i],
                  cat(cx_.node().op, ": elements of an output, by iterations, along axis ", i));
    }
    return appended(cx_.reshape(matched, stacked(count, sizes)), row);
  }

  // loop (i, go_on, states..., stacks...)
  LoopResult loop() {
    const bool is_steady = steady();
    std::vector<std::string> names = {"i"};
    std::vector<TypeRef> types = {graph::tensor_type(i64, {})};
    Operands init = {cx_.integer(started_)};
    if (!is_steady) {
      names.emplace_back("go_on");
      types.push_back(graph::tensor_type(boolean, {}));
      init.push_back(go_on_ ? cx_.reshape(go_on_, {}) : cx_.scalar(boolean, 1));
    }
    size_t first_state = names.size();
    for (size_t k = 0; k < variables_.size(); ++k) {
      names.push_back(cat("state_", k));
      types.push_back(closed(variables_[k].type()));
      init.push_back(as_type(cx_, states_[k], types.back()));
    }
    size_t first_stack = names.size();
    for (size_t k = 0; k < yields_.size(); ++k) {
      const Yield& y = yields_[k];
      names.push_back(cat("stack_", k));
      types.push_back(graph::tensor_type_of_rank(y.dtype, static_cast<int64_t>(y.dims.size()) + 1));
      init.push_back(first_rows(k));
    }
    auto condition = [&](const Operands& vars) -> Operand {
      Operand go;
      if (spec_.limit) go = cx_.op("less", {vars[0], spec_.limit});
      if (!is_steady) go = go ? cx_.op("logical_and", {go, vars[1]}) : vars[1];
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
      if (!is_steady) {
        next.push_back(step->go_on ? cx_.reshape(step->go_on, {}) : cx_.scalar(boolean, 1));
      }
      for (size_t k = 0; k < variables_.size(); ++k) {
        next.push_back(as_type(cx_, step->states[k], types[first_state + k]));
      }
      for (size_t k = 0; k < yields_.size(); ++k) {
        const Operand row = cx_.with_symbols(step->yields[k]);
        next.push_back(with_row(vars[first_stack + k], row, k));
      }
      return next.size() == 1 ? next[0] : cx_.b.tuple(next);
    };
    Operand all = cx_.b.loop(names, types, init, condition, body);
    auto field = [&](size_t i) {
      return names.size() == 1 ? all : cx_.b.field(all, static_cast<int64_t>(i));
    };
    LoopResult out;
    for (size_t k = 0; k < variables_.size(); ++k) {
      out.states.push_back(result(known(field(first_state + k), variables_[k]), k));
    }
    for (size_t k = 0; k < yields_.size(); ++k) {
      Dim count = is_steady && spec_.count && proves_nonnegative(*spec_.count)
                      ? *spec_.count
                      : cx_.b.fresh_symbol("k");
      Dims sizes = yields_[k].dims;
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (yields_[k].inside[i]) sizes[i] = cx_.b.fresh_symbol("d");
      }
      out.yields.push_back(cx_.b.match_shape(field(first_stack + k), stacked(count, sizes)));
    }
    return out;
  }

  NodeContext& cx_;
  const LoopSpec& spec_;
  // What the iterations that run before the loop leave.
  Operands states_;
  std::vector<Operands> rows_;
  Operand go_on_;
  int64_t started_ = 0;
  bool ended_ = false;

  std::vector<Variable> variables_;
  std::vector<Yield> yields_;
  bool conditional_ = false;  // the body decides whether to continue
};

}  // namespace

LoopResult build_loop(NodeContext& cx, const LoopSpec& spec) {
  return Maker(cx, spec).make();
}

}  // namespace tenon::onnx
