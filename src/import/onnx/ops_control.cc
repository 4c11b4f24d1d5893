// Control flow, whose inner graphs become blocks.

#include <algorithm>

#include "import/onnx/loop_builder.h"

namespace tenon::onnx {

namespace {

bool only(const Graph& graph, std::initializer_list<const char*> ops) {
  return graph.outputs.size() == 1 &&
         std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
           return std::find(ops.begin(), ops.end(), n.op) != ops.end();
         });
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
    Dim holds = cx.elements(cx.cast(cx.in(0), i64)).at(0);
    cx.b.check(graph::CheckKind::kEqual, holds, 1, "only the branch that squeezes is compiled");
    auto results = cx.run_graph(then_graph, {});
    if (!results) cx.give_up();
    return *results;
  }
  Operand condition = cx.in(0);
  if (cx.rank(condition) > 0) condition = cx.reshape(condition, {});
  bool failed = false;
  auto branch = [&](const Graph& graph) {
    return [&]() -> Operand {
      auto results = cx.run_graph(graph, {});
      if (!results) {
        // The block must have a result; the importer gives up the node after both branches.
        failed = true;
        return cx.integer(0);
      }
      return count == 1 ? (*results)[0] : cx.b.tuple(*results);
    };
  };
  Operand all;
  try {
    all = cx.b.if_(condition, branch(then_graph), branch(else_graph));
  } catch (const Error&) {
    if (failed) cx.give_up();
    throw;
  }
  if (failed) cx.give_up();
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
  spec.yields = body.outputs.size() - 1 - variables;
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

// x with its first axis moved to `axis`.
Operand with_first_at(NodeContext& cx, const Operand& x, int64_t axis) {
  Ints perm;
  for (int64_t i = 1; i < cx.rank(x); ++i) perm.push_back(i);
  perm.insert(perm.begin() + axis, 0);
  return cx.transpose(x, perm);
}

// Body: (states..., elements...) -> (states..., yields...), over the sequences' elements.
Operands scan_node(NodeContext& cx) {
  const Graph& body = cx.attr_graph("body");
  int64_t sequences = cx.attr_int("num_scan_inputs");
  if (sequences < 1 || sequences > static_cast<int64_t>(cx.count())) {
    cx.invalid(cat("num_scan_inputs=", sequences),
               cat("1 to ", cx.count(), ", the number of operands"));
  }
  size_t inputs = static_cast<size_t>(sequences), states = cx.count() - inputs;
  if (body.outputs.size() < states) {
    cx.invalid(cat("a body with ", body.outputs.size(), " outputs"),
               cat("at least ", states, ", the number of states"));
  }
  size_t yields = body.outputs.size() - states;
  std::vector<bool> backwards = directions(cx, "scan_input_directions", inputs);
  std::vector<bool> backwards_out = directions(cx, "scan_output_directions", yields);
  Ints axes = cx.attr_ints("scan_input_axes", Ints(inputs, 0));
  Ints axes_out = cx.attr_ints("scan_output_axes", Ints(yields, 0));
  if (axes.size() != inputs || axes_out.size() != yields) {
    cx.invalid(cat("scan_input_axes and scan_output_axes of ", axes.size(), " and ",
                   axes_out.size(), " entries"),
               cat(inputs, " and ", yields));
  };
  Operands over;
  for (size_t k = 0; k < inputs; ++k) {
    Operand x = cx.in(states + k);
    axes[k] = cx.axis(axes[k], cx.rank(x));
    over.push_back(backwards[k] ? cx.reversed(x, axes[k]) : x);
  }
  LoopSpec spec;
  spec.count = cx.dims(over[0])[static_cast<size_t>(axes[0])];
  for (size_t k = 1; k < inputs; ++k) {
    cx.b.check(graph::CheckKind::kEqual, *spec.count,
               cx.dims(over[k])[static_cast<size_t>(axes[k])], "scan: lengths of the sequences");
  }
  spec.limit = cx.reshape(
      cx.op("shape_of", {over[0]}, graph::attrs({{"start", axes[0]}, {"end", axes[0] + 1}})), {});
  for (size_t k = 0; k < states; ++k) spec.init.push_back(cx.in(k));
  spec.yields = yields;
  spec.step = [&](const Operand& index, const Operands& vars) -> std::optional<LoopStep> {
    Operands given = vars;
    for (size_t k = 0; k < inputs; ++k) {
      given.push_back(cx.op("gather", {over[k], index}, graph::attrs({{"axis", axes[k]}})));
    }
    auto results = cx.run_graph(body, given);
    if (!results) return std::nullopt;
    auto middle = results->begin() + static_cast<std::ptrdiff_t>(states);
    return LoopStep{{}, Operands(results->begin(), middle), Operands(middle, results->end())};
  };
  LoopResult r = build_loop(cx, spec);
  for (size_t k = 0; k < yields; ++k) {
    Operand y = backwards_out[k] ? cx.reversed(r.yields[k], 0) : r.yields[k];
    r.states.push_back(with_first_at(cx, y, cx.axis(axes_out[k], cx.rank(y))));
  }
  return r.states;
}

}  // namespace

void register_control(OpTable& t) {
  t.add("If", 1, if_node);
  t.add("Loop", 1, loop_node);
  t.add("Scan", 9, scan_node);
}

}  // namespace tenon::onnx
