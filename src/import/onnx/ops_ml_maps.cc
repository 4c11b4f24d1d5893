// Maps of ai.onnx.ml: class labels with their scores, and features by name.

#include "import/onnx/class_scores.h"
#include "import/onnx/container.h"
#include "import/onnx/key_table.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

// The list in whichever of two attributes is present.
List one_of(NodeContext& cx, const char* ints, const char* strings) {
  if (cx.has_attr(ints) == cx.has_attr(strings)) {
    cx.invalid(
        cat(cx.has_attr(ints) ? "both" : "none", " of the attributes ", ints, " and ", strings),
        "one of them");
  }
  if (cx.has_attr(ints)) return {i64, cx.attr_ints(ints), {}, {}};
  return {string_elements, {}, {}, cx.attr_strings(strings)};
}

std::vector<size_t> all_places(size_t count) {
  std::vector<size_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = i;
  return out;
}

MapParts map_in(NodeContext& cx, size_t i) {
  const Operand x = cx.in(i);
  if (!is_map(x)) cx.invalid(cat("an operand of type ", to_text(graph::type_of(x))), "a map");
  return parts_of_map(cx, x);
}

// For each row of scores, or for the only one, a map from the classes' labels.
Operands zip_map(NodeContext& cx) {
  const List labels = one_of(cx, "classlabels_int64s", "classlabels_strings");
  const auto classes = static_cast<int64_t>(labels.size());
  const Operand x = feature_rows(cx, cx.dtype(cx.in(0)), classes);
  const Operand keys = labels.constant(cx, all_places(labels.size()));
  const graph::TypeRef element = map_type(graph::without_known_values(graph::type_of(keys)),
                                          graph::tensor_type(cx.dtype(x), {Dim(classes)}));
  const auto row = [&](const Operands& vars) {
    const Operand i = cx.b.tensor_of(vars[0]);
    return Operands{map_of(cx, keys, cx.op("gather", {x, i}, attrs({{"axis", 0}})))};
  };
  return {cx.b.field(sequence_by_loop(cx, element, size_scalar(cx, cx.dims(x)[0]), {}, {}, {}, row),
                     1)};
}

// The values whose places, in [0, count), are given, as [1, count]; `otherwise` at other places. An
// entry whose place is `count` is left out.
Operand placed(NodeContext& cx, const MapParts& map, const Operand& places, int64_t count,
               const Operand& otherwise) {
  const Operand all =
      cx.op("scatter_elements", {cx.expand(otherwise, {Dim(count + 1)}), places, map.values},
            attrs({{"axis", 0}}));
  return cx.reshape(cx.slice(all, 0, 0, count), {1, count});
}

Operand zero_of(NodeContext& cx, DataType dtype) {
  return cx.scalar(dtype, 0);  // "" of strings
}

Operands dict_vectorizer(NodeContext& cx) {
  const List vocabulary = one_of(cx, "int64_vocabulary", "string_vocabulary");
  const MapParts map = map_in(cx, 0);
  const auto count = static_cast<int64_t>(vocabulary.size());
  List places;
  for (int64_t i = 0; i < count; ++i) places.ints.push_back(i);
  const Operand at = encoded(cx, map.keys, vocabulary, places, cx.integer(count));
  return {placed(cx, map, at, count, zero_of(cx, cx.dtype(map.values)))};
}

DataType cast_map_type(NodeContext& cx) {
  const std::string to = cx.attr_string("cast_to", "TO_FLOAT");
  if (to == "TO_FLOAT") return f32;
  if (to == "TO_INT64") return i64;
  if (to != "TO_STRING") cx.invalid(cat("cast_to=", to), "TO_FLOAT, TO_INT64 or TO_STRING");
  return string_elements;
}

Operand cast_values(NodeContext& cx, const Operand& x, DataType to) {
  const DataType from = cx.dtype(x);
  if (from == to) return x;
  if (to == string_elements) return cx.op("text_format", {x});
  if (from != string_elements) return cx.cast(x, to);
  return cx.op("text_parse", {x}, attrs({{"dtype", Any(to)}}));
}

// The values in the order of their keys, or at the places that these are.
Operands cast_map(NodeContext& cx) {
  const DataType to = cast_map_type(cx);
  const std::string form = cx.attr_string("map_form", "DENSE");
  const int64_t most = cx.attr_int("max_map", 1);
  if (form != "DENSE" && form != "SPARSE") cx.invalid(cat("map_form=", form), "DENSE or SPARSE");
  MapParts map = map_in(cx, 0);
  if (cx.dtype(map.keys) != i64)
    cx.invalid(cat("keys of ", to_text(cx.dtype(map.keys))), "keys of i64");
  map.values = cast_values(cx, map.values, to);
  if (form == "SPARSE") {
    if (most < 0 || most == INT64_MAX) cx.invalid(cat("max_map=", most), "a number of entries");
    // A negative key is an error: it becomes an index that is out of range.
    const Operand negative = cx.op("less", {map.keys, cx.integer(0)});
    const Operand kept = cx.op("minimum", {map.keys, cx.integer(most)});
    const Operand places = cx.op("where", {negative, cx.integer(INT64_MAX), kept});
    // As ONNX Runtime has it.
    const Operand pad = to == string_elements ? cx.string("0.f") : zero_of(cx, to);
    return {placed(cx, map, places, most, pad)};
  }
  const Dim count = cx.dims(map.keys)[0];
  const Operands order =
      cx.b.ops("topk", {map.keys}, attrs({{"k", Any(count.ref())}, {"largest", false}}));
  const Operand sorted = cx.op("gather", {map.values, order[1]}, attrs({{"axis", 0}}));
  return {cx.unsqueeze(sorted, {0})};
}

}  // namespace

void register_ml_maps(OpTable& t) {
  t.add("CastMap", 1, cast_map, kMl);
  t.add("DictVectorizer", 1, dict_vectorizer, kMl);
  t.add("ZipMap", 1, zip_map, kMl);
}

}  // namespace tenon::onnx
