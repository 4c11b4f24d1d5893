// Operators on strings: concatenation, splitting, normalising, regular expressions, n-grams.

#include <algorithm>

#include "import/onnx/node_context.h"
#include "import/onnx/text_keys.h"
#include "library/signatures/ngrams.h"
#include "support/text.h"
#include "support/utf8.h"

namespace tenon::onnx {

namespace {

using graph::attrs;

constexpr int64_t kNoLimit = INT64_MAX;

Operand range(NodeContext& cx, const Dim& count) {
  return cx.op("range", {cx.integer(0), cx.integer(1)}, attrs({{"count", count}}));
}

Operands string_concat(NodeContext& cx) {
  Operand a = cx.in(0), b = cx.in(1);
  if (cx.dims(a) != cx.dims(b)) {  // each, broadcast to both shapes
    const Operand yes = graph::constant(Tensor::copy_of<uint8_t>({}, boolean, {{1}}));
    const Operand left = cx.op("where", {yes, a, b}), right = cx.op("where", {yes, b, a});
    a = left, b = right;
  }
  return {cx.op("text_concat", {a, b})};
}

Operands string_split(NodeContext& cx) {
  const int64_t most = cx.attr_int("maxsplit", kNoLimit);
  const std::string delimiter = cx.attr_string("delimiter", "");
  if (!is_utf8(delimiter)) cx.invalid(cat("delimiter=", quoted(delimiter)), "UTF-8");
  return cx.b.ops("text_split", {cx.in(0)},
                  attrs({{"delimiter", String(delimiter)},
                         {"most", most < 0 ? kNoLimit : most}}));  // negative in Python: no limit
}

Operands regex_full_match(NodeContext& cx) {
  return {
      cx.op("text_match", {cx.in(0)}, attrs({{"pattern", String(cx.attr_string("pattern", ""))}}))};
}

// The strings of a list whose entry in `keep` is true; one empty string if there is none.
Operand kept_or_empty(NodeContext& cx, const Operand& list, const Operand& keep) {
  const Dim count = cx.dims(list)[0];
  const Operand places = cx.op("compress", {range(cx, count), keep}, attrs({{"axis", 0}}));
  const Dim kept = cx.dims(places)[0];
  const Operand more = cx.concat({places, cx.dims_tensor({count})}, 0);  // of the empty string
  const Operand all = cx.concat({list, cx.strings_tensor({""})}, 0);
  return cx.op("gather", {all, cx.slice(more, 0, 0, max(kept, 1))}, attrs({{"axis", 0}}));
}

Operands string_normalizer(NodeContext& cx) {
  const std::string action = cx.attr_string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    cx.invalid(cat("case_change_action='", printable(action), "'"), "NONE, LOWER or UPPER");
  const bool exact = cx.attr_bool("is_case_sensitive", false);
  const std::vector<std::string> stopwords = cx.attr_strings("stopwords");
  cx.ignore("locale");  // of Unicode's mappings of single characters, none depends on it
  const Dims dims = cx.dims(0);
  const bool is_row = dims.size() == 2 && dims[0].is_const(1);
  if (dims.size() != 1 && !is_row)
    cx.invalid(cat("X of ", to_text(graph::type_of(cx.in(0)))), "[C] or [1, C]");
  auto with_case = [&](const Operand& x, bool upper) {
    return cx.op("text_case", {x}, attrs({{"upper", upper}}));
  };
  Operand list = cx.reshape(cx.in(0), {dims.back()});
  if (!stopwords.empty()) {
    Operand found = list, known = cx.strings_tensor(TextKeys(stopwords).keys);
    if (!exact) found = with_case(found, false), known = with_case(known, false);
    const Operand place = cx.op("text_find", {found, known});
    list = kept_or_empty(cx, list, cx.op("less", {place, cx.integer(0)}));
  }
  if (action != "NONE") list = with_case(list, action == "UPPER");
  return {is_row ? cx.unsqueeze(list, {0}) : list};
}

// ---- n-grams ----

struct Pool {
  Operand items;      // i64[p]
  Operand x;          // i64, the operand in the pool's numbers
  int64_t count = 0;  // items
};

// Strings are numbered by their place among the pool's different strings, others are -1.
Pool pool_of(NodeContext& cx) {
  const Ints numbers = cx.attr_ints("pool_int64s");
  const std::vector<std::string> texts = cx.attr_strings("pool_strings");
  const bool is_text = cx.dtype(0) == string_elements;
  if (is_text ? texts.empty() || !numbers.empty() : numbers.empty() || !texts.empty()) {
    cx.invalid(cat(numbers.size(), " pool_int64s and ", texts.size(), " pool_strings for X of ",
                   to_text(cx.dtype(0))),
               is_text ? "pool_strings alone" : "pool_int64s alone");
  }
  if (!is_text) {
    return {cx.ints_tensor(numbers), cx.cast(cx.in(0), i64), static_cast<int64_t>(numbers.size())};
  }
  const TextKeys table(texts);
  return {cx.ints_tensor(table.places),
          cx.op("text_find", {cx.in(0), cx.strings_tensor(table.keys)}),
          static_cast<int64_t>(texts.size())};
}

// The number of n-grams that the pool holds, which begin at `starts` by their length.
int64_t ngram_count(NodeContext& cx, const Ints& starts, int64_t items) {
  int64_t count = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const library::NgramRange range = library::ngram_range(starts, i, items);
    if (!range.fits(items)) {
      cx.invalid(
          cat("ngram_counts with ", range.length, "-grams from ", range.begin, " to ", range.end),
          cat("whole n-grams in a pool of ", items));
    }
    count += range.count();
  }
  return count;
}

Operands tf_idf_vectorizer(NodeContext& cx) {
  const std::string mode = cx.attr_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    cx.invalid(cat("mode='", printable(mode), "'"), "TF, IDF or TFIDF");
  const int64_t least = cx.attr_int("min_gram_length"), most = cx.attr_int("max_gram_length"),
                skips = cx.attr_int("max_skip_count");
  if (least < 1 || most < least || skips < 0) {
    cx.invalid(
        cat("min_gram_length=", least, ", max_gram_length=", most, ", max_skip_count=", skips),
        "1 <= min_gram_length <= max_gram_length and no negative number");
  }
  const Ints starts = cx.attr_ints("ngram_counts"), columns = cx.attr_ints("ngram_indexes");
  const Pool pool = pool_of(cx);
  if (static_cast<int64_t>(starts.size()) < most)
    cx.invalid(cat("ngram_counts has ", starts.size(), " entries"),
               cat("at least max_gram_length, ", most));
  const int64_t count = ngram_count(cx, starts, pool.count);
  if (static_cast<int64_t>(columns.size()) != count)
    cx.invalid(cat("ngram_indexes has ", columns.size(), " entries"),
               cat(count, ", one per n-gram"));
  constexpr int64_t kMostColumns = int64_t{1} << 31;
  int64_t width = 0;
  for (const int64_t column : columns) {
    if (column < 0 || column >= kMostColumns)
      cx.invalid(cat("ngram_indexes holds ", column), cat("0 to ", kMostColumns - 1));
    width = std::max(width, column + 1);
  }
  const Dims dims = cx.dims(0);
  if (dims.size() != 1 && dims.size() != 2) cx.invalid(cat("X of rank ", dims.size()), "1 or 2");
  const Operand rows = dims.size() == 1 ? cx.unsqueeze(pool.x, {0}) : pool.x;
  Operand y =
      cx.op("text_ngrams", {rows, pool.items, cx.ints_tensor(starts), cx.ints_tensor(columns)},
            attrs({{"least", least}, {"most", most}, {"skips", skips}, {"outputs", width}}));
  const std::vector<double> weights = cx.attr_floats("weights");
  if (!weights.empty() && static_cast<int64_t>(weights.size()) != width)
    cx.invalid(cat("weights has ", weights.size(), " entries"), cat(width, ", one per column"));
  if (mode != "TF") {
    const Operand weight =
        weights.empty() ? cx.scalar(f32, 1) : graph::constant(make_tensor(f32, {width}, weights));
    const Operand zero = cx.scalar(f32, 0);
    y = mode == "IDF" ? cx.op("where", {cx.op("less", {zero, y}), weight, zero})
                      : cx.mul(y, weight);
  }
  return {dims.size() == 1 ? cx.squeeze(y, {0}) : y};
}

// ---- com.microsoft ----

// One regular expression that matches tokens, or several that separate them.
struct TokenPatterns {
  std::vector<std::string> list;
  bool separate = false;
  bool by_character = false;  // the expression matches every character
};

TokenPatterns token_patterns(NodeContext& cx) {
  const TokenPatterns every_character = {.list = {"(?s)."}, .by_character = true};
  const std::vector<std::string> separators = cx.attr_strings("separators");
  if (separators == std::vector<std::string>{""}) {
    cx.ignore("tokenexp");
    return every_character;
  }
  if (!separators.empty()) {
    cx.ignore("tokenexp");  // as in ONNX Runtime
    return {.list = separators, .separate = true};
  }
  const std::string expression = cx.attr_string("tokenexp", "");
  if (expression.empty()) cx.invalid("neither separators nor tokenexp", "one of them");
  if (expression == ".") return every_character;
  return {.list = {expression}};
}

// The tokens of each string along a new last axis, padded. ONNX Runtime gives an operand without
// elements a result of less rank, [0] for [C] and [N, 0] for [N, C]; here it is [0, 0] and
// [N, C, 0].
Operands tokenizer(NodeContext& cx) {
  const bool mark = cx.attr_int("mark") != 0;
  const int64_t least = cx.attr_int("mincharnum");
  if (!cx.has_attr("pad_value"))
    cx.invalid("no attribute 'pad_value'", "a string, which has no default");
  const std::string pad_text = cx.attr_string("pad_value", "");
  const TokenPatterns patterns = token_patterns(cx);
  if (least < 1 || (patterns.by_character && least > 1)) {
    cx.invalid(cat("mincharnum=", least),
               patterns.by_character ? "1: each token is one character" : "1 or more");
  }
  const Dims dims = cx.dims(0);
  if (dims.size() != 1 && dims.size() != 2) cx.invalid(cat("X of rank ", dims.size()), "1 or 2");
  if (cx.dtype(0) != string_elements) cx.invalid(cat("X of ", to_text(cx.dtype(0))), "strings");
  const Operands found = cx.b.ops("text_tokens", {cx.in(0), cx.strings_tensor(patterns.list)},
                                  attrs({{"separators", patterns.separate}, {"least", least}}));
  const auto last = static_cast<int64_t>(dims.size());
  const Dim longest = cx.dims(found[0])[dims.size()];
  const Operand pad = cx.string(pad_text), count = cx.unsqueeze(found[1], {last});
  const auto below = [&](const Dim& n, const Operand& bound) {
    return cx.op("less", {range(cx, n), bound});
  };
  const Operand tokens = cx.op("where", {below(longest, count), found[0], pad});
  if (!mark) return {tokens};
  // start, tokens, end, padding; nothing if there are no tokens at all.
  Dims column = dims;
  column.push_back(1);
  const auto columns_of = [&](const Operand& text) { return cx.expand(text, column); };
  const Dim width = longest + 2;
  const Operand padded = cx.concat({columns_of(cx.string("\x02")), tokens, columns_of(pad)}, last);
  const Operand end = cx.op("equal", {range(cx, width), cx.add(count, cx.integer(1))});
  const Operand marked = cx.op("where", {end, cx.string("\x03"), padded});
  return {cx.slice(marked, last, 0, min(longest * 3, width))};
}

}  // namespace

void register_text(OpTable& t) {
  t.add("RegexFullMatch", 20, regex_full_match);
  t.add("StringConcat", 20, string_concat);
  t.add("StringNormalizer", 10, string_normalizer);
  t.add("StringSplit", 20, string_split);
  t.add("TfIdfVectorizer", 9, tf_idf_vectorizer);
  t.add("Tokenizer", 1, tokenizer, kMicrosoft);
}

}  // namespace tenon::onnx
