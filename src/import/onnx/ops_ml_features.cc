// What ai.onnx.ml does with features before a model sees them: scaling, filling in, encoding.
// Its specification: docs/Operators-ml.md of ONNX.

#include <algorithm>
#include <cmath>

#include "import/onnx/class_scores.h"
#include "import/onnx/key_table.h"
#include "import/onnx/text_keys.h"
#include "object/string_tensor.h"
#include "support/text.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// A constant that applies to the last axis of x: one number, or one for each feature, which is then
// checked. x gets the sizes that were checked.
Operand per_feature(NodeContext& cx, const char* name, const Operand& constant, Operand* x) {
  const int64_t count = cx.dims(constant).at(0).as_const().value_or(0);
  if (count == 1) return cx.reshape(constant, {});
  Dims sizes = cx.dims(*x);
  const auto found = sizes.empty() ? 1 : sizes.back().as_const();
  if (found && *found != count)
    cx.invalid(cat(name, " has ", count, " entries"), cat("1 or ", *found, ", one per feature"));
  if (found) return constant;
  sizes.back() = count;
  *x = cx.b.match_shape(*x, sizes);
  return constant;
}

Operands scaler(NodeContext& cx) {
  Operand x = cx.cast(cx.in(0), f32);
  auto each = [&](const char* name) -> Operand {
    const Numbers given = cx.attr_floats(name);
    if (given.empty()) return {};
    // ONNX doesn't say which axis has the features then.
    if (given.size() > 1 && cx.rank(x) > 2)
      cx.unsupported(
          cat(name, " per feature of a tensor of rank ", cx.rank(x), " not implemented"));
    return per_feature(cx, name, numbers({static_cast<int64_t>(given.size())}, given), &x);
  };
  const Operand offset = each("offset"), scale = each("scale");
  if (offset) x = cx.sub(x, offset);
  return {scale ? cx.mul(x, scale) : x};
}

Operands normalizer(NodeContext& cx) {
  const std::string norm = cx.attr_string("norm", "MAX");
  const Operand x = cx.cast(cx.in(0), f32);
  const int64_t rank = cx.rank(x);
  if (rank != 1 && rank != 2) cx.invalid(cat("X of rank ", rank), "1 or 2");
  auto over_features = [&](const char* name, const Operand& of) {
    return cx.reduce(name, of, {rank - 1}, true);
  };
  const Operand squares = cx.mul(x, x), zero = cx.scalar(f32, 0);
  Operand size, y;
  if (norm == "MAX") {
    size = over_features("reduce_max", x);
    y = cx.div(x, size);
  } else if (norm == "L1") {
    size = over_features("reduce_sum", cx.op("abs", {x}));
    y = cx.div(x, size);
  } else if (norm == "L2") {
    size = over_features("reduce_sum", squares);
    y = cx.mul(cx.op("sign", {x}), cx.op("sqrt", {cx.div(squares, size)}));
  } else {
    cx.invalid(cat("norm='", printable(norm), "'"), "MAX, L1 or L2");
  }
  return {cx.op("where", {cx.op("equal", {size, zero}), x, y})};
}

Operands binarizer(NodeContext& cx) {
  const double threshold = cx.attr_float("threshold", 0);
  const Operand x = cx.in(0);
  const DataType dtype = cx.dtype(x), exact = dtype.is_float() ? dtype : f64;
  const Operand y = cx.op("greater", {cx.cast(x, exact), cx.scalar(exact, threshold)});
  return {cx.cast(y, dtype)};
}

Operands imputer(NodeContext& cx) {
  Operand x = cx.in(0);
  const DataType dtype = cx.dtype(x);
  const bool is_float = dtype.is_float();
  const char* name = is_float ? "imputed_value_floats" : "imputed_value_int64s";
  cx.ignore(is_float ? "replaced_value_int64" : "replaced_value_float");
  Operand values, is_missing;
  if (is_float) {
    const Numbers given = cx.attr_floats(name);
    values = graph::constant(make_tensor(dtype, {static_cast<int64_t>(given.size())}, given));
    const double missing = cx.attr_float("replaced_value_float", 0);
    is_missing =
        std::isnan(missing) ? cx.op("is_nan", {x}) : cx.op("equal", {x, cx.scalar(dtype, missing)});
  } else {
    values = cx.cast(cx.ints_tensor(cx.attr_ints(name)), dtype);
    const int64_t missing = cx.attr_int("replaced_value_int64", 0);
    is_missing = cx.op("equal", {cx.cast(x, i64), cx.integer(missing)});
  }
  if (cx.dims(values)[0].is_const(0))
    cx.invalid(cat("no ", name, " for ", to_text(dtype)), "one, or one per feature");
  const Operand value = per_feature(cx, name, values, &x);
  return {cx.op("where", {is_missing, value, x})};
}

