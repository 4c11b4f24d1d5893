#include "graph/pass/simplify_rules.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/ir/permutation.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

using Rule = Operand (*)(Builder& b, const Call& call, const TypeRef& type);

std::vector<int64_t> ints(const Call& call, const char* name) {
  auto array = call.attrs.at(name).as<Array<int64_t>>();
  return array.to_vector();
}

std::vector<Dim> dims(const Call& call, const char* name) {
  auto array = call.attrs.at(name).as<Array<Dim>>();
  return array.to_vector();
}

// ---- the rules ----

Operand drop_same_type(Builder&, const Call& call, const TypeRef& type) {
  return same_tensor(type_of(call.args[0]), type) ? call.args[0] : Operand();
}

Operand reshape_of_reshape(Builder& b, const Call& call, const TypeRef&) {
  if (const Call* inner = call_of(b, call.args[0], op::reshape)) {
    return b.op(op::reshape, {inner->args[0]}, call.attrs);
  }
  return Operand();
}

// Merges two transposes into one, and drops the identity.
Operand transpose_of_transpose(Builder& b, const Call& call, const TypeRef&) {
  std::vector<int64_t> perm = permutation_of(call);
  if (is_identity(perm)) return call.args[0];
  if (auto inner = as_transposed(b, call.args[0])) {
    perm = compose_permutations(inner->perm, perm);
    if (is_identity(perm)) return inner->source;
    return b.op(op::transpose, {inner->source}, attrs({{"perm", attr_ints(perm)}}));
  }
  return Operand();
}

// Of a dequantised constant, the transpose of the constant, which is folded as it is stored.
Operand transpose_of_dequantised(Builder& b, const Call& call, const TypeRef&) {
  const Call* dequantise = call_of(b, call.args[0], op::dequantize_linear);
  if (!dequantise || !dequantise->args[0].is<Constant>()) return Operand();
  const Call& inner = *dequantise;
  const std::vector<int64_t> perm = permutation_of(call);
  const auto rank = static_cast<int64_t>(perm.size());
  auto moved = [&](const Operand& x) {
    const TensorType* type = x ? known_tensor(x) : nullptr;
    return type && type->rank == rank && rank > 1
               ? b.op(op::transpose, {x}, attrs({{"perm", attr_ints(perm)}}))
               : x;
  };
  std::vector<Operand> args = inner.args.to_vector();
  for (Operand& arg : args) arg = moved(arg);
  Attrs attributes = inner.attrs;
  const int64_t old = normalised_axis(attributes.at("axis").as<int64_t>(), rank);
  for (int64_t i = 0; i < rank; ++i) {
    if (perm[static_cast<size_t>(i)] == old) attributes.set("axis", Any(i));
  }
  return b.op(op::dequantize_linear, args, attributes);
}

// A transpose that moves only axes of size 1 becomes a reshape, which moves no data.
Operand transpose_as_reshape(Builder& b, const Call& call, const TypeRef& type) {
  auto* from = known_tensor(type_of(call.args[0]));
  auto* to = known_tensor(type);
  if (!from || !to) return Operand();
  std::vector<int64_t> moved;
  for (int64_t axis : permutation_of(call)) {
    if (!from->dims[axis].is_const(1)) moved.push_back(axis);
  }
  if (!std::is_sorted(moved.begin(), moved.end())) return Operand();
  return reshaped(b, call.args[0], to->dims.to_vector());
}

Operand concat_of_one(Builder&, const Call& call, const TypeRef&) {
  return call.args.size() == 1 ? call.args[0] : Operand();
}

// A kernel searches for the operand that holds an element, and its size grows with their number. So
// many operands are joined in groups first, and then the groups. Where the other sizes are known
// only at run time, it computes more for each operand.
Operand concat_in_groups(Builder& b, const Call& call, const TypeRef& type) {
  std::vector<Operand> parts = call.args.to_vector();
  const auto* tensor = known_tensor(type);
  const auto is_symbolic = [](const Dim& size) { return !size.is_const(); };
  const bool has_symbols = tensor && std::ranges::count_if(tensor->dims, is_symbolic) > 1;
  const size_t most = has_symbols ? 32 : 128;
  if (parts.size() <= most) return Operand();
  while (parts.size() > most) {
    std::vector<Operand> groups;
    for (size_t begin = 0; begin < parts.size(); begin += most) {
      const size_t end = std::min(begin + most, parts.size());
      const auto at = [&](size_t i) { return parts.begin() + static_cast<std::ptrdiff_t>(i); };
      groups.push_back(b.op(op::concat, {at(begin), at(end)}, call.attrs));
    }
    parts = std::move(groups);
  }
  return b.op(op::concat, parts, call.attrs);
}

