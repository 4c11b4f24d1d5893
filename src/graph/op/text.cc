// Operators that read or make the strings of string tensors. Packed functions of src/library/text
// compute them; strings.h says how other operators take strings.
#include "graph/op/families.h"
#include "graph/op/packed.h"

namespace tenon::graph {
namespace {

constexpr const char* kNoSample = "samples have no strings";

TypeRef strings(const std::vector<Dim>& dims) {
  return tensor_type(string_elements, dims);
}

TypeRef infer_take(InferContext& cx) {
  require_rank(cx, 0, 1);
  return strings(dims_of(cx.tensor(1)));
}

TypeRef infer_join(InferContext& cx) {
  for (const size_t i : {0, 1}) require_rank(cx, i, 1);
  return strings({cx.tensor(0).dims[0] + cx.tensor(1).dims[0]});
}

TypeRef infer_rank(InferContext& cx) {
  require_rank(cx, 0, 1);
  return tensor_type(i64, dims_of(cx.tensor(0)));
}

TypeRef infer_concat(InferContext& cx) {
  const TensorType &a = cx.tensor(0), &b = cx.tensor(1);
  require_rank(cx, 1, a.rank);
  for (size_t i = 0; i < a.dims.size(); ++i) {
    cx.require_equal(a.dims[i], b.dims[i], cat("axis ", i, " of 'a' and of 'b'"));
  }
  return strings(dims_of(a));
}

TypeRef infer_split(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  if (cx.attr_int("most") < 0) {
    cx.fail(cat("'most' is ", cx.attr_int("most"), ", expected 0 or more"));
  }
  std::vector<Dim> dims = dims_of(x);
  dims.push_back(cx.fresh("parts"));
  return tuple_type({strings(dims), tensor_type(i64, dims_of(x))});
}

TypeRef infer_case(InferContext& cx) {
  return strings(dims_of(cx.tensor(0)));
}

TypeRef infer_find(InferContext& cx) {
  require_rank(cx, 1, 1);
  return tensor_type(i64, dims_of(cx.tensor(0)));
}

TypeRef infer_match(InferContext& cx) {
  return tensor_type(boolean, dims_of(cx.tensor(0)));
}

TypeRef infer_tokens(InferContext& cx) {
  const TensorType& x = cx.tensor(0);
  require_rank(cx, 1, 1);
  if (!cx.attr_bool("separators")) cx.require_equal(cx.tensor(1).dims[0], 1, "the patterns and 1");
  if (cx.attr_int("least") < 1) {
    cx.fail(cat("'least' is ", cx.attr_int("least"), ", expected 1 or more"));
  }
  std::vector<Dim> dims = dims_of(x);
  dims.push_back(cx.fresh("tokens"));
  return tuple_type({strings(dims), tensor_type(i64, dims_of(x))});
}

TypeRef infer_parse(InferContext& cx) {
  const DataType dtype = cx.attr_dtype("dtype");
  if (!contains(kNumbers, dtype)) {
    cx.fail(cat("'dtype' is ", to_text(dtype), ", expected ", describe(kNumbers)));
  }
  return tensor_type(dtype, dims_of(cx.tensor(0)));
}

TypeRef infer_format(InferContext& cx) {
  return strings(dims_of(cx.tensor(0)));
}

TypeRef infer_ngrams(InferContext& cx) {
  require_rank(cx, 0, 2);
  for (const size_t list : {1, 2, 3}) require_rank(cx, list, 1);
  for (const char* name : {"least", "most", "skips", "outputs"}) {
    const bool is_length = std::string_view(name) == "least" || std::string_view(name) == "most";
    if (cx.attr_int(name) < (is_length ? 1 : 0)) {
      cx.fail(
          cat("'", name, "' is ", cx.attr_int(name), ", expected ", is_length ? 1 : 0, " or more"));
    }
  }
  return tensor_type(f32, {cx.tensor(0).dims[0], cx.attr_int("outputs")});
}

Operator text(const char* name, const char* function, std::vector<OperandSpec> operands,
              std::vector<AttrSpec> attributes, const char* summary, InferFn infer) {
  Operator op =
      packed(name, function, std::move(operands), std::move(attributes), summary, infer, nullptr);
  op.no_sample = kNoSample;
  return op;
}

}  // namespace

void register_text(OperatorTable& table) {
  const OperandSpec x = {"x", kStrings};
  table.add(text("text_take", "tenon.text.take", {x, {"indices", only(i64)}}, {},
                 "the strings of a list at indices, each of 0 ... n - 1", infer_take));
  table.add(text("text_join", "tenon.text.join", {{"a", kStrings}, {"b", kStrings}}, {},
                 "the strings of one list, then those of another", infer_join));
  table.add(
      text("text_rank", "tenon.text.rank", {x}, {},
           "for each string of a list, how many different strings of it are less, compared by "
           "code points (i64)",
           infer_rank));
  table.add(text("text_concat", "tenon.text.concat", {{"a", kStrings}, {"b", kStrings}}, {},
                 "each string of a followed by that of b; the shapes are equal", infer_concat));
  table.add(text("text_split", "tenon.text.split", {x},
                 {{"delimiter", AttrKind::kString, "\"\"",
                   "between parts; empty: any run of white space, which is dropped at the ends"},
                  {"most", AttrKind::kInt, "9223372036854775807", "splits of a string"}},
                 "(parts along a new last axis, filled up with empty strings; how many, i64)",
                 infer_split));
  table.add(text("text_case", "tenon.text.case", {x},
                 {{"upper", AttrKind::kBool, "false", "upper case, else lower"}},
                 "each string in upper or lower case, by Unicode's mappings of single characters",
                 infer_case));
  table.add(text("text_find", "tenon.text.find", {x, {"keys", kStrings}}, {},
                 "the index of the first of the keys that equals the string, or -1 (i64)",
                 infer_find));
  table.add(text("text_match", "tenon.text.match", {x},
                 {{"pattern", AttrKind::kString, nullptr,
                   "in RE2's syntax; docs/security.md bounds its size, and that of the strings"}},
                 "whether a regular expression matches the whole string", infer_match));
  table.add(
      text("text_tokens", "tenon.text.tokens", {x, {"patterns", kStrings}},
           {{"separators", AttrKind::kBool, "false",
             "the patterns match what lies between tokens: the first splits the strings, the "
             "next what it leaves, and so on; else one pattern matches tokens"},
            {"least", AttrKind::kInt, "1", "characters of a token; shorter ones are dropped"}},
           "(tokens along a new last axis, filled up with empty strings; how many, i64). "
           "Patterns are regular expressions like text_match's, and matches as long as "
           "possible",
           infer_tokens));
  table.add(text("text_parse", "tenon.text.parse", {x},
                 {{"dtype", AttrKind::kDType, nullptr, "of the result"}},
                 "the numbers that the strings are, a run-time error if one isn't", infer_parse));
  table.add(text("text_format", "tenon.text.format", {{"x", kOrdered}}, {},
                 "numbers as the shortest text that reads back to them", infer_format));
  table.add(text(
      "text_ngrams", "tenon.text.ngrams",
      {{"x", only(i64)}, {"pool", only(i64)}, {"starts", only(i64)}, {"columns", only(i64)}},
      {{"least", AttrKind::kInt, nullptr, "items of an n-gram"},
       {"most", AttrKind::kInt, nullptr, "items of an n-gram"},
       {"skips", AttrKind::kInt, "0", "items that may lie between two of an n-gram, at most"},
       {"outputs", AttrKind::kInt, nullptr, "columns of the result"}},
      "for each row of x, how often each n-gram of a pool occurs (f32), in the column that "
      "'columns' gives it. The pool holds the n-grams' items: those of one item from starts[0], "
      "of two from starts[1], ...",
      infer_ngrams));
}

}  // namespace tenon::graph