Operands array_feature_extractor(NodeContext& cx) {
  Operand x = cx.in(0);
  if (cx.rank(x) == 0) cx.invalid("X of rank 0", "1 or more");
  if (cx.rank(x) == 1) x = cx.unsqueeze(x, {0});
  const Operand which = cx.cast(cx.in(1), i64);
  const Operand list = cx.reshape(which, {product(cx.dims(which))});
  return {cx.op("gather", {x, list}, attrs({{"axis", cx.rank(x) - 1}}))};
}

// Columns of zeros after, or columns cut off, such that there are `width`.
Operand with_width(NodeContext& cx, const Operand& x, int64_t width) {
  const Dims dims = cx.dims(x);
  const auto found = dims[1].as_const();
  if (!found) return cx.b.match_shape(x, {dims[0], width});
  if (*found >= width) return cx.slice(x, 1, 0, width);
  return cx.concat({x, cx.full(f32, 0, {dims[0], width - *found})}, 1);
}

Operands feature_vectorizer(NodeContext& cx) {
  const Ints widths = cx.attr_ints("inputdimensions");
  if (!widths.empty() && widths.size() != cx.count())
    cx.invalid(cat("inputdimensions has ", widths.size(), " entries"),
               cat(cx.count(), ", one per operand"));
  Operands parts;
  for (size_t i = 0; i < cx.count(); ++i) {
    Operand x = cx.cast(cx.in(i), f32);
    const int64_t rank = cx.rank(x);
    if (rank != 1 && rank != 2)
      cx.invalid(cat("operand ", i, " of rank ", rank), "1 or 2: rows of features");
    if (rank == 1) x = cx.unsqueeze(x, {0});
    if (!widths.empty()) {
      if (widths[i] < 0) cx.invalid(cat("inputdimensions holds ", widths[i]), "0 or more");
      x = with_width(cx, x, widths[i]);
    }
    parts.push_back(x);
  }
  if (parts.empty()) cx.invalid("no operands", "one or more");
  return {cx.concat(parts, 1)};
}

template <class T>
void require_distinct(NodeContext& cx, std::vector<T> categories) {
  std::sort(categories.begin(), categories.end());
  const auto twice = std::adjacent_find(categories.begin(), categories.end());
  if (twice != categories.end())
    cx.invalid(cat("category ", *twice, " twice"), "each category once");
}

Operands one_hot_encoder(NodeContext& cx) {
  Ints categories = cx.attr_ints("cats_int64s");
  const std::vector<std::string> texts = cx.attr_strings("cats_strings");
  const bool zeros = cx.attr_bool("zeros", true);
  if (categories.empty() && texts.empty()) cx.invalid("no cats_int64s", "one or more categories");
  if (!categories.empty() && !texts.empty())
    cx.invalid("categories of two kinds", "one of cats_int64s and cats_strings");
  require_distinct(cx, categories);
  require_distinct(cx, texts);
  Operand x = cx.in(0);
  if (!texts.empty()) {  // their places are the categories
    const TextKeys table(texts);
    x = cx.op("text_find", {x, cx.strings_tensor(table.keys)});
    categories = table.places;
  }
  const Operand column = cx.unsqueeze(x, {cx.rank(x)});
  Operand hit = cx.op("equal", {cx.cast(column, i64), cx.ints_tensor(categories)});
  if (cx.dtype(x).is_float())  // NaN becomes 0 as an integer
    hit = cx.op("logical_and", {hit, cx.op("equal", {column, column})});
  if (!zeros) {
    const Operand hits =
        cx.reduce("reduce_sum", cx.cast(hit, i64), NodeContext::axes_below(cx.rank(hit)), false);
    cx.b.check(graph::CheckKind::kEqual, cx.b.elements_of(hits).at(0), product(cx.dims(x)),
               "elements that are among the categories (zeros=0) and all elements");
  }
  return {cx.cast(hit, f32)};
}

// ---- label encoder ----

List list_of(NodeContext& cx, const Tensor& t, const std::string& name) {
  List out{t.dtype(), {}, {}, {}};
  if (is_string_tensor(t)) {
    const Strings strings(t);
    for (int64_t i = 0; i < strings.size(); ++i) out.texts.emplace_back(strings[i]);
    return out;
  }
  if (t.dtype().is_float()) {
    for (int64_t i = 0; i < t.count(); ++i) out.floats.push_back(element(t, i));
    return out;
  }
  const auto ints = cx.ints(graph::constant(t));
  if (!ints) cx.invalid(cat(name, " is ", to_text(t)), "a list of numbers");
  out.ints = *ints;
  return out;
}

