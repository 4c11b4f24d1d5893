#include "graph/pass/choose_layouts.h"

#include <string_view>
#include <unordered_map>

#include "graph/ir/rewrite.h"
#include "graph/pass/simplify_rules.h"

namespace tenon::graph {
namespace {

const std::vector<int64_t> kToLast = {0, 2, 3, 1};         // NCHW -> NHWC
const std::vector<int64_t> kToFirst = {0, 3, 1, 2};        // NHWC -> NCHW
const std::vector<int64_t> kWeightsToLast = {2, 3, 1, 0};  // OIHW -> HWIO

const TensorType* known_tensor(const Operand& operand) {
  auto* tensor = operand ? type_of(operand).as<TensorType>() : nullptr;
  return tensor && tensor->dims_known ? tensor : nullptr;
}

Operand transposed(Builder& b, const Operand& x, const std::vector<int64_t>& perm) {
  if (auto inner = as_transposed(b, x)) {
    const auto composed = compose_permutations(inner->perm, perm);
    if (is_identity(composed)) return inner->source;
    return b.op("transpose", {inner->source}, attrs({{"perm", attr_ints(composed)}}));
  }
  return b.op("transpose", {x}, attrs({{"perm", attr_ints(perm)}}));
}

// ---- operators on images, run channels-last ----

Operand image_op_last(Builder& b, const Call& call) {
  auto* x = known_tensor(call.args[0]);
  auto* layout = call.attrs.find("layout");
  if (!x || x->rank != 4 || !layout || !(layout->as<String>() == "NCHW")) return Operand();
  if (auto* indices = call.attrs.find("indices"); indices && indices->as<bool>()) {
    return Operand();
  }
  std::vector<Operand> args(call.args.begin(), call.args.end());
  args[0] = transposed(b, args[0], kToLast);
  if (args.size() > 1 && args[1]) args[1] = transposed(b, args[1], kWeightsToLast);
  Attrs attributes = call.attrs;
  attributes.set("layout", Any(String("NHWC")));
  return transposed(b, b.op(call.callee, args, attributes), kToFirst);
}

// ---- transposes move down through what does not mind ----
// With t = transpose(s, p): op(t) = transpose(op'(s), p), where axis a of t is axis p[a] of s.

using Sink = Operand (*)(Builder& b, const Call& call, const Transposed& t);

Operand sink_elementwise(Builder& b, const Call& call, const Transposed& t) {
  return transposed(b, b.op(call.callee, {t.source}, call.attrs), t.perm);
}

// Every operand is transposed alike, or a constant, which is transposed back at compile time.
Operand sink_broadcast(Builder& b, const Call& call, const Transposed& t) {
  const auto back = inverse_permutation(t.perm);
  const size_t rank = t.perm.size();
  std::vector<Operand> args;
  for (const Operand& arg : call.args) {
    if (!arg) {
      args.push_back(arg);
      continue;
    }
    if (auto other = as_transposed(b, arg); other && other->perm == t.perm) {
      args.push_back(other->source);
      continue;
    }
    auto* type = known_tensor(arg);
    if (!type || type->dims.size() > rank) return Operand();
    if (product({type->dims.begin(), type->dims.end()}).is_const(1)) {
      args.push_back(type->rank == 0 ? arg
                                     : b.op("reshape", {arg}, attrs({{"shape", attr_dims({})}})));
      continue;
    }
    if (!arg.is<Constant>()) return Operand();
    std::vector<Dim> shape(rank - type->dims.size(), Dim(1));
    shape.insert(shape.end(), type->dims.begin(), type->dims.end());
    args.push_back(
        transposed(b, b.op("reshape", {arg}, attrs({{"shape", attr_dims(shape)}})), back));
  }
  return transposed(b, b.op(call.callee, args, call.attrs), t.perm);
}

int64_t mapped_axis(const Call& call, const Transposed& t) {
  const int64_t axis = call.attrs.at("axis").as<int64_t>();
  return t.perm[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(t.perm.size()) : axis)];
}

Operand sink_one_axis(Builder& b, const Call& call, const Transposed& t) {
  std::vector<Operand> args(call.args.begin(), call.args.end());
  args[0] = t.source;
  Attrs attributes = call.attrs;
  attributes.set("axis", Any(mapped_axis(call, t)));
  return transposed(b, b.op(call.callee, args, attributes), t.perm);
}

Operand sink_concat(Builder& b, const Call& call, const Transposed& t) {
  std::vector<Operand> args;
  for (const Operand& arg : call.args) {
    auto other = as_transposed(b, arg);
    if (!other || other->perm != t.perm) return Operand();
    args.push_back(other->source);
  }
  Attrs attributes = call.attrs;
  attributes.set("axis", Any(mapped_axis(call, t)));
  return transposed(b, b.op("concat", args, attributes), t.perm);
}

Operand sink_reduction(Builder& b, const Call& call, const Transposed& t) {
  if (!call.attrs.at("keepdims").as<bool>()) return Operand();
  std::vector<int64_t> axes;
  for (int64_t axis : call.attrs.at("axes").as<Array<int64_t>>()) {
    axes.push_back(
        t.perm[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(t.perm.size()) : axis)]);
  }
  Attrs attributes = call.attrs;
  attributes.set("axes", attr_ints(axes));
  return transposed(b, b.op(call.callee, {t.source}, attributes), t.perm);
}

