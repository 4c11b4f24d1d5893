#include "graph/pass/loop_reader.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "graph/ir/effects.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"
#include "graph/pass/fuse_operators.h"
#include "loop/join_computes.h"
#include "loop/symbol_set.h"
#include "loop/walk.h"

namespace tenon::graph {
namespace {

using BufferRef = Ref<const loop::Buffer>;

// Compiling a kernel takes more than linear time.
constexpr size_t kMostStages = 64;
constexpr size_t kLongestName = 60;

bool is_int(const Operand& operand, int64_t wanted) {
  const auto* constant = operand.as<Constant>();
  const auto value = constant ? constant->value.try_as<int64_t>() : std::nullopt;
  return value && *value == wanted;
}

// A scalar's value, if its type or a constant tells it.
std::optional<Dim> known_value(const Operand& operand) {
  if (const auto* constant = operand.as<Constant>()) {
    const auto value = constant->value.try_as<int64_t>();
    return value ? std::optional(Dim(*value)) : std::nullopt;
  }
  const TypeRef type = type_of(operand);
  const auto* scalar = type.as<ScalarType>();
  return scalar && scalar->dtype == i64 && scalar->value_known ? std::optional(scalar->value)
                                                               : std::nullopt;
}

// Reads one loop. Each step returns false if the loop can't be one kernel.
class LoopReader {
 public:
  using InScope = std::function<bool(const std::string&)>;

  // `in_scope` tells whether a symbol is bound outside of the loop.
  LoopReader(const Loop& loop, const Map<String, loop::KernelInterfaceRef>& kernels,
             const InScope& in_scope)
      : loop_(loop), kernels_(kernels), in_scope_(in_scope) {}

  std::optional<LoopKernel> read() {
    if (!read_condition() || !read_variables() || !read_body() || !read_next()) return std::nullopt;
    for (const std::string& name : symbols_) {
      if (!in_scope_(name)) return std::nullopt;
    }
    return finish();
  }

 private:
  // What a variable of the loop or of its body stands for.
  struct Value {
    enum Kind : uint8_t { kNothing, kNextCounter, kBuffer, kStack, kAppended } kind = kNothing;
    size_t stack = 0;  // the loop's variable
    BufferRef buffer;  // the value, or the row that is appended
  };
  struct Input {
    BufferRef buffer;
    Operand outside;
  };

  // while { less(i, n) }, where i is a variable that begins at 0. What the condition does besides
  // must be done before each turn.
  bool read_condition() {
    const Call* less = nullptr;
    for (const auto& binding : loop_.condition->bindings) {
      if (must_stay(*binding)) return false;
      if (binding->var == loop_.condition->result) less = as_op(binding->value, op::less);
    }
    if (!less || less->args.size() != 2) return false;
    const auto at = std::ranges::find_if(
        loop_.vars, [&](const VarRef& v) { return v.get() == less->args[0].get(); });
    if (at == loop_.vars.end()) return false;
    counter_ = static_cast<size_t>(at - loop_.vars.begin());
    // The limit may be made in the condition.
    auto limit = known_value(less->args[1]);
    if (!limit || !is_int(loop_.init[counter_], 0)) return false;
    if (type_of(loop_.vars[counter_]).as<ScalarType>()->dtype != i64) return false;
    trip_count_ = proves_nonnegative(*limit) ? *limit : max(Dim(0), *limit);
    collect_symbols(trip_count_, &symbols_);
    counter_buffer_ = loop::buffer("turn", i64, {});
    return true;
  }

  bool read_variables() {
    for (size_t i = 0; i < loop_.vars.size(); ++i) {
      if (i == counter_) continue;
      const VarRef& v = loop_.vars[i];
      if (const TensorType* type = known_tensor(v->type)) {
        states_[i] = input(v, *type, loop_.init[i]);
      } else if (begins_empty(i)) {
        values_[v.get()] = {Value::kStack, i, {}};
      } else {
        return false;
      }
    }
    return true;
  }

  // A stack of rows that has none yet.
  bool begins_empty(size_t i) const {
    const TensorType* begin = known_tensor(loop_.init[i]);
    return loop_.vars[i]->type.as<TensorType>() && begin && begin->rank > 0 &&
           begin->dims[0].is_const(0);
  }

