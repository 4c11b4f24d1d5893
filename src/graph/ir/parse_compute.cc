// Parses computes in module text.

#include "graph/ir/kernel_words.h"
#include "graph/ir/name_text.h"
#include "graph/ir/parse_scalar.h"
#include "loop/recurrence.h"

namespace tenon::graph {

class ComputeParser : ScalarParser {
 public:
  explicit ComputeParser(Parser* parser) : ScalarParser(parser) {}

  loop::KernelInterfaceRef compute() {
    Array<Ref<const loop::Buffer>> inputs = buffers("around a compute's inputs");
    p_.expect("->", "before a compute's outputs");
    p_.expect("(", "before a compute's outputs");
    std::vector<Token> names;
    p_.list(")", "after a compute's outputs", [&] {
      names.push_back(p_.peek());
      p_.expect_kind(TokenKind::kVar, "the result of a stage");
    });
    const Token integers_at = p_.peek();
    const Array<String> stated = integers();
    std::optional<Repeat> repeat;
    if (p_.accept_word("repeat")) repeat = this->repeat();
    p_.expect("{", "before stages");
    Array<Ref<const loop::Stage>> stages;
    while (!p_.accept("}")) {
      if (stages.size() == kMaxStages) {
        p_.fail("a compute has too many stages", cat("at most ", kMaxStages));
      }
      stages.push_back(stage());
    }
    Array<Ref<const loop::Buffer>> outputs;
    for (const Token& name : names) outputs.push_back(found_buffer(name));
    const loop::ComputeRef step = loop::whole_kernel(inputs, stages, outputs, /*in_bounds=*/false);
    const loop::KernelInterfaceRef made =
        repeat ? loop::KernelInterfaceRef(recurrence(step, *repeat)) : step;
    if (stated.to_vector() != made->integers.to_vector()) {
      std::string wanted;
      for (const String& name : made->integers) {
        wanted += cat(wanted.empty() ? "integers(" : ", ", dim_text(Dim::symbol(name)));
      }
      p_.fail_at(integers_at, "the integers are not the symbols that no parameter binds",
                 wanted.empty() ? "no integers" : wanted + ")");
    }
    return made;
  }

 private:
  // The scratch of each stage becomes a level of nesting in the loop nest.
  static constexpr size_t kMaxStages = 500;

  // What follows the word `repeat`: names of buffers.
  struct Repeat {
    Dim trip_count;
    std::optional<Token> counter;
    std::vector<std::pair<Token, Token>> states;
    std::vector<Token> rows;
  };

  Repeat repeat() {
    Repeat r;
    r.trip_count = p_.dim();
    if (!p_.accept_word("with")) p_.fail("'with' is missing", "repeat n with (state %h = %y)");
    p_.expect("(", "before what iterations take and leave");
    p_.list(")", "after what iterations take and leave", [&] {
      if (p_.accept_word("counter")) {
        if (r.counter) p_.fail("a compute has one counter");
        r.counter = name("the counter");
      } else if (p_.accept_word("state")) {
        const Token now = name("a state");
        p_.expect("=", "between a state and what it becomes");
        r.states.emplace_back(now, name("the result of a stage"));
      } else if (p_.accept_word("rows")) {
        r.rows.push_back(name("the result of a stage"));
      } else {
        p_.fail("what an iteration takes or leaves is missing",
                "counter %i, state %h = %y or rows %y");
      }
    });
    return r;
  }

  Token name(const char* what) {
    const Token found = p_.peek();
    p_.expect_kind(TokenKind::kVar, what);
    return found;
  }

  const Ref<const loop::Buffer>& found_buffer(const Token& name) {
    const Ref<const loop::Buffer>& found = find(name).buffer;
    if (!found) p_.fail_at(name, cat("%", name_text(name.text), " is not a buffer"), "a buffer");
    return found;
  }

