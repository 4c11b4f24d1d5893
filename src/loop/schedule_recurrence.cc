#include "loop/schedule_recurrence.h"

#include <algorithm>
#include <unordered_map>

#include "loop/nest.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::loop {
namespace {

// What takes the place of a buffer of the step.
struct Place {
  Ref<const Buffer> buffer;  // null for the counter, which isn't in memory
  bool is_row = false;       // the iteration's row of `buffer`
};

class Repeat {
 public:
  Repeat(const Recurrence& r, const ScheduleOptions& options) : r_(r), options_(options) {
    if (r.counter != Recurrence::kNoCounter) places_[input(r.counter).get()] = {};
    for (size_t k = 0; k < r.states.size(); ++k) {
      places_[input(r.states[k].input()).get()] = {r.outputs[k]};
    }
    for (size_t k = 0; k < r.rows.size(); ++k) {
      places_[output(r.rows[k]).get()] = {r.outputs[r.states.size() + k], true};
    }
    for (size_t k = 0; k < r.states.size(); ++k) {
      const Ref<const Buffer>& next = output(r.states[k].output());
      if (places_.contains(next.get())) continue;
      if (is_in_place(k)) {
        places_[next.get()] = {r.outputs[k]};
      } else {
        scratch_.push_back(next);
        places_[next.get()] = {next};
      }
    }
  }

  StmtRef nest(const StmtRef& step) {
    std::vector<StmtRef> begin, end;
    for (size_t k = 0; k < r_.states.size(); ++k) {
      const Ref<const Buffer>& last = r_.outputs[k];
      begin.push_back(copy(last, {input(r_.states[k].input())}));
      const Place& next = places_.at(output(r_.states[k].output()).get());
      if (next.buffer != last) end.push_back(copy(last, next));
    }
    StmtRef loop = for_loop(counter_, index(0), dim_value(r_.trip_count), ForKind::kSerial,
                            seq({placed(step), seq(end)}));
    for (const Ref<const Buffer>& next : scratch_) loop = alloc(next, loop);
    return seq({seq(begin), loop});
  }

 private:
  const Ref<const Buffer>& input(int64_t i) const {
    return r_.step->inputs[static_cast<size_t>(i)];
  }
  const Ref<const Buffer>& output(int64_t i) const {
    return r_.step->outputs[static_cast<size_t>(i)];
  }

  // Whether a state may be overwritten by what it becomes, which no other state does.
  bool is_in_place(size_t k) const {
    const State& state = r_.states[k];
    const auto becomes = [&](const State& other) { return other.output() == state.output(); };
    return std::ranges::count_if(r_.states, becomes) == 1 &&
           std::ranges::any_of(r_.step->in_place, [&](const InPlace& pair) {
             return pair.output() == state.output() && pair.input() == state.input();
           });
  }

  // The offset of an element of a row, as one index, or its indices.
  Array<ExprRef> in_row(const Buffer& row, const Array<ExprRef>& indices) const {
    const bool flat = indices.size() == 1;
    if (flat) return {sum(binary(BinaryOp::kMul, counter_, dim_value(count_of(row))), indices[0])};
    Array<ExprRef> at = {counter_};
    for (const ExprRef& i : indices) at.push_back(i);
    return at;
  }

  static Dim count_of(const Buffer& b) { return product(b.shape.to_vector()); }

  // `last` = `from`, all elements.
  StmtRef copy(const Ref<const Buffer>& last, const Place& from) const {
    const Dim count = count_of(*last);
    auto i = var("i", i64);
    const Array<ExprRef> at = from.is_row ? in_row(*last, {i}) : Array<ExprRef>{i};
    StmtRef element = store(last, {i}, load(from.buffer, at));
    const int64_t lanes = vector_lanes(last->dtype.bytes(), options_.target);
    if (options_.level == ScheduleLevel::kPlain) {
      return for_loop(i, index(0), dim_value(count), ForKind::kSerial, element);
    }
    return vector_range(i, index(0), dim_value(count), lanes, element);
  }

  ExprRef placed(const ExprRef& e) { return rewrite_(e); }

  ExprRef placed_load(const ExprRef& e) const {
    if (e->kind != ExprKind::kLoad) return e;
    const auto& l = static_cast<const Load&>(*e);
    const auto found = places_.find(l.buffer.get());
    if (found == places_.end()) return e;
    const Place& place = found->second;
    if (!place.buffer) return counter_;
    return load(place.buffer, place.is_row ? in_row(*l.buffer, l.indices) : l.indices);
  }

  // Recursive as the nest is.
  StmtRef placed(const StmtRef& s) {
    switch (s->kind) {
      case StmtKind::kSeq: {
        std::vector<StmtRef> all;
        for (const StmtRef& each : static_cast<const Seq&>(*s).body) all.push_back(placed(each));
        return seq(all);
      }
      case StmtKind::kFor: {
        auto f = make<For>(static_cast<const For&>(*s));
        f->begin = placed(f->begin);
        f->extent = placed(f->extent);
        f->body = placed(f->body);
        return f;
      }
      case StmtKind::kStore: {
        const auto& st = static_cast<const Store&>(*s);
        const auto found = places_.find(st.buffer.get());
        const Place place = found == places_.end() ? Place{st.buffer} : found->second;
        const Array<ExprRef> at = st.indices.map([&](const ExprRef& i) { return placed(i); });
        return store(place.buffer, place.is_row ? in_row(*st.buffer, at) : at, placed(st.value));
      }
      case StmtKind::kPrefetch:
        return seq({});  // only a hint: the loops around it read their weights again in each turn
      case StmtKind::kIf: {
        const auto& i = static_cast<const If&>(*s);
        return if_then(placed(i.condition), placed(i.then_body),
                       i.else_body ? placed(i.else_body) : StmtRef());
      }
      case StmtKind::kLet: {
        const auto& l = static_cast<const Let&>(*s);
        return let(l.var, placed(l.value), placed(l.body));
      }
      case StmtKind::kAlloc: {
        const auto& a = static_cast<const Alloc&>(*s);
        return alloc(a.buffer, placed(a.body));
      }
    }
    return s;
  }

  const Recurrence& r_;
  const ScheduleOptions& options_;
  const Ref<const Var> counter_ = var("turn", i64);
  std::unordered_map<const Buffer*, Place> places_;
  std::vector<Ref<const Buffer>> scratch_;  // next states that have no other place
  Rewriter rewrite_{[this](const ExprRef& e) { return placed_load(e); }};
};

}  // namespace

StmtRef repeat_step(const Recurrence& r, const StmtRef& step, const ScheduleOptions& options) {
  return Repeat(r, options).nest(step);
}

}  // namespace tenon::loop