  bool read_body() {
    for (const auto& binding : loop_.body->bindings) {
      if (binding->var == loop_.body->result && binding->value.as<Tuple>()) continue;
      if (!read(*binding)) return false;
    }
    return !joiner_.stages().empty() && joiner_.stages().size() <= kMostStages;
  }

  bool read(const Binding& binding) {
    const VarRef& var = binding.var;
    if (const auto* match = binding.value.as<MatchShape>()) {
      const Value* stack = find(match->value);
      if (!stack || stack->kind != Value::kStack || match->elements ||
          !always_fits(*match, stack->stack)) {
        return false;
      }
      values_[var.get()] = *stack;
      return true;
    }
    if (const auto* field = binding.value.as<Field>()) {
      const auto fields = tuples_.find(field->tuple.get());
      if (fields == tuples_.end()) return false;
      values_[var.get()] = {Value::kBuffer, 0, fields->second[static_cast<size_t>(field->index)]};
      return true;
    }
    const auto* call = binding.value.as<Call>();
    if (!call) return false;
    if (memory_intrinsic(*call) == MemoryIntrinsic::kOfElement) {
      if (call->args[0].get() != loop_.vars[counter_].get()) return false;
      values_[var.get()] = {Value::kBuffer, 0, counter_buffer_};
      return true;
    }
    if (is_op(*call, op::add) && call->args[0].get() == loop_.vars[counter_].get() &&
        is_int(call->args[1], 1)) {
      values_[var.get()] = {Value::kNextCounter, 0, {}};
      return true;
    }
    if (as_packed(binding.value, "tenon.append")) return read_append(var, *call);
    return call->kind == CalleeKind::kKernel && read_kernel(var, *call);
  }

  // Whether the match of a stack can't fail: it names sizes, or states those that rows have.
  bool always_fits(const MatchShape& match, size_t stack) {
    const Array<Dim>& begin = known_tensor(loop_.init[stack])->dims;
    if (match.dims.size() != begin.size()) return false;
    for (size_t k = 0; k < begin.size(); ++k) {
      const Dim& d = match.dims[k];
      const bool names = d.kind() == DimKind::kSymbol && !in_scope_(d.node().name.str()) &&
                         named_.insert(d.node().name.str()).second;
      if (!names && (k == 0 || d != begin[k])) return false;
    }
    return true;
  }

  bool read_append(const VarRef& var, const Call& call) {
    const Value *stack = find(call.args[0]), *row = find(call.args[1]);
    if (call.args.size() != 2 || !stack || stack->kind != Value::kStack || !row ||
        row->kind != Value::kBuffer) {
      return false;
    }
    const TensorType* begin = known_tensor(loop_.init[stack->stack]);
    const std::vector<Dim> all = begin->dims.to_vector();
    if (localised({all.begin() + 1, all.end()}) != row->buffer->shape.to_vector()) return false;
    values_[var.get()] = {Value::kAppended, stack->stack, row->buffer};
    return true;
  }

  bool read_kernel(const VarRef& var, const Call& call) {
    const auto* compute = kernels_.at(call.callee).as<loop::Compute>();
    if (!compute || call.args.size() != compute->inputs.size()) return false;
    std::vector<BufferRef> inputs;
    std::unordered_map<std::string, Dim> symbols;
    const auto bind = [&](const loop::Buffer& b, const std::vector<Dim>& here) {
      if (b.shape.size() != here.size()) return false;
      for (size_t k = 0; k < here.size(); ++k) {
        const Dim& d = b.shape[k];
        if (d.kind() == DimKind::kSymbol) symbols.try_emplace(d.node().name.str(), here[k]);
      }
      return true;
    };
    for (size_t k = 0; k < call.args.size(); ++k) {
      const BufferRef b = buffer_of(call.args[k]);
      if (!b || !bind(*compute->inputs[k], b->shape.to_vector())) return false;
      inputs.push_back(b);
    }
    const auto results = result_types(var->type);
    if (results.size() != compute->outputs.size()) return false;
    for (size_t k = 0; k < results.size(); ++k) {
      if (!results[k] || !bind(*compute->outputs[k], localised(results[k]->dims.to_vector()))) {
        return false;
      }
    }
    const Array<Dim> integers = kernel_integers(call);
    for (size_t k = 0; k < integers.size(); ++k) {
      symbols[compute->integers[k].str()] = local(integers[k]);
    }
    const auto outputs =
        joiner_.add(*compute, inputs, [&](std::string_view name) -> std::optional<Dim> {
          const auto found = symbols.find(std::string(name));
          return found == symbols.end() ? std::nullopt : std::optional(found->second);
        });
    if (!outputs) return false;
    in_bounds_ = in_bounds_ && compute->in_bounds;
    names_ += cat("_", fused_operators(call.callee.view()));
    if (outputs->size() == 1) {
      values_[var.get()] = {Value::kBuffer, 0, outputs->front()};
    } else {
      tuples_[var.get()] = *outputs;
    }
    return true;
  }

