#include "tools/tenon/compare.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "object/array.h"
#include "object/cell.h"
#include "object/reflect.h"
#include "support/text.h"
#include "tools/tenon/tensor_text.h"

namespace tenon::tool {
namespace {

// What single values differ by.
Difference difference_of_scalars(const Any& found, const Any& expected,
                                 const Criterion& criterion) {
  const Tolerance tolerance{.rtol = criterion.rtol,
                            .atol = criterion.atol.value_or(report::kLeastAtol)};
  Difference out;
  out.tolerance = tolerance;
  out.count = 1;
  if (expected.type_index == TypeIndex::Float) {
    const auto f = found.as<double>(), e = expected.as<double>();
    out.exact = false;
    out.nans = std::isnan(f) && std::isnan(e);
    if (std::isfinite(f - e)) out.largest = std::abs(f - e);
    out.equal = f == e || out.nans == 1 || !report::beyond(f, e, tolerance);
  } else {
    out.equal = structural_equal(found, expected);
  }
  return out;
}

// Two values to compare, which the values around them keep alive: fields of those at `parent`.
struct Part {
  const Any* found;
  const Any* expected;
  size_t parent;
  size_t field;
};
constexpr size_t kWhole = SIZE_MAX;  // parent of the values that are compared

// "field 1 field 0", from the outermost field.
std::string place_of(const std::vector<Part>& parts, size_t at) {
  constexpr size_t kMost = 8;  // fields in a message
  std::vector<size_t> fields;
  for (; parts[at].parent != kWhole; at = parts[at].parent) fields.push_back(parts[at].field);
  std::string out;
  for (size_t i = 0; i < std::min(fields.size(), kMost); ++i) {
    out += cat(i ? " " : "", "field ", fields[fields.size() - 1 - i]);
  }
  if (fields.size() > kMost) out += cat(" ... (", fields.size(), " fields deep)");
  return out;
}

std::string texts_of(const Any& found, const Any& expected) {
  return cat("expected ", value_text(expected), ", found ", value_text(found));
}

std::span<const Any> fields_of(const Any& value) {
  if (const auto* cell = value.as_object<CellObj>()) {
    return {cell->begin(), static_cast<size_t>(cell->size)};
  }
  const auto array = value.as<Array<Any>>();
  return {array.any_begin(), array.size()};
}

// Neither has parts. With a `kind`, they can't be compared.
Difference difference_of_leaves(const Any& found, const Any& expected, const Criterion& criterion) {
  const auto tensor = expected.try_as<Tensor>(), other = found.try_as<Tensor>();
  if (tensor && *tensor && other && *other) return compare(*other, *tensor, criterion);
  Difference out;
  if (found.type_index != expected.type_index) {
    out.equal = false;
    out.kind = texts_of(found, expected);
    return out;
  }
  out = difference_of_scalars(found, expected, criterion);
  if (!out.equal) {
    out.mismatches = 1;
    out.worst = texts_of(found, expected);
  }
  return out;
}

void add(Difference& whole, const Difference& part, const std::string& place) {
  const bool worse = part.equal == whole.equal ? part.largest > whole.largest : !part.equal;
  if (worse || whole.count == 0) whole.tolerance = part.tolerance;
  if (worse) {
    whole.place = cat(place, place.empty() || part.place.empty() ? "" : " ", part.place);
    whole.worst = part.worst;
  }
  whole.equal = whole.equal && part.equal;
  whole.exact = whole.exact && part.exact;
  whole.count += part.count;
  whole.mismatches += part.mismatches;
  whole.nans += part.nans;
  whole.noise = std::fmax(whole.noise, part.noise);
  whole.largest = std::max(whole.largest, part.largest);
}

// How two values with parts differ, apart from these; empty if they have as many parts to compare.
std::string difference_in_kind(const Any& found, const Any& expected) {
  const auto* e = expected.as_object<CellObj>();
  const auto* f = found.as_object<CellObj>();
  if (found.type_index != expected.type_index || (e && e->tag != f->tag)) {
    return texts_of(found, expected);
  }
  const size_t count = fields_of(expected).size();
  if (fields_of(found).size() == count) return "";
  return cat("expected ", counted(count, "field"), ", found ", fields_of(found).size());
}

}  // namespace

// Values may be nested to any depth, and share their parts: each pair of cells is compared once.
Difference compare_values(const Any& found, const Any& expected, const Criterion& criterion) {
  Difference out;
  std::vector<Part> parts{{&found, &expected, kWhole, 0}};
  std::vector<size_t> open{0};
  std::set<std::pair<const void*, const void*>> seen;
  while (!open.empty()) {
    const size_t at = open.back();
    const auto [f, e, parent, field] = parts[at];
    open.pop_back();
    const bool has_parts = e->type_index == TypeIndex::Cell || e->type_index == TypeIndex::Array;
    const Difference leaf = has_parts ? Difference() : difference_of_leaves(*f, *e, criterion);
    const std::string kind = has_parts ? difference_in_kind(*f, *e) : leaf.kind;
    if (!kind.empty()) {
      const std::string place = place_of(parts, at);
      out.equal = false;
      out.kind = cat(place, place.empty() ? "" : ": ", kind);
      return out;
    }
    if (!has_parts) {
      const bool tells = !leaf.equal || leaf.largest > out.largest;
      add(out, leaf, tells ? place_of(parts, at) : "");
    } else if (seen.emplace(f->v.object, e->v.object).second) {
      const std::span<const Any> of_found = fields_of(*f), of_expected = fields_of(*e);
      for (size_t i = of_expected.size(); i-- > 0;) {
        open.push_back(parts.size());
        parts.push_back({&of_found[i], &of_expected[i], at, i});
      }
    }
  }
  return out;
}

}  // namespace tenon::tool