// `what` is "keys" or "values".
List list_of(NodeContext& cx, const std::string& what) {
  const std::string ints = what + "_int64s", floats = what + "_floats", strings = what + "_strings",
                    tensor = what + "_tensor";
  const bool has[] = {cx.has_attr(ints.c_str()), cx.has_attr(floats.c_str()),
                      cx.has_attr(strings.c_str()), cx.has_attr(tensor.c_str())};
  if (std::count(std::begin(has), std::end(has), true) != 1) {
    cx.invalid(cat(has[0] || has[1] || has[2] || has[3] ? "several" : "none", " of the attributes ",
                   what, "_*"),
               "one");
  }
  if (has[0]) return {i64, cx.attr_ints(ints.c_str()), {}, {}};
  if (has[1]) return {f32, {}, cx.attr_floats(floats.c_str()), {}};
  if (has[2]) return {string_elements, {}, {}, cx.attr_strings(strings.c_str())};
  return list_of(cx, cx.attr_tensor(tensor.c_str()), tensor);
}

// The value for elements that are no key.
Operand default_value(NodeContext& cx, DataType dtype) {
  for (const char* name : {"default_string", "default_int64", "default_float"}) cx.ignore(name);
  if (const Tensor t = cx.attr_tensor("default_tensor")) {
    if (t.count() != 1) cx.invalid(cat("default_tensor is ", to_text(t)), "one element");
    if ((t.dtype() == string_elements) != (dtype == string_elements))
      cx.invalid(cat("default_tensor is ", to_text(t)), cat("the values' type, ", to_text(dtype)));
    return cx.cast(cx.reshape(graph::constant(t), {}), dtype);
  }
  if (dtype == string_elements) return cx.string(cx.attr_string("default_string", "_Unused"));
  if (dtype.is_float()) return cx.scalar(dtype, cx.attr_float("default_float", -0.0));
  return cx.cast(cx.integer(cx.attr_int("default_int64", -1)), dtype);
}

// A table of strings and their numbers, in the direction that x's type asks for.
Operands text_or_number(NodeContext& cx, const List& texts, const List& numbers) {
  const Operand x = cx.in(0);
  const bool reads = cx.dtype(x) == string_elements;
  const Operand text = cx.string(cx.attr_string("default_string", "_Unused")),
                number = cx.integer(cx.attr_int("default_int64", -1));
  return {encoded(cx, x, reads ? texts : numbers, reads ? numbers : texts, reads ? number : text)};
}

Operands category_mapper(NodeContext& cx) {
  const List texts{string_elements, {}, {}, cx.attr_strings("cats_strings")},
      numbers{i64, cx.attr_ints("cats_int64s"), {}, {}};
  if (texts.size() != numbers.size())
    cx.invalid(cat(texts.size(), " cats_strings and ", numbers.size(), " cats_int64s"),
               "as many of both");
  return text_or_number(cx, texts, numbers);
}

// Version 1: classes_strings and their places.
Operands class_encoder(NodeContext& cx) {
  const List texts{string_elements, {}, {}, cx.attr_strings("classes_strings")};
  List numbers;
  for (size_t i = 0; i < texts.size(); ++i) numbers.ints.push_back(static_cast<int64_t>(i));
  return text_or_number(cx, texts, numbers);
}

Operands label_encoder(NodeContext& cx) {
  const Operand x = cx.in(0);
  const List keys = list_of(cx, "keys"), values = list_of(cx, "values");
  if (keys.size() != values.size())
    cx.invalid(cat(keys.size(), " keys and ", values.size(), " values"), "as many of both");
  const Operand otherwise = default_value(cx, values.dtype);
  Operand y = encoded(cx, x, keys, values, otherwise);
  if (!keys.dtype.is_float()) return {y};
  const auto nan =
      std::find_if(keys.floats.begin(), keys.floats.end(), [](double v) { return std::isnan(v); });
  if (nan != keys.floats.end()) {
    const auto place = static_cast<size_t>(nan - keys.floats.begin());
    const Operand value = cx.reshape(values.constant(cx, {place}), {});
    y = cx.op("where", {cx.op("is_nan", {x}), value, y});
  }
  return {y};
}

}  // namespace

void register_ml_features(OpTable& t) {
  t.add("ArrayFeatureExtractor", 1, array_feature_extractor, kMl);
  t.add("Binarizer", 1, binarizer, kMl);
  t.add("FeatureVectorizer", 1, feature_vectorizer, kMl);
  t.add("Imputer", 1, imputer, kMl);
  t.add("CategoryMapper", 1, category_mapper, kMl);
  t.add("LabelEncoder", 1, class_encoder, kMl);
  t.add("LabelEncoder", 2, label_encoder, kMl);
  t.add("Normalizer", 1, normalizer, kMl);
  t.add("OneHotEncoder", 1, one_hot_encoder, kMl);
  t.add("Scaler", 1, scaler, kMl);
}

}  // namespace tenon::onnx