  static std::vector<const TensorType*> result_types(const TypeRef& type) {
    const auto* tuple = type.as<TupleType>();
    if (!tuple) return {known_tensor(type)};
    std::vector<const TensorType*> types;
    for (const TypeRef& field : tuple->fields) types.push_back(known_tensor(field));
    return types;
  }

  // What the variables become: the kernel's states and rows.
  bool read_next() {
    const size_t count = loop_.vars.size();
    std::vector<Operand> next = {loop_.body->result};
    if (count > 1) {
      next.clear();
      for (const auto& binding : loop_.body->bindings) {
        const auto* tuple = binding->value.as<Tuple>();
        if (binding->var == loop_.body->result && tuple) next = tuple->fields.to_vector();
      }
      if (next.size() != count) return false;
    }
    ends_.assign(count, {LoopEnd::kTripCount});
    for (size_t i = 0; i < count; ++i) {
      if (i == counter_) {
        const Value* value = find(next[i]);
        if (!value || value->kind != Value::kNextCounter) return false;
      } else if (const auto state = states_.find(i); state != states_.end()) {
        const BufferRef becomes = buffer_of(next[i]);
        if (!becomes) return false;
        if (becomes == state->second) {
          ends_[i] = {LoopEnd::kInitial};
        } else if (!is_result(becomes) || becomes->dtype != state->second->dtype ||
                   becomes->shape.to_vector() != state->second->shape.to_vector()) {
          return false;
        } else {
          ends_[i] = {LoopEnd::kResult, changed_.size()};
          changed_.emplace_back(state->second, becomes);
        }
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if (i == counter_ || states_.contains(i)) continue;
      const Value* value = find(next[i]);
      if (!value || value->kind != Value::kAppended || value->stack != i ||
          !is_result(value->buffer) || std::ranges::find(rows_, value->buffer) != rows_.end()) {
        return false;
      }
      ends_[i] = {LoopEnd::kResult, changed_.size() + rows_.size()};
      rows_.push_back(value->buffer);
    }
    return true;
  }

  bool is_result(const BufferRef& b) const {
    return std::ranges::any_of(joiner_.stages(), [&](const auto& s) { return s->out == b; });
  }

  const Value* find(const Operand& operand) const {
    const auto found = values_.find(operand.get());
    return found == values_.end() ? nullptr : &found->second;
  }

  // The buffer of a tensor; a new input for one from outside. Null for other operands.
  BufferRef buffer_of(const Operand& operand) {
    if (const Value* value = find(operand)) {
      return value->kind == Value::kBuffer ? value->buffer : BufferRef();
    }
    if (tuples_.contains(operand.get())) return {};
    const TensorType* type = known_tensor(operand);
    if (!type || !is_outside(operand)) return {};
    return input(operand, *type, operand);
  }

  bool is_outside(const Operand& operand) const {
    return std::ranges::none_of(loop_.body->bindings, [&](const auto& binding) {
      return binding->var.get() == operand.get();
    });
  }

  BufferRef input(const Operand& operand, const TensorType& type, const Operand& outside) {
    BufferRef b =
        loop::buffer(cat("p", inputs_.size()), type.dtype, localised(type.dims.to_vector()));
    inputs_.push_back({b, outside});
    values_[operand.get()] = {Value::kBuffer, 0, b};
    return b;
  }

  // Symbols of the kernel are named by their order, so that equal loops share one.
  Dim local(const Dim& d) {
    collect_symbols(d, &symbols_);
    return tenon::substitute(d, [&](std::string_view name) -> std::optional<Dim> {
      const auto at = std::ranges::find(symbols_, name);
      return Dim::symbol(cat("s", at - symbols_.begin()));
    });
  }
  std::vector<Dim> localised(const std::vector<Dim>& dims) {
    std::vector<Dim> out;
    out.reserve(dims.size());
    for (const Dim& d : dims) out.push_back(local(d));
    return out;
  }

  std::optional<LoopKernel> finish() {
    LoopKernel fused;
    Array<BufferRef> inputs, outputs;
    int64_t counter = loop::Recurrence::kNoCounter;
    for (const Input& each : inputs_) {
      inputs.push_back(each.buffer);
      fused.args.push_back(each.outside);
    }
    if (reads_counter()) {
      counter = static_cast<int64_t>(inputs.size());
      inputs.push_back(counter_buffer_);
    }
    const auto number_in = [](const Array<BufferRef>& list, const BufferRef& wanted) {
      return static_cast<int64_t>(std::ranges::find(list, wanted) - list.begin());
    };
    const auto output = [&](const BufferRef& b) {
      if (number_in(outputs, b) == static_cast<int64_t>(outputs.size())) outputs.push_back(b);
      return number_in(outputs, b);
    };
    Array<loop::State> states;
    for (const auto& [now, next] : changed_) {
      states.push_back({number_in(inputs, now), output(next)});
    }
    Array<int64_t> rows;
    for (const BufferRef& row : rows_) rows.push_back(output(row));
    if (outputs.empty()) return std::nullopt;
    const loop::ComputeRef step = loop::whole_kernel(inputs, steps_stages(), outputs, in_bounds_);
    fused.kernel = loop::recurrence(step, local(trip_count_), counter, states, rows);
    fused.trip_count = trip_count_;
    fused.name = cat("loop", names_).substr(0, kLongestName);
    fused.ends = ends_;
    for (const String& name : fused.kernel->integers) {
      for (size_t i = 0; i < symbols_.size(); ++i) {
        if (name == cat("s", i)) fused.integers.push_back(Dim::symbol(symbols_[i]));
      }
    }
    return fused;
  }

  // Without checks of what is below the trip count.
  Array<Ref<const loop::Stage>> steps_stages() {
    const Dim trip_count = local(trip_count_);
    const auto is_counter = [&](const loop::ExprRef& e) {
      return e->kind == loop::ExprKind::kLoad &&
             static_cast<const loop::Load&>(*e).buffer == counter_buffer_;
    };
    loop::Rewriter trusting([&](const loop::ExprRef& e) -> loop::ExprRef {
      if (e->kind != loop::ExprKind::kCheckedIndex) return e;
      const auto& checked = static_cast<const loop::CheckedIndex&>(*e);
      return is_counter(checked.index) && checked.extent == trip_count ? checked.index : e;
    });
    Array<Ref<const loop::Stage>> stages;
    for (const auto& from : joiner_.stages()) {
      auto stage = make<loop::Stage>(*from);
      stage->body = trusting(from->body);
      if (from->update) stage->update = trusting(from->update);
      stage->scatter_indices = from->scatter_indices.map(trusting);
      stages.push_back(stage);
    }
    return stages;
  }

  bool reads_counter() const {
    bool found = false;
    for (const auto& s : joiner_.stages()) {
      loop::for_each_load(*s, [&](const loop::Load& l) { found |= l.buffer == counter_buffer_; });
    }
    return found;
  }

  const Loop& loop_;
  const Map<String, loop::KernelInterfaceRef>& kernels_;
  const InScope& in_scope_;
  size_t counter_ = 0;
  Dim trip_count_;
  BufferRef counter_buffer_;
  std::unordered_map<size_t, BufferRef> states_;  // by the variable's number
  std::unordered_map<const Object*, Value> values_;
  std::unordered_map<const Object*, std::vector<BufferRef>> tuples_;
  std::vector<Input> inputs_;
  SymbolSet symbols_;            // that the kernel needs
  std::set<std::string> named_;  // by matches in the body
  loop::Joiner joiner_;
  bool in_bounds_ = true;
  std::string names_;
  std::vector<std::pair<BufferRef, BufferRef>> changed_;  // states: now, next
  std::vector<BufferRef> rows_;
  std::vector<LoopEnd> ends_;
};

}  // namespace

std::optional<LoopKernel> read_loop(const Loop& loop,
                                    const Map<String, loop::KernelInterfaceRef>& kernels,
                                    const std::function<bool(const std::string&)>& in_scope) {
  return LoopReader(loop, kernels, in_scope).read();
}

}  // namespace tenon::graph
