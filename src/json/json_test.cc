#include "json/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
namespace {

std::string message_of(std::string_view text, JsonLimits limits = {}) {
  try {
    parse_json(text, ErrorKind::Damaged, "x", limits);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Damaged);
    return e.message() + " @ " + e.rows().at(0).text;
  }
  return "no error";
}

TEST(Json, ReadsEveryKind) {
  Json j =
      parse_json(R"( {"a": [1, -2.5, 1e3, true, false, null, "t\u00e9\ud83d\ude00\n"], "b": {}} )");
  const auto& a = j.find("a")->array;
  EXPECT_EQ(a[0].kind, Json::Kind::Int);
  EXPECT_EQ(a[0].integer, 1);
  EXPECT_EQ(a[1].kind, Json::Kind::Float);
  EXPECT_EQ(a[1].number, -2.5);
  EXPECT_EQ(a[2].number, 1000);
  EXPECT_TRUE(a[3].boolean);
  EXPECT_FALSE(a[4].boolean);
  EXPECT_TRUE(a[5].is_null());
  EXPECT_EQ(a[6].string, "té😀\n");
  EXPECT_EQ(j.find("b")->kind, Json::Kind::Object);
  EXPECT_EQ(j.find("c"), nullptr);
}

TEST(Json, ReadsEveryEscape) {
  EXPECT_EQ(parse_json(R"("\"\\\/\b\f\n\r\t\u00aF")").string, "\"\\/\b\f\n\r\t\u00af");
}

TEST(Json, ReadsIntegersExactlyAndLargerOnesAsFloats) {
  EXPECT_EQ(parse_json("9223372036854775807").integer, INT64_MAX);
  EXPECT_EQ(parse_json("-9223372036854775808").integer, INT64_MIN);
  EXPECT_EQ(parse_json("9223372036854775808").kind, Json::Kind::Float);
  EXPECT_EQ(parse_json("1e-400").number, 0);
  EXPECT_TRUE(std::signbit(parse_json("-1e-400").number));
}

TEST(Json, TellsNumbersTooSmallFromThoseTooLarge) {
  const std::string zeros(400, '0');
  const std::vector<std::string> small = {"0.5e-999", "1000e-999", "0." + zeros + "1",
                                          "0." + zeros + "1e9", "1e-99999999999999999999"};
  const std::vector<std::string> large = {"0.5e999",
                                          "-0.5e999",
                                          "1" + zeros,
                                          "1" + zeros + "e-2",
                                          "0." + zeros + "1e999",
                                          "1e99999999999999999999"};
  for (const std::string& text : small) EXPECT_EQ(parse_json(text).number, 0) << text;
  for (const std::string& text : large) {
    EXPECT_EQ(message_of(text), "x: a number beyond a double's range @ line 1, column 1, byte 0")
        << text;
  }
  EXPECT_EQ(parse_json("0e999").number, 0);
  EXPECT_EQ(parse_json("0." + zeros + "1e401").number, 1);
}