  int64_t number_in(const Array<Ref<const loop::Buffer>>& list, const Token& name,
                    const char* what) {
    const Ref<const loop::Buffer>& wanted = found_buffer(name);
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] == wanted) return static_cast<int64_t>(i);
    }
    p_.fail_at(name, cat("%", name_text(name.text), " is not ", what), what);
  }

  loop::RecurrenceRef recurrence(const loop::ComputeRef& step, const Repeat& r) {
    const auto input = [&](const Token& t) { return number_in(step->inputs, t, "an input"); };
    const auto output = [&](const Token& t) { return number_in(step->outputs, t, "an output"); };
    Array<loop::State> states;
    for (const auto& [now, next] : r.states) states.push_back({input(now), output(next)});
    Array<int64_t> rows;
    for (const Token& row : r.rows) rows.push_back(output(row));
    return loop::recurrence(step, r.trip_count,
                            r.counter ? input(*r.counter) : loop::Recurrence::kNoCounter, states,
                            rows);
  }

  Ref<const loop::Stage> stage() {
    auto s = make<loop::Stage>();
    const Token t = p_.peek();
    if (p_.accept_word("map")) {
      s->kind = loop::StageKind::kMap;
    } else if (p_.accept_word("scan")) {
      s->kind = loop::StageKind::kScan;
      if (!p_.accept_word("along")) p_.fail("'along' is missing", "scan along 0 %y: ...");
      s->scan_axis = p_.int_value("the number of an axis");
    } else if (p_.accept_word("reduce")) {
      s->kind = loop::StageKind::kReduce;
      s->reduction = reduction();
      if (p_.accept_word("in")) s->accumulate = p_.dtype();
      s->padding_is_skippable = p_.accept_word("skip_padding");
      s->may_use_winograd = p_.accept_word("winograd");
    } else if (p_.accept_word("scatter")) {
      s->kind = loop::StageKind::kScatter;
      s->reduction = reduction();
    } else {
      p_.fail_at(t, "a stage is missing", "map, reduce, scan or scatter");
    }
    const Token out = p_.peek();
    s->out = buffer();
    // Only a scan may read its own result.
    const bool reads_itself = s->kind == loop::StageKind::kScan;
    if (!reads_itself) forget(out.text);
    if (!p_.accept_word("at")) p_.fail("'at' is missing", "%y: tensor[n; f32] at [%i] { ... }");
    std::vector<std::string_view> axes, reduced;
    p_.expect("[", "before a stage's axes");
    p_.list("]", "after a stage's axes", [&] { s->axes.push_back(axis(&axes)); });
    if (s->kind == loop::StageKind::kReduce) over(s.get(), &reduced);
    block([&] { s->body = expr(); });
    if (s->kind == loop::StageKind::kScatter) {
      for (std::string_view name : axes) forget(name);
      axes.clear();
      over(s.get(), &reduced);
      block([&] {
        p_.expect("[", "before the indices of an update");
        p_.list("]", "after the indices of an update",
                [&] { s->scatter_indices.push_back(expr_of(i64, "an index")); });
        p_.expect("=", "between an element and its update");
        s->update = expr();
      });
    }
    for (const auto* names : {&axes, &reduced}) {
      for (std::string_view name : *names) forget(name);
    }
    if (!reads_itself) declare(out, {s->out, {}});
    return s;
  }

  loop::Reduction reduction() {
    const Token t = p_.peek();
    const auto found = index_of(loop::kReductionNames, p_.expect_word("a reduction"));
    if (!found) {
      p_.fail_at(t, "there is no such reduction",
                 "set, sum, prod, max, min, and, or, argmax_first, ...");
    }
    return static_cast<loop::Reduction>(*found);
  }

  Ref<const loop::Var> axis(std::vector<std::string_view>* names) {
    const Token name = p_.peek();
    p_.expect_kind(TokenKind::kVar, "an axis");
    Ref<const loop::Var> v = new_var(name, i64);
    names->push_back(name.text);
    return v;
  }

  // over [%k < n, ...]
  void over(loop::Stage* s, std::vector<std::string_view>* names) {
    if (!p_.accept_word("over")) p_.fail("'over' is missing", "over [%k < n]");
    p_.expect("[", "before reduced axes");
    p_.list("]", "after reduced axes", [&] {
      if (names->size() == kMaxRank) p_.fail("too many reduced axes", cat("at most ", kMaxRank));
      s->reduce_axes.push_back(axis(names));
      p_.expect("<", "between an axis and its extent");
      s->reduce_extents.push_back(p_.dim());
    });
  }

  // { $0 = ... result }
  template <class F>
  void block(const F& result) {
    p_.expect("{", "before a stage's expression");
    std::vector<std::string_view> outer = open_parts();
    while (p_.peek().kind == TokenKind::kTemp && p_.peek(1).is("=")) part();
    result();
    p_.expect("}", "after a stage's expression");
    close_parts(std::move(outer));
  }
};

loop::KernelInterfaceRef Parser::compute(const Item& item) {
  at_ = item.at + 2;
  try {
    return ComputeParser(this).compute();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Internal) throw;
    breaks_rule(item, e);
  }
}

}  // namespace tenon::graph
