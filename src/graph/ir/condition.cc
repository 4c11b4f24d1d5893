#include "graph/ir/condition.h"

#include <algorithm>

#include "graph/ir/infer_match_shape.h"
#include "graph/ir/name_text.h"
#include "graph/ir/walk.h"

namespace tenon::graph {

// Equal and broadcast conditions are symmetric.
std::string check_key(CheckKind kind, const Dim& left, const Dim& right) {
  std::string a = to_text(left), b = to_text(right);
  if (kind != CheckKind::kLessEqual && b < a) std::swap(a, b);
  return cat(static_cast<int>(kind), " ", a, " ? ", b);
}

bool proved(CheckKind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case CheckKind::kEqual:
      return a == b || proves_equal(a, b);
    case CheckKind::kLessEqual:
      return proves_less_equal(a, b);
    case CheckKind::kBroadcast:
      return a == b || a.is_const(1) || b.is_const(1) || proves_equal(a, b);
  }
  return false;
}

bool refuted(CheckKind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case CheckKind::kEqual:
      return proves_differ(a, b);
    case CheckKind::kLessEqual:
      return proves_less_equal(b + 1, a);
    case CheckKind::kBroadcast:
      return a.is_const() && b.is_const() && !proved(kind, a, b);
  }
  return false;
}

bool may_hold(const Block& block) {
  return std::ranges::all_of(block.bindings, [](const Ref<const Binding>& binding) {
    const ExprRef& value = binding->value;
    if (const auto* check = value.as<Check>()) {
      return !refuted(check->kind, check->left, check->right);
    }
    if (const auto* match = value.as<MatchShape>()) {
      const std::optional<Array<Dim>> known = known_sizes(*match);
      return !known || may_match(*known, match->dims);
    }
    bool inner = true;
    for_each_block(value, [&](const BlockRef& b) { inner = inner && may_hold(*b); });
    return inner;
  });
}

std::string condition_text(CheckKind kind, const Dim& left, const Dim& right) {
  const char* sign = kind == CheckKind::kEqual       ? " == "
                     : kind == CheckKind::kLessEqual ? " <= "
                                                     : " ~ ";
  return cat(dim_text(left), sign, dim_text(right));
}

void require_countable(const TypeRef& type, const Span& span) {
  if (const auto* fields = type_as<TupleType>(type)) {
    for (const TypeRef& field : fields->fields) require_countable(field, span);
    return;
  }
  const auto* t = type_as<TensorType>(type);
  if (!t || !t->dims_known) return;
  for (const Dim& d : t->dims) {
    if (d.is_const(0)) return;
  }
  const auto is_countable = [&](const auto& counts) {
    Dim bytes = t->dtype.bytes();
    try {
      for (const Dim& d : t->dims) {
        if (counts(d)) bytes = bytes * d;
      }
    } catch (const SizeError&) {
      return false;
    }
    return true;
  };
  // A product of sums may have more terms than a size; then, the run finds out.
  if (!is_countable([](const Dim&) { return true; }) &&
      !is_countable([](const Dim& d) { return d.is_const(); })) {
    throw Error(ErrorKind::Usage, span, "a tensor has more bytes than 64 bits can count")
        .found(to_text(type))
        .expected("sizes whose product with the element's size is below 2^63");
  }
}

}  // namespace tenon::graph
