// Refusals of operators on strings.
#include "graph/op/register.h"
#include "import/onnx/op_table.h"
#include "import/onnx/refusals_testing.h"

namespace tenon::onnx {
namespace {

using Attributes = std::vector<Attribute>;

class RefusalsOfText : public Refusals {
 protected:
  static void SetUpTestSuite() { graph::register_operators(); }
};

TEST_F(RefusalsOfText, StringNormalizer) {
  broken({
      {"StringNormalizer",
       17,
       {"s n"},
       {M::text("case_change_action", "TITLE")},
       "case_change_action='TITLE'",
       "NONE, LOWER or UPPER"},
      {"StringNormalizer", 17, {"s 2 n"}, {}, "X of tensor[2, n; string]", "[C] or [1, C]"},
  });
}

TEST_F(RefusalsOfText, StringSplit) {
  broken({{"StringSplit",
           20,
           {"s n"},
           {M::text("delimiter", "\xa9")},
           "delimiter=\"\\xa9\"",
           "UTF-8"}});
}

TEST_F(RefusalsOfText, Casts) {
  unsupported(
      {{"Cast", 17, {"s n"}, {M::integer("to", 9)}, "a cast of strings to bool not implemented"}});
}

TEST_F(RefusalsOfText, TfIdfVectorizer) {
  const Attributes whole = {M::text("mode", "TF"),
                            M::integer("min_gram_length", 1),
                            M::integer("max_gram_length", 2),
                            M::integer("max_skip_count", 0),
                            M::list("ngram_counts", {0, 2}),
                            M::list("ngram_indexes", {0, 1, 2}),
                            M::list("pool_int64s", {1, 2, 3, 4})};
  auto row = [&](const Attributes& changed, const std::string& found, const std::string& expected,
                 const std::string& x = "i n") {
    Attributes all = whole;
    for (const Attribute& other : changed) {
      std::erase_if(all, [&](const Attribute& a) { return a.name == other.name; });
      all.push_back(other);
    }
    return Refusal{"TfIdfVectorizer", 17, {x}, all, found, expected};
  };
  broken({
      row({M::text("mode", "TD")}, "mode='TD'", "TF, IDF or TFIDF"),
      row({M::integer("min_gram_length", 3)},
          "min_gram_length=3, max_gram_length=2, max_skip_count=0",
          "1 <= min_gram_length <= max_gram_length and no negative number"),
      row({M::integer("max_skip_count", -1)},
          "min_gram_length=1, max_gram_length=2, max_skip_count=-1",
          "1 <= min_gram_length <= max_gram_length and no negative number"),
      row({M::list("ngram_counts", {0})}, "ngram_counts has 1 entries",
          "at least max_gram_length, 2"),
      row({M::list("ngram_counts", {0, 3})}, "ngram_counts with 2-grams from 3 to 4",
          "whole n-grams in a pool of 4"),
      row({M::list("ngram_counts", {-1, 3})}, "ngram_counts with 1-grams from -1 to 3",
          "whole n-grams in a pool of 4"),
      row({M::list("ngram_indexes", {0})}, "ngram_indexes has 1 entries", "3, one per n-gram"),
      row({M::list("ngram_indexes", {0, -1, 2})}, "ngram_indexes holds -1", "0 to 2147483647"),
      row({M::list("ngram_indexes", {0, INT64_MAX, 2})}, "ngram_indexes holds 9223372036854775807",
          "0 to 2147483647"),
      row({M::numbers("weights", {1})}, "weights has 1 entries", "3, one per column"),
      row({}, "X of rank 3", "1 or 2", "i 1 1 n"),
      row({}, "4 pool_int64s and 0 pool_strings for X of string", "pool_strings alone", "s n"),
      row({M::texts("pool_strings", {"a"})}, "4 pool_int64s and 1 pool_strings for X of i64",
          "pool_int64s alone"),
  });
}

TEST_F(RefusalsOfText, Tokenizer) {
  const Attributes whole = {M::integer("mark", 0), M::text("pad_value", "#"),
                            M::integer("mincharnum", 1), M::text("tokenexp", "[a-z]+")};
  auto row = [&](const std::string& without, const Attributes& with, const std::string& found,
                 const std::string& expected, const std::string& x = "s n") {
    Attributes all = whole;
    std::erase_if(all, [&](const Attribute& a) { return a.name == without; });
    all.insert(all.end(), with.begin(), with.end());
    return Refusal{"Tokenizer", 17, {x}, all, found, expected, 1, kMicrosoft};
  };
  broken({
      row("pad_value", {}, "no attribute 'pad_value'", "a string, which has no default"),
      row("tokenexp", {}, "neither separators nor tokenexp", "one of them"),
      row("mincharnum", {M::integer("mincharnum", 0)}, "mincharnum=0", "1 or more"),
      row("mincharnum", {M::integer("mincharnum", 2), M::texts("separators", {""})}, "mincharnum=2",
          "1: each token is one character"),
      row("", {}, "X of rank 3", "1 or 2", "s 1 1 n"),
      row("", {}, "X of i64", "strings", "i n"),
  });
}

// Operators that compute refuse strings by their own rules.
TEST_F(RefusalsOfText, OperandsOfNumbers) {
  M m(17);
  m.input("x", {"n"});
  m.model.graph.inputs[0].type.element = 8;
  m.node("Relu", {"x"}, {"y"}).output("y");
  try {
    import_model(m.model);
    ADD_FAILURE() << "it was imported";
  } catch (const Error& e) {
    EXPECT_NE(e.render().find("is string, expected"), std::string::npos) << e.render();
  }
}

}  // namespace
}  // namespace tenon::onnx
