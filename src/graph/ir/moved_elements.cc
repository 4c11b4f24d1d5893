#include "graph/ir/moved_elements.h"

#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

constexpr int kMostMoves = 16;

std::optional<std::vector<int64_t>> constants(const auto& dims) {
  std::vector<int64_t> found;
  for (const Dim& d : dims) {
    const auto known = d.as_const();
    if (!known) return std::nullopt;
    found.push_back(*known);
  }
  return found;
}

// Places of a result with these sizes in what it is made of: `first`, and the distance along each
// axis.
struct Places {
  std::vector<int64_t> sizes, steps;
  int64_t first = 0;
};

std::vector<int64_t> strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> found(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) found[i - 1] = found[i] * sizes[i];
  return found;
}

std::optional<Places> places_of(const Call& call, const std::vector<int64_t>& from) {
  const std::vector<int64_t> stride = strides(from);
  Places p;
  if (is_op(call, op::transpose)) {
    for (const int64_t axis : call.attrs.at("perm").as<Array<int64_t>>()) {
      p.sizes.push_back(from.at(static_cast<size_t>(axis)));
      p.steps.push_back(stride.at(static_cast<size_t>(axis)));
    }
    return p;
  }
  if (!is_op(call, op::slice)) return std::nullopt;
  const auto starts = constants(call.attrs.at("starts").as<Array<Dim>>()),
             sizes = constants(call.attrs.at("sizes").as<Array<Dim>>());
  if (!starts || !sizes) return std::nullopt;
  p.sizes = *sizes;
  if (const Any* steps = call.attrs.find("steps")) {
    p.steps = steps->as<Array<int64_t>>().to_vector();
  }
  p.steps.resize(from.size(), 1);
  for (size_t i = 0; i < from.size(); ++i) {
    p.first += starts->at(i) * stride[i];
    p.steps[i] *= stride[i];
  }
  return p;
}

std::optional<std::vector<Dim>> taken(const std::vector<Dim>& from, const Places& p) {
  int64_t count = 1;
  for (const int64_t size : p.sizes) count *= size;
  std::vector<Dim> found;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at = p.first;
    for (size_t axis = p.sizes.size(); axis-- > 0;) {
      at += rest % p.sizes[axis] * p.steps[axis];
      rest /= p.sizes[axis];
    }
    if (at < 0 || at >= static_cast<int64_t>(from.size())) return std::nullopt;
    found.push_back(from[static_cast<size_t>(at)]);
  }
  return found;
}

}  // namespace

std::optional<std::vector<Dim>> moved_elements(const Builder& builder, const Operand& value) {
  std::vector<Places> moves;  // the last first
  Operand source = value;
  for (int i = 0; i < kMostMoves; ++i) {
    const TensorType* type = known_tensor(source);
    if (!type || !type->dtype.is_int()) return std::nullopt;
    if (type->value_known) {
      std::optional<std::vector<Dim>> elements = type->values.to_vector();
      for (size_t k = moves.size(); k-- > 0 && elements;) elements = taken(*elements, moves[k]);
      return elements;
    }
    const ExprRef definition = builder.definition_of(source);
    const Call* call = definition ? definition.as<Call>() : nullptr;
    if (!call || call->args.empty()) return std::nullopt;
    if (!is_op(*call, op::reshape)) {
      const TensorType* from = known_tensor(call->args[0]);
      const auto sizes = from ? constants(from->dims) : std::nullopt;
      auto places = sizes ? places_of(*call, *sizes) : std::nullopt;
      if (!places) return std::nullopt;
      moves.push_back(std::move(*places));
    }
    source = call->args[0];
  }
  return std::nullopt;
}

}  // namespace tenon::graph
