#include "loop/recurrence.h"

#include <unordered_set>

#include "loop/symbol_set.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

void require(bool holds, std::string_view rule, const Recurrence& r) {
  if (holds) return;
  throw Error(ErrorKind::Internal, "a recurrence is malformed")
      .rule(std::string(rule))
      .found(r.step ? to_text(*r.step) : "no step");
}

bool is_index_of(int64_t i, size_t count) {
  return i >= 0 && i < static_cast<int64_t>(count);
}

bool same_shape(const Array<Dim>& a, const Array<Dim>& b) {
  return a.to_vector() == b.to_vector();
}

void check_fields(const Recurrence& r) {
  require(static_cast<bool>(r.step), "there is a step", r);
  check_whole(*r.step);
  require(may_be_size(r.trip_count), "the trip count isn't negative", r);
  const auto &inputs = r.step->inputs, &outputs = r.step->outputs;
  std::unordered_set<int64_t> taken;  // inputs that an iteration makes
  if (r.counter != Recurrence::kNoCounter) {
    require(is_index_of(r.counter, inputs.size()), "the counter is an input of the step", r);
    const Buffer& counter = *inputs[static_cast<size_t>(r.counter)];
    require(counter.dtype == i64 && counter.shape.empty(), "the counter is an i64 of rank 0", r);
    taken.insert(r.counter);
  }
  std::unordered_set<int64_t> used;  // outputs
  for (const State& state : r.states) {
    require(
        is_index_of(state.input(), inputs.size()) && is_index_of(state.output(), outputs.size()),
        "a state is an input of the step, and then an output", r);
    require(taken.insert(state.input()).second, "an input is one state, or the counter", r);
    const Buffer &now = *inputs[static_cast<size_t>(state.input())],
                 &next = *outputs[static_cast<size_t>(state.output())];
    require(now.dtype == next.dtype && same_shape(now.shape, next.shape), "a state keeps its type",
            r);
    used.insert(state.output());
  }
  std::unordered_set<int64_t> kept;
  for (const int64_t row : r.rows) {
    require(is_index_of(row, outputs.size()) && kept.insert(row).second,
            "rows are distinct outputs of the step", r);
    used.insert(row);
  }
  require(used.size() == outputs.size(), "every output of the step is a state's or a row", r);
}

// The symbols that no parameter's dimension is.
Array<String> unbound_symbols(const Recurrence& r) {
  SymbolSet all, bound;
  for (const auto* list : {&r.inputs, &r.outputs}) {
    for (const auto& b : *list) {
      for (const Dim& d : b->shape) {
        collect_symbols(d, &all);
        if (d.kind() == DimKind::kSymbol) collect_symbols(d, &bound);
      }
    }
  }
  collect_symbols(r.trip_count, &all);
  for (const auto& b : r.step->outputs) {
    for (const Dim& d : b->shape) collect_symbols(d, &all);
  }
  for (const String& s : r.step->integers) collect_symbols(Dim::symbol(s.view()), &all);
  Array<String> integers;
  for (const std::string& s : all) {
    if (!bound.contains(s)) integers.push_back(String(s));
  }
  return integers;
}

}  // namespace

RecurrenceRef recurrence(const ComputeRef& step, const Dim& trip_count, int64_t counter,
                         Array<State> states, Array<int64_t> rows) {
  auto r = make<Recurrence>();
  r->step = step;
  r->trip_count = trip_count;
  r->counter = counter;
  r->states = std::move(states);
  r->rows = std::move(rows);
  check_fields(*r);
  for (size_t i = 0; i < step->inputs.size(); ++i) {
    if (static_cast<int64_t>(i) != counter) r->inputs.push_back(step->inputs[i]);
  }
  for (const State& state : r->states) {
    const Buffer& last = *step->outputs[static_cast<size_t>(state.output())];
    r->outputs.push_back(buffer(cat("last_", last.name), last.dtype, last.shape.to_vector()));
  }
  for (const int64_t row : r->rows) {
    const Buffer& one = *step->outputs[static_cast<size_t>(row)];
    std::vector<Dim> shape = one.shape.to_vector();
    shape.insert(shape.begin(), trip_count);
    r->outputs.push_back(buffer(cat("all_", one.name), one.dtype, shape));
  }
  r->integers = unbound_symbols(*r);
  r->in_bounds = step->in_bounds;
  return r;
}

void check(const Recurrence& r) {
  check_fields(r);
  const RecurrenceRef wanted = recurrence(r.step, r.trip_count, r.counter, r.states, r.rows);
  bool same = r.inputs.size() == wanted->inputs.size() &&
              r.outputs.size() == wanted->outputs.size() && r.in_place.empty() &&
              r.integers.to_vector() == wanted->integers.to_vector();
  for (size_t i = 0; same && i < r.inputs.size(); ++i) {
    same = r.inputs[i].get() == wanted->inputs[i].get();
  }
  for (size_t i = 0; same && i < r.outputs.size(); ++i) {
    same = r.outputs[i] && r.outputs[i]->dtype == wanted->outputs[i]->dtype &&
           same_shape(r.outputs[i]->shape, wanted->outputs[i]->shape);
  }
  require(same, "the parameters are those that the step, its states and its rows make", r);
}

}  // namespace tenon::loop
