// Control flow, whose inner graphs become blocks.

#include <algorithm>

#include "import/onnx/container.h"
#include "import/onnx/loop_builder.h"

namespace tenon::onnx {

namespace {

bool only(const Graph& graph, std::initializer_list<const char*> ops) {
  return graph.outputs.size() == 1 &&
         std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
           return std::find(ops.begin(), ops.end(), n.op) != ops.end();
         });
}

// The type that both arms' results are made to have, if they aren't tensors: an arm may have to be
// told the type of an empty sequence, an absent optional value, or a value that the other arm makes
// optional. Null if there is nothing to tell.
graph::TypeRef told(NodeContext& cx, const Operand& a, const Operand& b) {
  auto is_tensor = [](const Operand& x) { return graph::type_of(x).is<graph::TensorType>(); };
  if (is_tensor(a) && is_tensor(b)) return nullptr;
  const graph::TypeRef joined =
      join_open(cx, in_scope(cx, open_type(cx, a)), in_scope(cx, open_type(cx, b)));
  if (!joined) {
    cx.invalid(cat("branches with results of type ", to_text(graph::type_of(a)), " and ",
                   to_text(graph::type_of(b))),
               "results of one type");
  }
  const graph::TypeRef type = closed(joined);
  auto fits = [&](const Operand& x) {
    return graph::is_subtype(graph::type_of(x), type, cx.b.signatures().variances());
  };
  return fits(a) && fits(b) ? nullptr : type;
}

Operands if_node(NodeContext& cx) {
  const Graph& then_graph = cx.attr_graph("then_branch");
  const Graph& else_graph = cx.attr_graph("else_branch");
  if (then_graph.outputs.size() != else_graph.outputs.size()) {
    cx.invalid(cat("branches with ", then_graph.outputs.size(), " and ", else_graph.outputs.size(),
                   " outputs"),
               "as many of both");
  }
  // A constant condition needs no `if`; the branch that isn't taken is ignored.
  if (auto known = cx.number(cx.in(0))) {
    auto results = cx.run_graph(*known != 0 ? then_graph : else_graph, {});
    if (!results) cx.give_up();
    return *results;
  }
  size_t count = then_graph.outputs.size();
  if (count == 0) return {};
  // PyTorch exports squeeze(axis) as: if the axis has size 1, squeeze, else keep the tensor. Later
  // operators need to know the rank, so the axis is checked to be 1.
  if (only(then_graph, {"Squeeze", "Constant"}) && only(else_graph, {"Identity"})) {
    // Squeeze itself says first which axis it is.
    auto results = cx.run_graph(then_graph, {});
    if (!results) cx.give_up();
    Dim holds = cx.elements(cx.cast(cx.in(0), i64)).at(0);
    cx.b.check(graph::CheckKind::kEqual, holds, 1,
               "this If is compiled for its branch that squeezes; its condition");
    return *results;
  }
  Operand condition = cx.in(0);
  if (cx.rank(condition) > 0) condition = cx.reshape(condition, {});
  std::vector<graph::TypeRef> types(count);
  auto arm = [&](const Graph& graph, Operands* results) {
    cx.b.begin_block();
    auto made = cx.run_graph(graph, {});
    if (made) {
      for (size_t i = 0; i < count; ++i) {
        if (types[i]) (*made)[i] = as_type(cx, (*made)[i], types[i]);
      }
      *results = *made;
    }
    cx.b.at(Span::node(cx.node().name));
    return cx.b.finish_block(!made ? Operand() : count == 1 ? (*made)[0] : cx.b.tuple(*made));
  };
  auto both = make<graph::If>();
  both->condition = condition;
  Operands then_results, else_results;
  both->then_block = arm(then_graph, &then_results);
  both->else_block = arm(else_graph, &else_results);
  if (then_results.empty() || else_results.empty()) cx.give_up();
  bool again = false;
  for (size_t i = 0; i < count; ++i) {
    types[i] = told(cx, then_results[i], else_results[i]);
    again = again || types[i];
  }
  if (again) {
    both->then_block = arm(then_graph, &then_results);
    both->else_block = arm(else_graph, &else_results);
  }
  Operand all = cx.b.bind(both);
  if (count == 1) return {all};
  Operands out;
  for (size_t i = 0; i < count; ++i) out.push_back(cx.b.field(all, static_cast<int64_t>(i)));
  return out;
}

// The iteration and the condition are scalars, but bodies may declare one element of rank 1.
Operand as_declared(NodeContext& cx, const Operand& scalar, const Graph& body, size_t input) {
  if (input >= body.inputs.size()) return scalar;
  const ValueType& type = body.inputs[input].type;
  return type.has_shape ? cx.reshape(scalar, Dims(type.shape.size(), Dim(1))) : scalar;
}

