#include "graph/ir/infer_match_shape.h"

#include <algorithm>

namespace tenon::graph {

namespace {

void require_rank(size_t rank) {
  if (rank <= static_cast<size_t>(kMaxRank)) return;
  throw Error(ErrorKind::Usage, "more dimensions than a shape has")
      .found(cat(rank))
      .expected(cat("at most ", kMaxRank));
}

void refute(const Array<Dim>& known, const Array<Dim>& stated, const TypeRef& t) {
  if (may_match(known, stated)) return;
  throw Error(ErrorKind::Usage, "the value can't match")
      .found(to_text(t))
      .expected(dims_text(stated));
}

bool dims_const(const Array<Dim>& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_const(); });
}

TypeRef match_shape_value(const ShapeType& s, const TypeRef& t, const Array<Dim>& dims) {
  if (s.dims_known) refute(s.dims, dims, t);
  if (s.rank != kUnknownRank && s.rank != static_cast<int64_t>(dims.size())) {
    throw Error(ErrorKind::Usage, "the shape has the wrong rank")
        .found(to_text(t))
        .expected(dims_text(dims));
  }
  return shape_type(dims.to_vector());
}

TypeRef match_dims(const TypeRef& t, const Array<Dim>& dims) {
  if (const auto* x = type_as<TensorType>(t)) {
    if (x->dims_known) refute(x->dims, dims, t);
    if (x->rank != kUnknownRank && x->rank != static_cast<int64_t>(dims.size())) {
      throw Error(ErrorKind::Usage, "the value has the wrong rank")
          .found(to_text(t))
          .expected(dims_text(dims));
    }
    auto out = make<TensorType>(*x);
    out->rank = static_cast<int64_t>(dims.size());
    out->dims_known = true;
    out->dims = dims;
    if (x->value_known && !dims_const(dims)) {
      out->value_known = false;
      out->values.clear();
    }
    return out;
  }
  if (const auto* s = type_as<ShapeType>(t)) return match_shape_value(*s, t, dims);
  throw Error(ErrorKind::Usage, "match_shape needs a tensor or a shape").found(to_text(t));
}

TypeRef match_elements(const TypeRef& t, const Array<Dim>& elements) {
  if (const auto* s = type_as<ScalarType>(t); s && s->dtype == i64) {
    if (elements.size() != 1) {
      throw Error(ErrorKind::Usage, "a scalar has one element").found(dims_text(elements));
    }
    if (s->value_known) refute({s->value}, elements, t);
    auto out = make<ScalarType>(*s);
    out->value_known = true;
    out->value = elements[0];
    return out;
  }
  if (const auto* h = type_as<ShapeType>(t)) return match_shape_value(*h, t, elements);
  const auto* x = type_as<TensorType>(t);
  if (!x || !x->dtype.is_int()) {
    throw Error(ErrorKind::Usage, "match_elements needs a small integer tensor, a shape or an i64")
        .found(to_text(t));
  }
  int64_t count = static_cast<int64_t>(elements.size());
  if (!x->dims_known || x->rank > 1 || count > kMaxCarriedValues ||
      !(x->rank == 0 ? Dim(1) : x->dims[0]).is_const(count)) {
    throw Error(ErrorKind::Usage, cat("match_elements needs a tensor of rank 0 or 1 with ",
                                      counted(static_cast<uint64_t>(count), "element")))
        .found(to_text(t));
  }
  if (x->value_known) refute(x->values, elements, t);
  return with_values(without_values(share(x)), elements.to_vector());
}

}  // namespace

std::optional<Array<Dim>> known_sizes(const MatchShape& e) {
  const TypeRef type = type_of(e.value);
  if (const auto* shape = type_as<ShapeType>(type)) {
    return shape->dims_known ? std::optional(shape->dims) : std::nullopt;
  }
  if (const auto* scalar = type_as<ScalarType>(type)) {
    return scalar->value_known ? std::optional(Array<Dim>{scalar->value}) : std::nullopt;
  }
  const auto* tensor = type_as<TensorType>(type);
  if (!tensor) return std::nullopt;
  if (e.elements) return tensor->value_known ? std::optional(tensor->values) : std::nullopt;
  return tensor->dims_known ? std::optional(tensor->dims) : std::nullopt;
}

bool may_match(const Array<Dim>& known, const Array<Dim>& stated) {
  return std::ranges::equal(known, stated,
                            [](const Dim& a, const Dim& b) { return !proves_differ(a, b); });
}

bool refuses(const MatchShape& e, const Operand& value) {
  auto now = make<MatchShape>(e);
  now->value = value;
  const std::optional<Array<Dim>> known = known_sizes(*now);
  return known && !may_match(*known, e.dims);
}

TypeRef infer_match_shape(const MatchShape& e) {
  TypeRef t = type_of(e.value);
  if (!e.elements || type_as<ShapeType>(t)) require_rank(e.dims.size());
  return e.elements ? match_elements(t, e.dims) : match_dims(t, e.dims);
}

}  // namespace tenon::graph