Operand whole_slice(Builder&, const Call& call, const TypeRef& type) {
  for (const Dim& start : dims(call, "starts")) {
    if (!start.is_const(0)) return Operand();
  }
  for (int64_t step : ints(call, "steps")) {
    if (step != 1) return Operand();
  }
  return same_tensor(type_of(call.args[0]), type) ? call.args[0] : Operand();
}

Operand no_padding(Builder&, const Call& call, const TypeRef&) {
  for (const char* side : {"before", "after"}) {
    for (const Dim& dim : dims(call, side)) {
      if (!dim.is_const(0)) return Operand();
    }
  }
  return call.args[0];
}

// pow(x, 2) is bitwise equal to x * x.
Operand square(Builder& b, const Call& call, const TypeRef& type) {
  if (single_number(call.args[1]) != 2.0 || !same_tensor(type_of(call.args[0]), type)) {
    return Operand();
  }
  return b.op(op::mul, {call.args[0], call.args[0]});
}

// x * 1, x / 1 and x - 0 are x, even for -0 and NaN; -0 + 0 is not -0.
template <int kNeutral>
Operand neutral_right(Builder&, const Call& call, const TypeRef& type) {
  auto value = single_number(call.args[1]);
  if (!value || *value != kNeutral) return Operand();
  if (kNeutral == 0 && std::signbit(*value)) return Operand();
  return same_tensor(type_of(call.args[0]), type) ? call.args[0] : Operand();
}

Operand neutral_left(Builder&, const Call& call, const TypeRef& type) {
  auto value = single_number(call.args[0]);
  if (!value || *value != 1) return Operand();
  return same_tensor(type_of(call.args[1]), type) ? call.args[1] : Operand();
}

Operand relu_of_relu(Builder& b, const Call& call, const TypeRef&) {
  return call_of(b, call.args[0], op::relu) ? call.args[0] : Operand();
}

// Zero points that are all 0 change nothing.
Operand drop_zero_points(Builder& b, const Call& call, const TypeRef&) {
  std::vector<Operand> args = call.args.to_vector();
  bool dropped = false;
  for (size_t i = 2; i < args.size(); ++i) {
    if (!args[i] || !is_filled_with(args[i], 0)) continue;
    args[i] = Operand();
    dropped = true;
  }
  return dropped ? b.op(call.callee, args, call.attrs) : Operand();
}

struct RulesOf {
  OperatorName name;
  std::vector<Rule> rules;
};

const std::vector<RulesOf>& all_rules() {
  static const std::vector<RulesOf> table = {
      {op::cast, {drop_same_type}},
      {op::expand, {drop_same_type}},
      {op::reshape, {drop_same_type, reshape_of_reshape}},
      {op::transpose, {transpose_of_transpose, transpose_of_dequantised, transpose_as_reshape}},
      {op::concat, {concat_of_one, concat_in_groups}},
      {op::slice, {whole_slice}},
      {op::pad, {no_padding}},
      {op::mul, {neutral_right<1>, neutral_left}},
      {op::div, {neutral_right<1>}},
      {op::sub, {neutral_right<0>}},
      {op::pow, {square}},
      {op::relu, {relu_of_relu}},
      {op::matmul_integer, {drop_zero_points}},
      {op::conv_integer, {drop_zero_points}},
  };
  return table;
}

}  // namespace

Operand apply_simplify_rules(Builder& b, const Call& call, const TypeRef& type) {
  for (const RulesOf& of : all_rules()) {
    if (!is_op(call, of.name)) continue;
    for (Rule rule : of.rules) {
      if (Operand result = rule(b, call, type)) return result;
    }
  }
  return Operand();
}

}  // namespace tenon::graph