// Body: (iteration, condition, variables...) -> (condition, variables..., yields...)
Operands loop_node(NodeContext& cx) {
  const Graph& body = cx.attr_graph("body");
  if (cx.count() < 2)
    cx.invalid(cat(cx.count(), " operands"),
               "at least a trip count and a condition, which may have empty names");
  size_t variables = cx.count() - 2;
  if (body.outputs.size() < variables + 1) {
    cx.invalid(cat("a body with ", body.outputs.size(), " outputs"),
               cat("at least ", variables + 1, ": the condition and ", variables, " variables"));
  }
  LoopSpec spec;
  if (cx.has(0)) {
    spec.limit = cx.reshape(cx.cast(cx.in(0), i64), {});
    if (auto count = cx.values(spec.limit)) spec.count = count->at(0);
  }
  if (cx.has(1)) spec.go_on = cx.reshape(cx.in(1), {});
  for (size_t i = 0; i < variables; ++i) spec.init.push_back(cx.in(2 + i));
  for (size_t k = 1 + variables; k < body.outputs.size(); ++k) {
    spec.yields.push_back(body.outputs[k].type);
  }
  spec.step = [&](const Operand& index, const Operands& states) -> std::optional<LoopStep> {
    Operands inputs = {as_declared(cx, index, body, 0),
                       as_declared(cx, cx.scalar(boolean, 1), body, 1)};
    inputs.insert(inputs.end(), states.begin(), states.end());
    auto results = cx.run_graph(body, inputs);
    if (!results) return std::nullopt;
    auto begin = results->begin(), middle = begin + 1 + static_cast<std::ptrdiff_t>(variables);
    return LoopStep{*begin, Operands(begin + 1, middle), Operands(middle, results->end())};
  };
  LoopResult r = build_loop(cx, spec);
  r.states.insert(r.states.end(), r.yields.begin(), r.yields.end());
  return r.states;
}

std::vector<bool> directions(NodeContext& cx, const char* name, size_t count) {
  Ints given = cx.attr_ints(name, Ints(count, 0));
  if (given.size() != count) cx.invalid(cat(name, " has ", given.size(), " entries"), cat(count));
  return std::vector<bool>(given.begin(), given.end());
}

// The parts of a Scan: `inputs` sequences after `states` states, and `yields` outputs of each
// iteration.
struct ScanParts {
  const Graph& body;
  size_t inputs = 0, states = 0, yields = 0;
  std::vector<bool> backwards;
};

// `first` is the first operand that is a state.
ScanParts parts_of(NodeContext& cx, size_t first, const char* directions_attr) {
  ScanParts p{cx.attr_graph("body"), 0, 0, 0, {}};
  const size_t given = cx.count() < first ? 0 : cx.count() - first;
  int64_t sequences = cx.attr_int("num_scan_inputs");
  if (sequences < 1 || sequences > static_cast<int64_t>(given)) {
    cx.invalid(cat("num_scan_inputs=", sequences), cat("1 to ", given, ", the number of operands"));
  }
  p.inputs = static_cast<size_t>(sequences);
  p.states = given - p.inputs;
  if (p.body.outputs.size() < p.states) {
    cx.invalid(cat("a body with ", p.body.outputs.size(), " outputs"),
               cat("at least ", p.states, ", the number of states"));
  }
  p.yields = p.body.outputs.size() - p.states;
  p.backwards = directions(cx, directions_attr, p.inputs);
  return p;
}

// The loop over the sequences' elements along `axes`. Body: (states..., elements...) ->
// (states..., yields...)
LoopResult scan(NodeContext& cx, const ScanParts& p, const Operands& states, const Operands& over,
                const Ints& axes) {
  LoopSpec spec;
  spec.init = states;
  spec.count = cx.dims(over[0])[static_cast<size_t>(axes[0])];
  for (size_t k = 1; k < p.inputs; ++k) {
    cx.b.check(graph::CheckKind::kEqual, *spec.count,
               cx.dims(over[k])[static_cast<size_t>(axes[k])], "scan: lengths of the sequences");
  }
  spec.limit = cx.reshape(
      cx.op("shape_of", {over[0]}, graph::attrs({{"start", axes[0]}, {"end", axes[0] + 1}})), {});
  for (size_t k = p.states; k < p.body.outputs.size(); ++k) {
    spec.yields.push_back(p.body.outputs[k].type);
  }
  spec.step = [&](const Operand& index, const Operands& vars) -> std::optional<LoopStep> {
    Operands given = vars;
    for (size_t k = 0; k < p.inputs; ++k) {
      given.push_back(cx.op("gather", {over[k], index}, graph::attrs({{"axis", axes[k]}})));
    }
    auto results = cx.run_graph(p.body, given);
    if (!results) return std::nullopt;
    auto middle = results->begin() + static_cast<std::ptrdiff_t>(p.states);
    return LoopStep{{}, Operands(results->begin(), middle), Operands(middle, results->end())};
  };
  return build_loop(cx, spec);
}

