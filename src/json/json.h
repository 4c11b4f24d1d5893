// JSON (RFC 8259): a small reader and writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error.h"

namespace tenon {

struct Json {
  enum class Kind : uint8_t { Null, Bool, Int, Float, String, Array, Object };
  struct Member;

  Kind kind = Kind::Null;
  bool boolean = false;
  int64_t integer = 0;  // of Int: a number that fits and has neither fraction nor exponent
  double number = 0;    // of Int and Float
  std::string string;
  std::vector<Json> array;
  std::vector<Member> object;  // in the order of the text
  size_t offset = 0;           // of the value's first byte in the text

  bool is_null() const { return kind == Kind::Null; }
  // The member of that name, or null if there is none or this is not an object.
  const Json* find(std::string_view name) const;
};

struct Json::Member {
  std::string name;
  Json value;
};

struct JsonLimits {
  int depth = 64;  // of nested arrays and objects
};

// Parses a text that consists of one value. Throws an error of `kind`, with line, column and byte
// in the text called `source`, for bad syntax, invalid UTF-8, duplicate names in an object, and
// excessive nesting.
Json parse_json(std::string_view text, ErrorKind kind = ErrorKind::Usage,
                std::string_view source = "JSON", JsonLimits limits = {});
// The error for a problem at `offset` of such a text.
Error json_error(std::string_view text, ErrorKind kind, std::string_view source, size_t offset,
                 std::string message);

// Writes text piece by piece and inserts commas and, unless `indent` is 0, line breaks.
class JsonWriter {
 public:
  explicit JsonWriter(int indent = 0) : indent_(indent) {}
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  // An array of values that aren't arrays or objects, on one line.
  JsonWriter& begin_row() {
    open('[');
    in_row_ = true;
    return *this;
  }
  JsonWriter& end_row() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& null();
  JsonWriter& value(bool b);
  JsonWriter& value(int64_t i);
  JsonWriter& value(int32_t i) { return value(int64_t{i}); }
  JsonWriter& value(uint64_t i);
  // Finite numbers read back equal and as floats; others become null.
  JsonWriter& value(double d);
  JsonWriter& value(float f);
  JsonWriter& value(std::string_view s);  // invalid UTF-8 becomes U+FFFD
  JsonWriter& value(const char* s) { return value(std::string_view(s)); }
  JsonWriter& value(const std::vector<std::string>& texts);  // an array
  std::string take() { return std::move(out_); }

 private:
  JsonWriter& open(char c);
  JsonWriter& close(char c);
  template <class T>
  JsonWriter& floating(T number);
  void separate();
  void new_line();

  std::string out_;
  int indent_;
  int depth_ = 0;
  bool first_ = true;  // in this array or object
  bool after_key_ = false;
  bool in_row_ = false;
};

}  // namespace tenon