Operand sink_pad(Builder& b, const Call& call, const Transposed& t) {
  Attrs attributes = call.attrs;
  for (const char* side : {"before", "after"}) {
    const auto old = call.attrs.at(side).as<Array<Dim>>();
    std::vector<Dim> now(old.size());
    for (size_t i = 0; i < old.size(); ++i) now[static_cast<size_t>(t.perm[i])] = old[i];
    attributes.set(side, attr_dims(now));
  }
  std::vector<Operand> args(call.args.begin(), call.args.end());
  args[0] = t.source;
  return transposed(b, b.op("pad", args, attributes), t.perm);
}

const std::unordered_map<std::string_view, Sink>& sinks() {
  static const std::unordered_map<std::string_view, Sink> table = {
      {"concat", sink_concat},
      {"pad", sink_pad},
      {"lrn", sink_one_axis},
      {"reduce_mean", sink_reduction},
      {"reduce_sum", sink_reduction},
      {"reduce_max", sink_reduction},
      {"reduce_min", sink_reduction},
      {"quantize_linear", sink_one_axis},
      {"dequantize_linear", sink_one_axis},
  };
  return table;
}

class LayoutChooser : public Rewriter {
 protected:
  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const Operator* op = operator_of(value);
    if (!op) return keep(var, value);
    const Call& call = *value.as<Call>();
    if (op->name == std::string_view("conv") || op->name == std::string_view("max_pool") ||
        op->name == std::string_view("avg_pool")) {
      if (Operand last = image_op_last(builder(), call)) return last;
      return keep(var, value);
    }
    for (const Operand& arg : call.args) {
      auto t = as_transposed(builder(), arg);
      if (!t || t->perm.size() != 4) continue;
      if (Operand sunk = sink(*op, call, *t)) return sunk;
      break;
    }
    return keep(var, value);
  }

 private:
  Operand sink(const Operator& op, const Call& call, const Transposed& t) {
    if (auto it = sinks().find(op.name); it != sinks().end()) {
      return as_transposed(builder(), call.args[0]) ? it->second(builder(), call, t) : Operand();
    }
    if (op.kind == OpKind::kElementwise && call.args.size() == 1) {
      return sink_elementwise(builder(), call, t);
    }
    if (op.kind == OpKind::kBroadcast) return sink_broadcast(builder(), call, t);
    return Operand();
  }
};

}  // namespace

Module choose_layouts(const Module& module, PassContext&) {
  return LayoutChooser().run(module);
}

}  // namespace tenon::graph
