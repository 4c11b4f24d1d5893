#include "graph/op/rule.h"

#include <algorithm>
#include <limits>

#include <algorithm>

#include "graph/ir/name_text.h"

namespace tenon::graph {

namespace {

// How many digits a number's text has, without zeros in front.
ptrdiff_t significant_digits(std::string_view text) {
  text = text.substr(0, text.find('e'));
  const size_t first = text.find_first_of("123456789");
  if (first == std::string_view::npos) return 0;
  return std::ranges::count_if(text.substr(first), [](char c) { return c >= '0' && c <= '9'; });
}

// How to write a scalar constant of dtype `own` as one of another dtype; empty for any other
// operand.
std::string literal_of(const Operand& operand, DataType own, DataType dtype) {
  const auto* constant = operand ? operand.as<Constant>() : nullptr;
  if (!constant) return "";
  const Any& v = constant->value;
  const bool is_int = v.type_index == TypeIndex::Int;
  if (!is_int && v.type_index != TypeIndex::Float) return "";
  if (!is_int && !dtype.is_float()) return "";
  if (is_int && dtype == i64) return cat(v.as<int64_t>());
  const double value = is_int ? static_cast<double>(v.as<int64_t>()) : v.as<double>();
  std::string text = is_int ? cat(v.as<int64_t>()) : "";
  if (dtype.is_float()) {
    const auto narrow = static_cast<float>(value);
    text = own == f32 ? element_text(f32, &narrow) : float_text(value);
  }
  if (dtype == f32) return text;
  // Rounded to f32, a number with more digits has lost some.
  if (own == f32 && significant_digits(text) > std::numeric_limits<float>::digits10) {
    return cat("the number as ", to_text(dtype), "(...)");
  }
  return cat(to_text(dtype), "(", text, ")");
}

}  // namespace

void require_same_dtype(const InferContext& cx, size_t i, size_t j) {
  const DataType a = cx.tensor(i).dtype, b = cx.tensor(j).dtype;
  if (a == b) return;
  std::string literal = literal_of(cx.call().args[i], a, b);
  if (literal.empty()) literal = literal_of(cx.call().args[j], b, a);
  cx.fail(cat(cx.operand_text(i), " is ", to_text(a), ", but ", cx.operand_text(j), " is ",
              to_text(b), "; they must have one dtype",
              literal.empty() ? "" : cat(": write ", literal)));
}

void require_rank(const InferContext& cx, size_t i, int64_t rank) {
  if (cx.tensor(i).rank != rank) {
    cx.fail(cat(cx.operand_text(i), " has rank ", cx.tensor(i).rank, ", expected ", rank));
  }
}

void require_one_element(const InferContext& cx, size_t i) {
  for (const Dim& d : cx.tensor(i).dims) {
    if (!d.is_const(1)) cx.fail(cat(cx.operand_text(i), " must have one element"));
  }
}

std::string one_of(const InferContext& cx, const char* attr,
                   const std::vector<std::string>& names) {
  std::string found(std::string_view(cx.attr_string(attr)));
  for (const std::string& n : names) {
    if (n == found) return found;
  }
  cx.fail(cat("'", attr, "' is \"", found, "\", expected one of ", tenon::join(names, ", ")));
}

std::vector<Dim> dims_of(const TensorType& type) {
  return std::vector<Dim>(type.dims.begin(), type.dims.end());
}

std::vector<int64_t> normalized_axes(const InferContext& cx, const std::vector<int64_t>& axes,
                                     int64_t rank) {
  std::vector<int64_t> out;
  out.reserve(axes.size());
  for (int64_t a : axes) out.push_back(cx.axis(a, rank));
  std::sort(out.begin(), out.end());
  auto twice = std::adjacent_find(out.begin(), out.end());
  if (twice != out.end()) cx.fail(cat("axis ", *twice, " is given twice"));
  return out;
}

std::vector<int64_t> per_axis(const InferContext& cx, const char* name, int64_t count,
                              int64_t fallback) {
  std::vector<int64_t> list = cx.attr_ints(name);
  if (list.empty()) return std::vector<int64_t>(static_cast<size_t>(count), fallback);
  if (static_cast<int64_t>(list.size()) != count) {
    cx.fail(cat("'", name, "' has ", list.size(), " entries, expected ", count));
  }
  return list;
}

Values values_of(const InferContext& cx, size_t i) {
  if (!cx.has(i)) return std::nullopt;
  TypeRef type = cx.type(i);
  if (const auto* t = type_as<TensorType>(type); t != nullptr && t->value_known) {
    return std::vector<Dim>(t->values.begin(), t->values.end());
  }
  if (const auto* s = type_as<ScalarType>(type); s != nullptr && s->value_known) {
    return std::vector<Dim>{s->value};
  }
  return std::nullopt;
}

std::optional<int64_t> carried_count(const TensorType& type) {
  if (!type.dims_known || type.rank > 1) return std::nullopt;
  int64_t count = 1;
  if (type.rank == 1) {
    auto n = type.dims[0].as_const();
    if (!n || *n < 0 || *n > kMaxCarriedValues) return std::nullopt;
    count = *n;
  }
  return count;
}

Values fitting(DataType dtype, std::vector<Dim> values) {
  if (!contains(kInts | kBools, dtype)) return std::nullopt;
  if (!std::all_of(values.begin(), values.end(), has_small_coefficients))
    return std::nullopt;  // may wrap
  if (dtype == i64) return values;
  if (dtype == u64) {
    if (!std::all_of(values.begin(), values.end(), proves_nonnegative)) return std::nullopt;
    return values;
  }
  int64_t low = dtype.is_signed_int() ? -(int64_t{1} << (dtype.bits - 1)) : 0;
  int64_t high = dtype.is_bool()         ? 1
                 : dtype.is_signed_int() ? (int64_t{1} << (dtype.bits - 1)) - 1
                                         : (int64_t{1} << dtype.bits) - 1;
  for (const Dim& d : values) {
    if (proves_less_equal(low, d) && proves_less_equal(d, high)) continue;
    // Exporters compute shapes in i32; only for it a check at run time is worthwhile.
    bool out = proves_less_equal(d, low - 1) || proves_less_equal(high + 1, d);
    if (dtype != i32 || out) return std::nullopt;
  }
  return values;
}

int64_t Random::between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
}

DataType Random::dtype(DtypeSet set) {
  std::vector<DataType> numbers = members(set);
  // What runs samples fills them with numbers.
  std::erase_if(numbers, [](DataType t) { return t == string_elements || t.is_complex(); });
  return pick(numbers);
}

std::vector<int64_t> Random::shape(int64_t min_rank, int64_t max_rank) {
  std::vector<int64_t> out(static_cast<size_t>(between(min_rank, max_rank)));
  for (int64_t& n : out) n = between(0, 30) == 0 ? 0 : between(1, 4);
  return out;
}

std::vector<Dim> to_dims(const std::vector<int64_t>& sizes) {
  return std::vector<Dim>(sizes.begin(), sizes.end());
}

TypeRef sample_tensor(DataType dtype, const std::vector<int64_t>& shape) {
  return tensor_type(dtype, to_dims(shape));
}

}  // namespace tenon::graph