TEST(Json, SaysWhereItIsWrong) {
  EXPECT_EQ(message_of("[1,\n 2,]"), "x: expected a value @ line 2, column 4, byte 7");
  for (const char* text : {"nan", "NaN", "-inf", "Infinity"}) {
    EXPECT_TRUE(message_of(text).starts_with("x: JSON has no NaN or infinity")) << text;
  }
  EXPECT_EQ(message_of(""),
            "x: the text ends where a value is expected @ line 1, column 1, byte 0");
  EXPECT_EQ(message_of("{\"a\" 1}"), "x: expected ':' @ line 1, column 6, byte 5");
  EXPECT_EQ(message_of("[1 2]"), "x: expected ']' @ line 1, column 4, byte 3");
  EXPECT_EQ(message_of("1 2"), "x: text after the value @ line 1, column 3, byte 2");
  EXPECT_EQ(message_of("01"), "x: a number with a leading zero @ line 1, column 1, byte 0");
  EXPECT_EQ(message_of("1."),
            "x: a number needs digits after its point @ line 1, column 3, byte 2");
  EXPECT_EQ(message_of("1e999"), "x: a number beyond a double's range @ line 1, column 1, byte 0");
  EXPECT_EQ(message_of("\"a"), "x: the text ends within a string @ line 1, column 3, byte 2");
  EXPECT_EQ(message_of("\"\\ud800\""), "x: an unpaired surrogate @ line 1, column 8, byte 7");
  EXPECT_EQ(message_of("\"\xff\""), "x: a byte that is not valid UTF-8 @ line 1, column 2, byte 1");
  EXPECT_EQ(message_of("\"\xc0\x80\""),
            "x: a byte that is not valid UTF-8 @ line 1, column 2, byte 1");
  EXPECT_EQ(message_of("{a:1}"), "x: expected a name in quotes @ line 1, column 2, byte 1");
  EXPECT_EQ(message_of("1e+"),
            "x: a number needs digits in its exponent @ line 1, column 4, byte 3");
  EXPECT_EQ(message_of("\"\\u00g0\""),
            "x: \\u needs four hexadecimal digits @ line 1, column 6, byte 5");
  EXPECT_EQ(message_of("\"\\q\""), "x: an unknown escape sequence @ line 1, column 3, byte 2");
  EXPECT_EQ(message_of("\"a\tb\""),
            "x: a control character within a string @ line 1, column 3, byte 2");
  EXPECT_EQ(message_of("\"\\ud800\\u0041\""),
            "x: an unpaired surrogate @ line 1, column 14, byte 13");
  EXPECT_EQ(message_of("\"\\udc00\""), "x: an unpaired surrogate @ line 1, column 8, byte 7");
  EXPECT_EQ(message_of("{\"a\":1,\"a\":2}"),
            "x: the name \"a\" appears twice @ line 1, column 1, byte 0");
}

TEST(Json, EndsAtTheDepthLimit) {
  EXPECT_EQ(message_of("[[[]]]", {2}), "x: more than 2 levels @ line 1, column 3, byte 2");
  EXPECT_NE(message_of(std::string(1000000, '[')), "no error");
}

TEST(Json, EveryPrefixOfADocumentIsAnErrorAndNoCrash) {
  std::string text = R"({"a": [1, -2.5e3, true, null, "t\u00e9\n"], "b": {}})";
  for (size_t n = 0; n < text.size(); ++n)
    EXPECT_NE(message_of(text.substr(0, n)), "no error") << n;
}

TEST(Json, WritesWhatItReads) {
  JsonWriter w;
  w.begin_object().key("a").begin_array().value(1).value(2.0).value("x\"\n\x01").null().value(true);
  w.end_array().key("b").begin_object().end_object().end_object();
  std::string text = w.take();
  EXPECT_EQ(text, "{\"a\":[1,2.0,\"x\\\"\\n\\u0001\",null,true],\"b\":{}}");
  Json j = parse_json(text);
  EXPECT_EQ(j.find("a")->array[1].kind, Json::Kind::Float);
  EXPECT_EQ(j.find("a")->array[2].string, "x\"\n\x01");
}

TEST(Json, WritesNumbersOfEveryKind) {
  JsonWriter w;
  w.begin_array()
      .value(UINT64_MAX)
      .value(INT64_MIN)
      .value(HUGE_VAL)
      .value(std::nanf(""))
      .value(1e300);
  EXPECT_EQ(w.end_array().take(), "[18446744073709551615,-9223372036854775808,null,null,1e+300]");
}

TEST(Json, IndentsWhenAsked) {
  JsonWriter w(2);
  w.begin_object().key("a").begin_array().value(1).value(2).end_array().end_object();
  EXPECT_EQ(w.take(), "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
}

TEST(Json, KeepsARowOnOneLine) {
  JsonWriter w(2);
  w.begin_array().begin_row().value(1).value("a").end_row().begin_row().end_row().end_array();
  EXPECT_EQ(w.take(), "[\n  [1, \"a\"],\n  []\n]");
  JsonWriter plain;
  plain.begin_row().value(1).value(2).end_row();
  EXPECT_EQ(plain.take(), "[1,2]");
}

TEST(Json, WritesTheShortestTextOfAFloat) {
  JsonWriter w;
  w.begin_array().value(0.1f).value(0.1).value(3.0f).end_array();
  EXPECT_EQ(w.take(), "[0.1,0.1,3.0]");
}

TEST(Json, ReplacesBytesThatAreNoText) {
  JsonWriter w;
  w.value(std::string_view("a\xff"));
  EXPECT_EQ(w.take(), "\"a\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace tenon