Operands scan_node(NodeContext& cx) {
  const ScanParts p = parts_of(cx, 0, "scan_input_directions");
  std::vector<bool> backwards_out = directions(cx, "scan_output_directions", p.yields);
  Ints axes = cx.attr_ints("scan_input_axes", Ints(p.inputs, 0));
  Ints axes_out = cx.attr_ints("scan_output_axes", Ints(p.yields, 0));
  if (axes.size() != p.inputs || axes_out.size() != p.yields) {
    cx.invalid(cat("scan_input_axes and scan_output_axes of ", axes.size(), " and ",
                   axes_out.size(), " entries"),
               cat(p.inputs, " and ", p.yields));
  };
  Operands over, states;
  for (size_t k = 0; k < p.inputs; ++k) {
    Operand x = cx.in(p.states + k);
    axes[k] = cx.axis(axes[k], cx.rank(x));
    over.push_back(p.backwards[k] ? cx.reversed(x, axes[k]) : x);
  }
  for (size_t k = 0; k < p.states; ++k) states.push_back(cx.in(k));
  LoopResult r = scan(cx, p, states, over, axes);
  for (size_t k = 0; k < p.yields; ++k) {
    Operand y = backwards_out[k] ? cx.reversed(r.yields[k], 0) : r.yields[k];
    r.states.push_back(cx.with_first_at(y, cx.axis(axes_out[k], cx.rank(y))));
  }
  return r.states;
}

// Before opset 9: (lengths, states [batch, ...]..., sequences [batch, length, ...]...), and outputs
// of these shapes. Outputs of a sequence that is shorter than the longest end in zeros.
Operands scan_batch(NodeContext& cx) {
  const ScanParts p = parts_of(cx, 1, "directions");
  const Operand lengths = cx.opt(0);
  const Dims first = cx.dims(1 + p.states);
  LoopSpec spec;
  spec.count = first[0];
  for (size_t k = 1; k < cx.count(); ++k) {
    cx.b.check(graph::CheckKind::kEqual, *spec.count, cx.dims(k)[0], "scan: sizes of the batch");
  }
  if (lengths) {
    cx.b.check(graph::CheckKind::kEqual, *spec.count, cx.dims(lengths)[0],
               "scan: the number of lengths");
  }
  spec.limit = cx.dim_scalar(*spec.count);
  spec.yields.resize(p.states + p.yields);
  spec.step = [&](const Operand& index, const Operands&) -> std::optional<LoopStep> {
    auto of_batch = [&](const Operand& x) {
      return cx.op("gather", {x, index}, graph::attrs({{"axis", 0}}));
    };
    const Dim longest = first[1];
    const Dim length = lengths ? cx.elements(of_batch(lengths))[0] : longest;
    Operands states, over;
    for (size_t k = 0; k < p.states; ++k) states.push_back(of_batch(cx.in(1 + k)));
    for (size_t k = 0; k < p.inputs; ++k) {
      const Operand x = cx.slice(of_batch(cx.in(1 + p.states + k)), 0, 0, length);
      over.push_back(p.backwards[k] ? cx.reversed(x, 0) : x);
    }
    LoopResult r = scan(cx, p, states, over, Ints(p.inputs, 0));
    LoopStep step{{}, {}, std::move(r.states)};
    for (const Operand& y : r.yields) {
      Dims before(static_cast<size_t>(cx.rank(y)), Dim(0)), after = before;
      after[0] = longest - length;
      step.yields.push_back(lengths ? cx.op("pad", {y, cx.scalar_like(y, 0)},
                                            graph::attrs({{"before", graph::attr_dims(before)},
                                                          {"after", graph::attr_dims(after)}}))
                                    : y);
    }
    return step;
  };
  return build_loop(cx, spec).yields;
}

}  // namespace

void register_control(OpTable& t) {
  t.add("If", 1, if_node);
  t.add("Loop", 1, loop_node);
  t.add("Scan", 8, scan_batch);
  t.add("Scan", 9, scan_node);
}

}  // namespace tenon::onnx
