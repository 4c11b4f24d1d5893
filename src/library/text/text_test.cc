// Calls the functions like a compiled program does: by name, through the registry.
#include <gtest/gtest.h>

#include <cmath>

#include "library/argument/call_testing.h"
#include "library/text/functions.h"
#include "library/text/register.h"
#include "object/library.h"
#include "support/poll.h"

namespace tenon::text {
namespace {

using namespace testing_calls;

// Registers the functions before any test calls one.
const Module library = (register_text(), load_library("tenon_text", {}));

using Texts = std::vector<std::string>;

Tensor texts(std::vector<int64_t> shape, const Texts& elements) {
  return string_tensor(shape, std::vector<std::string_view>(elements.begin(), elements.end()));
}
Tensor texts(const Texts& elements) {
  return texts({static_cast<int64_t>(elements.size())}, elements);
}
Texts texts_of(const Tensor& t) {
  const Strings strings(t);
  Texts out;
  for (int64_t i = 0; i < strings.size(); ++i) out.emplace_back(strings[i]);
  return out;
}

TEST(Take, GivesTheShapeOfTheIndices) {
  const Tensor taken = result("tenon.text.take", texts({"a", "", "c\xc3\xa9"}),
                              tensor<int64_t>(i64, {2, 2}, {2, 0, 1, 2}));
  EXPECT_EQ(shape_of(taken), (Ints{2, 2}));
  EXPECT_EQ(texts_of(taken), (Texts{"c\xc3\xa9", "a", "", "c\xc3\xa9"}));
}

TEST(Take, RefusesOtherIndices) {
  EXPECT_EQ(failure("tenon.text.take", texts({"a"}), ints({1})),
            "tenon.text.take: the index 1 of a list of 1 string");
  EXPECT_EQ(failure("tenon.text.take", texts({"a"}), ints({-1})),
            "tenon.text.take: the index -1 of a list of 1 string");
  EXPECT_EQ(failure("tenon.text.take", ints({1}), ints({0})),
            "tenon.text.take: 'x' is tensor[1; i64], expected a tensor of strings");
  EXPECT_EQ(failure("tenon.text.take", texts({"a"}), floats({1}, {0})),
            "tenon.text.take: 'indices' is tensor[1; f32], expected i64");
  EXPECT_EQ(failure("tenon.text.take", texts({"a"}), texts({"0"})),
            "tenon.text.take: 'indices' is string, which it can't take");
}

TEST(Rank, IsInTheOrderOfCodePoints) {
  EXPECT_EQ(data_of<int64_t>(result(
                "tenon.text.rank", texts({"b", "a", "", "b", "\xef\xbf\xbd", "\xf0\x9f\x98\x80"}))),
            (Ints{2, 1, 0, 2, 3, 4}));
  EXPECT_EQ(data_of<int64_t>(result("tenon.text.rank", texts({0}, {}))), Ints{});
  EXPECT_EQ(failure("tenon.text.rank", texts({1, 1}, {"a"})),
            "tenon.text.rank: 'x' is tensor[1, 1; string], expected a list");
}

TEST(JoinAndConcat, PutStringsTogether) {
  EXPECT_EQ(texts_of(result("tenon.text.join", texts({"a"}), texts({"", "b"}))),
            (Texts{"a", "", "b"}));
  EXPECT_EQ(texts_of(result("tenon.text.concat", texts({"a", ""}), texts({"x", "y"}))),
            (Texts{"ax", "y"}));
  EXPECT_EQ(
      failure("tenon.text.concat", texts({"a"}), texts({"x", "y"})),
      "tenon.text.concat: 'a' is tensor[1; string] and 'b' tensor[2; string], expected one shape");
}

TEST(Find, GivesTheFirstOfEqualKeys) {
  EXPECT_EQ(data_of<int64_t>(
                result("tenon.text.find", texts({"b", "", "z"}), texts({"c", "b", "b", ""}))),
            (Ints{1, 3, -1}));
  EXPECT_EQ(data_of<int64_t>(result("tenon.text.find", texts({"b"}), texts({0}, {}))), (Ints{-1}));
}

std::pair<Texts, Ints> split(const std::string& text, const std::string& delimiter,
                             int64_t most = INT64_MAX) {
  const auto both =
      call("tenon.text.split", texts({text}), String(delimiter), most).as<Array<Any>>();
  return {texts_of(both[0].as<Tensor>()), data_of<int64_t>(both[1].as<Tensor>())};
}

TEST(Split, IsThatOfPython) {
  EXPECT_EQ(split("a.b.", "."), (std::pair(Texts{"a", "b", ""}, Ints{3})));
  EXPECT_EQ(split("a.b.c", ".", 1), (std::pair(Texts{"a", "b.c"}, Ints{2})));
  EXPECT_EQ(split("", "."), (std::pair(Texts{""}, Ints{1})));
  EXPECT_EQ(split("", ""), (std::pair(Texts{}, Ints{0})));
  EXPECT_EQ(split(" a \t b\xe3\x80\x80 c ", ""), (std::pair(Texts{"a", "b", "c"}, Ints{3})));
  EXPECT_EQ(split("  a  b c  ", "", 1), (std::pair(Texts{"a", "b c  "}, Ints{2})));
  EXPECT_EQ(split("  a ", "", 0), (std::pair(Texts{"a "}, Ints{1})));
  EXPECT_EQ(split("a<>b<>c", "<>"), (std::pair(Texts{"a", "b", "c"}, Ints{3})));
}

TEST(Split, FindsDelimitersThatRepeatThemselves) {
  EXPECT_EQ(split("aabaabaaab", "aab"), (std::pair(Texts{"", "", "a", ""}, Ints{4})));
  EXPECT_EQ(split("aaaaa", "aa"), (std::pair(Texts{"", "", "a"}, Ints{3})));
  EXPECT_EQ(split("abacabacabad", "abacabad"), (std::pair(Texts{"abac", ""}, Ints{2})));
  EXPECT_EQ(split("ab", "abc"), (std::pair(Texts{"ab"}, Ints{1})));
  // Quadratic where each place is compared anew.
  const std::string delimiter = std::string(1'000'000, 'a') + "b";
  EXPECT_EQ(split(std::string(2'000'000, 'a') + "b", delimiter).second, Ints{2});
}

TEST(Split, FillsUpToTheLongest) {
  const Tensor parts = part(0, "tenon.text.split", texts({"a b", "", "c"}), String(""), INT64_MAX);
  EXPECT_EQ(shape_of(parts), (Ints{3, 2}));
  EXPECT_EQ(texts_of(parts), (Texts{"a", "b", "", "", "c", ""}));
  EXPECT_EQ(failure("tenon.text.split", texts({"a"}), 1, 1),
            "tenon.text.split: 'delimiter' is int, expected a string");
  EXPECT_EQ(failure("tenon.text.split", texts({"a"}), String(""), -1),
            "tenon.text.split: 'most' is -1, expected 0 or more");
  // Splitting é there would leave half of it.
  EXPECT_EQ(failure("tenon.text.split", texts({"\xc3\xa9"}), String("\xa9"), 1),
            "tenon.text.split: 'delimiter' is not valid UTF-8: \"\\xa9\"");
}

TEST(Case, MapsSingleCharacters) {
  EXPECT_EQ(
      texts_of(result("tenon.text.case", texts({"aZ1", "\xc3\x9f\xc3\x89", "\xd0\x96"}), true)),
      (Texts{"AZ1", "\xc3\x9f\xc3\x89", "\xd0\x96"}));
  EXPECT_EQ(texts_of(result("tenon.text.case", texts({"aZ1", "\xc3\x89", "\xd0\x96"}), false)),
            (Texts{"az1", "\xc3\xa9", "\xd0\xb6"}));
  EXPECT_EQ(upper_case(0xff), 0x178u);     // in another block
  EXPECT_EQ(upper_case(0x1fb3), 0x1fbcu);  // whose upper case of several characters isn't used
  EXPECT_EQ(lower_case(0x130), 0x69u);
  EXPECT_EQ(lower_case(0x10400), 0x10428u);
  EXPECT_EQ(lower_case(0x5b), 0x5bu);
  EXPECT_EQ(lower_case(0x10ffff), 0x10ffffu);
}

TEST(Case, TakesLongStrings) {
  std::string lower, upper;
  for (int i = 0; i < 5000; ++i) lower += "a\xc3\xa9", upper += "A\xc3\x89";
  EXPECT_EQ(texts_of(result("tenon.text.case", texts({lower, "", "x"}), true)),
            (Texts{upper, "", "X"}));
}

TEST(Match, IsOfTheWholeString) {
  EXPECT_EQ(data_of<uint8_t>(result("tenon.text.match", texts({"ab", "xaby", ""}), String("a.|"))),
            (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(data_of<uint8_t>(result("tenon.text.match", texts({"\xc3\xa9"}), String("."))),
            (std::vector<uint8_t>{1}));
}

TEST(Match, RefusesPatternsThatAreTooMuch) {
  EXPECT_EQ(failure("tenon.text.match", texts({"a"}), String("a(")),
            "tenon.text.match: the pattern is not a valid RE2 expression");
  EXPECT_EQ(failure("tenon.text.match", texts({"a"}), String("((a{1000}){1000}){1000}")),
            "tenon.text.match: the pattern is not a valid RE2 expression");
  EXPECT_EQ(failure("tenon.text.match", texts({"a"}), String(std::string(20'000, 'a'))),
            "tenon.text.match: a pattern of 20000 bytes, expected at most 16384");
  EXPECT_EQ(failure("tenon.text.match", texts({"a"}), 1),
            "tenon.text.match: 'pattern' is int, expected a string");
  // Exponential for engines that backtrack.
  EXPECT_EQ(data_of<uint8_t>(
                result("tenon.text.match", texts({std::string(5000, 'a')}), String("(a*)*b"))),
            (std::vector<uint8_t>{0}));
}

TEST(Match, RefusesTextThatCouldTakeLong) {
  // Each of the alternatives has 2^900 states, which no automaton holds.
  std::string pattern;
  for (int i = 0; i < 20; ++i) pattern += cat(i ? "|" : "", "[ab]*a[ab]{", 900 + i, "}c", i);
  EXPECT_EQ(failure("tenon.text.match", texts({"", std::string(400'000, 'a')}), String(pattern)),
            "tenon.text.match: a string is too long for the pattern");
  EXPECT_EQ(data_of<uint8_t>(
                result("tenon.text.match", texts({std::string(2000, 'a')}), String(pattern))),
            (std::vector<uint8_t>{0}));
  const std::string words = std::string(1'000'000, 'a') + "error" + std::string(1'000'000, 'b');
  EXPECT_EQ(data_of<uint8_t>(result("tenon.text.match", texts({words}), String(".*error.*"))),
            (std::vector<uint8_t>{1}));
}

// The tokens and their counts.
std::pair<Tensor, Ints> tokens(const Texts& x, const Texts& patterns, bool separators,
                               int64_t least = 1) {
  const auto found =
      call("tenon.text.tokens", texts(x), texts(patterns), separators, least).as<Array<Any>>();
  return {found[0].as<Tensor>(), data_of<int64_t>(found[1].as<Tensor>())};
}

TEST(Tokens, AreTheLongestMatches) {
  const auto [words, counts] = tokens({"ab, c\xc3\xa9!", "", "x"}, {"[a-z]|[a-z\xc3\xa9]+"}, false);
  EXPECT_EQ(shape_of(words), (Ints{3, 2}));
  EXPECT_EQ(texts_of(words), (Texts{"ab", "c\xc3\xa9", "", "", "x", ""}));
  EXPECT_EQ(counts, (Ints{2, 0, 1}));
  // What precedes the place of a search is read.
  EXPECT_EQ(texts_of(tokens({"foo bar"}, {"\\b[a-z]"}, false).first), (Texts{"f", "b"}));
  EXPECT_EQ(texts_of(tokens({"foo bar"}, {"^[a-z]"}, false).first), (Texts{"f"}));
}

TEST(Tokens, OfFewerCharactersAreDropped) {
  EXPECT_EQ(texts_of(tokens({"\xc3\xa9 \xc3\xa9\xc3\xa9 abc"}, {"[^ ]+"}, false, 2).first),
            (Texts{"\xc3\xa9\xc3\xa9", "abc"}));
  EXPECT_EQ(texts_of(tokens({"\xc3\xa9 \xc3\xa9\xc3\xa9 abc"}, {" "}, true, 2).first),
            (Texts{"\xc3\xa9\xc3\xa9", "abc"}));
  // The search goes on behind the first character of what is too short, so behind an empty match.
  EXPECT_EQ(texts_of(tokens({"\xc3\xa9 aab ab"}, {"a*"}, false).first), (Texts{"aa", "a"}));
  EXPECT_EQ(texts_of(tokens({"abb"}, {"ab|bb"}, false, 2).first), (Texts{"ab"}));
  EXPECT_EQ(texts_of(tokens({"abbb"}, {"a|bb"}, false, 2).first), (Texts{"bb"}));
}

TEST(Tokens, AreSplitByOneSeparatorAfterTheOther) {
  EXPECT_EQ(texts_of(tokens({" a-b  c-d "}, {" ", "^.-"}, true).first), (Texts{"b", "d"}));
  EXPECT_EQ(texts_of(tokens({"a,bc", "  "}, {"[, ]", "b"}, true).first), (Texts{"a", "c", "", ""}));
  // An empty match takes the character after it.
  EXPECT_EQ(tokens({"a\xc3\xa9 c"}, {"x*"}, true).second, (Ints{0}));
  EXPECT_EQ(texts_of(tokens({"ab"}, {"b|$"}, true).first), (Texts{"a"}));
  EXPECT_EQ(texts_of(tokens({"ab"}, {"$"}, true).first), (Texts{"ab"}));
}

TEST(Tokens, RefusesOtherArguments) {
  const auto refused = [](const Any& patterns, const Any& separators, const Any& least) {
    return failure("tenon.text.tokens", texts({"a\xc3\xa9"}), patterns, separators, least);
  };
  EXPECT_EQ(refused(texts({"a("}), false, 1),
            "tenon.text.tokens: the pattern is not a valid RE2 expression");
  EXPECT_EQ(refused(texts({"a", "b"}), false, 1), "tenon.text.tokens: 2 patterns, expected 1");
  EXPECT_EQ(refused(texts({0}, {}), true, 1), "tenon.text.tokens: 0 patterns, expected 1 to 32");
  EXPECT_EQ(refused(texts(Texts(33, "a")), true, 1),
            "tenon.text.tokens: 33 patterns, expected 1 to 32");
  EXPECT_EQ(refused(texts({"a"}), true, 0), "tenon.text.tokens: 'least' is 0, expected 1 or more");
  EXPECT_EQ(refused(ints({1}), true, 1),
            "tenon.text.tokens: 'patterns' is tensor[1; i64], expected a tensor of strings");
  const std::string halves =
      "tenon.text.tokens: a match ends within a character, expected a pattern without \\C";
  EXPECT_EQ(refused(texts({"a\\C"}), false, 1), halves);
  EXPECT_EQ(refused(texts({"a\\C"}), true, 1), halves);
}

TEST(Format, IsThatOfNumPy) {
  const Floats numbers = {0,     -0.0F,     1,          0.1F,     1e6F, 2e-4F,
                          1e-5F, -1.5e-42F, 123456.78F, INFINITY, NAN};
  EXPECT_EQ(texts_of(result("tenon.text.format", floats({11}, numbers))),
            (Texts{"0.0", "-0.0", "1.0", "0.1", "1e+06", "0.0002", "1e-05", "-1.5e-42", "123456.78",
                   "inf", "nan"}));
  EXPECT_EQ(texts_of(result("tenon.text.format", tensor<double>(f64, {3}, {0.1, 1e15, 1e300}))),
            (Texts{"0.1", "1000000000000000.0", "1e+300"}));
  EXPECT_EQ(texts_of(result("tenon.text.format", tensor<uint16_t>(f16, {2}, {0x2e66, 0x7bff}))),
            (Texts{"0.1", "6.55e+04"}));
  EXPECT_EQ(texts_of(result("tenon.text.format", tensor<int8_t>(i8, {2}, {-128, 7}))),
            (Texts{"-128", "7"}));
  EXPECT_EQ(texts_of(result("tenon.text.format", tensor<uint64_t>(u64, {1}, {UINT64_MAX}))),
            (Texts{"18446744073709551615"}));
  EXPECT_EQ(texts_of(result("tenon.text.format", tensor<uint8_t>(boolean, {2}, {1, 0}))),
            (Texts{"True", "False"}));
}

TEST(Format, IsTheShortestTextOfEveryF16) {
  std::vector<uint16_t> numbers(0x7c00);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint16_t>(i);
  const Tensor written = result("tenon.text.format", tensor<uint16_t>(f16, {0x7c00}, numbers));
  for (const std::string& text : texts_of(written)) {
    const std::string digits = text.substr(0, text.find('e'));
    EXPECT_TRUE(digits.ends_with(".0") || !digits.ends_with("0")) << text;
  }
  EXPECT_EQ(data_of<uint16_t>(result("tenon.text.parse", written, f16)), numbers);
}

template <class T>
std::vector<T> parsed(DataType dtype, const Texts& from) {
  return data_of<T>(result("tenon.text.parse", texts(from), dtype));
}

TEST(Parse, ReadsNumbersOfEveryForm) {
  EXPECT_EQ(parsed<float>(f32, {"1", " -2.5 ", "+1e3", "INF", "-inf", "1e99", "-1e-99", "0.1"}),
            (Floats{1, -2.5, 1000, INFINITY, -INFINITY, INFINITY, -0.0F, 0.1F}));
  EXPECT_TRUE(std::isnan(parsed<double>(f64, {"NaN"})[0]));
  EXPECT_EQ(parsed<int8_t>(i8, {"-128", "+7"}), (std::vector<int8_t>{-128, 7}));
  EXPECT_EQ(parsed<uint64_t>(u64, {"18446744073709551615"}), (std::vector<uint64_t>{UINT64_MAX}));
  EXPECT_EQ(parsed<int32_t>(i32, {"True", "False"}), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(parsed<uint16_t>(f16, {"65504"}), (std::vector<uint16_t>{0x7bff}));
}

TEST(Parse, RoundsNumbersOutOfRangeToZeroOrInfinity) {
  const std::string zeros(400, '0');
  EXPECT_EQ(parsed<double>(f64, {"0.1e400", "-0.5e999", "1" + zeros, "0." + zeros + "1e800"}),
            (std::vector<double>{INFINITY, -INFINITY, INFINITY, INFINITY}));
  EXPECT_EQ(parsed<double>(f64, {"10e-400", "-5e-999", "0." + zeros + "1", "1" + zeros + "e-900"}),
            (std::vector<double>{0, -0.0, 0, 0}));
  EXPECT_TRUE(std::signbit(parsed<double>(f64, {"-5e-999"})[0]));
  EXPECT_EQ(parsed<float>(f32, {"0.1e40", "1" + zeros + "e-5", "100e-60", "1e99999999999999999999",
                                "1e-99999999999999999999", "1E+400"}),
            (Floats{INFINITY, INFINITY, 0, INFINITY, 0, INFINITY}));
  EXPECT_EQ(parsed<double>(f64, {"1" + zeros + "e-400", "0." + zeros + "1e401", "0e99999"}),
            (std::vector<double>{1, 1, 0}));
}

TEST(Parse, RefusesOtherText) {
  const std::string none = "tenon.text.parse: the string can't be read as ";
  EXPECT_EQ(failure("tenon.text.parse", texts({"1x"}), f32), none + "f32");
  EXPECT_EQ(failure("tenon.text.parse", texts({""}), f32), none + "f32");
  EXPECT_EQ(failure("tenon.text.parse", texts({"+-1"}), f32), none + "f32");
  EXPECT_EQ(failure("tenon.text.parse", texts({"1.5"}), i32), none + "i32");
  EXPECT_EQ(failure("tenon.text.parse", texts({"128"}), i8), none + "i8");
  EXPECT_EQ(failure("tenon.text.parse", texts({"-1"}), u64), none + "u64");
  EXPECT_EQ(failure("tenon.text.parse", texts({"1"}), boolean),
            "tenon.text.parse: 'dtype' is not that of numbers");
  EXPECT_EQ(failure("tenon.text.parse", texts({"1"}), 7),
            "tenon.text.parse: 'dtype' is not that of numbers");
  EXPECT_EQ(failure("tenon.text.parse", texts({std::string(2'000'000, '1')}), f32),
            "tenon.text.parse: a string of 2000000 bytes, expected at most 1048576");
}

// 1-grams 2 and 3, and the 2-gram 5, 6.
Tensor counted_ngrams(const Ints& row, int64_t least, int64_t most, int64_t skips) {
  return result("tenon.text.ngrams",
                tensor<int64_t>(i64, {1, static_cast<int64_t>(row.size())}, row),
                ints({2, 3, 5, 6}), ints({0, 2}), ints({0, 1, 2}), least, most, skips, 3);
}

TEST(Ngrams, CountsSingleItemsOnceAndPairsAtEveryDistance) {
  EXPECT_EQ(data_of<float>(counted_ngrams({2, 5, 2, 6, 6}, 1, 2, 0)), (Floats{2, 0, 0}));
  EXPECT_EQ(data_of<float>(counted_ngrams({2, 5, 2, 6, 6}, 1, 2, 1)), (Floats{2, 0, 1}));
  EXPECT_EQ(data_of<float>(counted_ngrams({2, 5, 2, 6, 6}, 2, 2, 5)), (Floats{0, 0, 2}));
  EXPECT_EQ(data_of<float>(counted_ngrams({2, 5, 6}, 1, 1, INT64_MAX)), (Floats{1, 0, 0}));
}

TEST(Ngrams, SharePrefixes) {
  // 1-grams 7 and 5, and 2-grams 5, 7; 7, 7; 5, 6.
  EXPECT_EQ(data_of<float>(result("tenon.text.ngrams",
                                  tensor<int64_t>(i64, {2, 4},
                                                  {5, 7, 7, 5,  //
                                                   6, 5, 6, 7}),
                                  ints({7, 5, 5, 7, 7, 7, 5, 6}), ints({0, 2}),
                                  ints({4, 3, 2, 1, 0}), 1, 2, 0, 6)),
            (Floats{0, 1, 1, 2, 2, 0,  //
                    1, 0, 0, 1, 1, 0}));
}

TEST(Ngrams, RefusesListsThatDoNotFit) {
  const Tensor x = tensor<int64_t>(i64, {1, 2}, {1, 2});
  auto refusal = [&](const Ints& pool, const Ints& starts, const Ints& columns,
                     int64_t outputs = 1) {
    return failure("tenon.text.ngrams", x, ints(pool), ints(starts), ints(columns), 1, 2, 0,
                   outputs);
  };
  EXPECT_EQ(refusal({1}, {2}, {}), "tenon.text.ngrams: the 1-grams of the pool from 2 to 1 of 1");
  EXPECT_EQ(refusal({1, 2, 3}, {0, 0}, {0}),
            "tenon.text.ngrams: the 2-grams of the pool from 0 to 3 of 3");
  EXPECT_EQ(refusal({1}, {-1}, {0}),
            "tenon.text.ngrams: the 1-grams of the pool from -1 to 1 of 1");
  EXPECT_EQ(refusal({1, 2}, {0}, {0}),
            "tenon.text.ngrams: the pool has more n-grams than 'columns', 1");
  EXPECT_EQ(refusal({1}, {0}, {0, 0}), "tenon.text.ngrams: the pool has 1 n-grams, 'columns' 2");
  EXPECT_EQ(refusal({1, 1}, {0}, {0, 0}), "tenon.text.ngrams: the pool has an n-gram twice");
  EXPECT_EQ(refusal({1}, {0}, {1}), "tenon.text.ngrams: the column 1 of 1");
  EXPECT_EQ(
      failure("tenon.text.ngrams", x, ints({1}), ints({0}), ints({0}), 0, 2, 0, 1),
      "tenon.text.ngrams: 'least' 0, 'most' 2, 'skips' 0 and 'outputs' 1, expected lengths from 1 "
      "and numbers from 0");
  EXPECT_EQ(failure("tenon.text.ngrams", ints({1}), ints({1}), ints({0}), ints({0}), 1, 1, 0, 1),
            "tenon.text.ngrams: 'x' is tensor[1; i64], expected i64 of rank 2");
}

TEST(Library, StopsWhereItIsToldTo) {
  struct Stop final : Poller {
    void poll() override { throw Error(ErrorKind::Runtime, "stopped"); }
  } stop;
  const Tensor many = texts(Texts(20'000, "text")), numbers = texts(Texts(20'000, "1")),
               large = texts({std::string(3 * kPollBytes, 'a')});
  const Poller::Scope scope(&stop);
  EXPECT_EQ(failure("tenon.text.rank", many), "stopped");
  EXPECT_EQ(failure("tenon.text.concat", many, many), "stopped");
  EXPECT_EQ(failure("tenon.text.case", many, true), "stopped");
  EXPECT_EQ(failure("tenon.text.match", many, String("a")), "stopped");
  EXPECT_EQ(failure("tenon.text.format", ints(Ints(20'000, 1))), "stopped");
  EXPECT_EQ(failure("tenon.text.take", many, ints(Ints(20'000, 1))), "stopped");
  EXPECT_EQ(failure("tenon.text.join", many, many), "stopped");
  EXPECT_EQ(failure("tenon.text.find", many, many), "stopped");
  EXPECT_EQ(failure("tenon.text.split", many, String("x"), 1), "stopped");
  EXPECT_EQ(failure("tenon.text.tokens", many, texts({"x"}), true, 1), "stopped");
  EXPECT_EQ(failure("tenon.text.parse", numbers, f32), "stopped");
  // Also within one string, and between them and others.
  const std::string text(20'000, 'a');
  EXPECT_EQ(failure("tenon.text.split", texts({text}), String("b"), 1), "stopped");
  EXPECT_EQ(failure("tenon.text.split", texts({"a"}), String(text), 1), "stopped");
  EXPECT_EQ(failure("tenon.text.split", texts({text}), String(""), 1), "stopped");
  EXPECT_EQ(failure("tenon.text.tokens", texts({text}), texts({"a"}), false, 1), "stopped");
  EXPECT_EQ(failure("tenon.text.tokens", texts({text}), texts({"a"}), true, 1), "stopped");
  EXPECT_EQ(failure("tenon.text.tokens", texts({text}), texts({"b"}), true, 30'000), "stopped");
  EXPECT_EQ(failure("tenon.text.case", texts({text}), true), "stopped");
  EXPECT_EQ(failure("tenon.text.concat", large, large), "stopped");
  EXPECT_EQ(failure("tenon.text.find", large, large), "stopped");
  EXPECT_EQ(failure("tenon.text.ngrams", tensor<int64_t>(i64, {1, 1}, {1}), ints(Ints(20'000, 1)),
                    ints(Ints(20'000, 0)), ints({0}), 1, 20'000, 0, 1),
            "stopped");
}

}  // namespace
}  // namespace tenon::text
