#include "json/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <list>

#include "object/counted_bytes.h"
#include "support/poll.h"
#include "support/utf8.h"

namespace tenon {

namespace {

// The power of ten of a JSON number's first nonzero digit. Exponents are capped at 10^15, more than
// the digits of any text can compensate for.
int64_t power_of_ten(std::string_view number) {
  int64_t power = -1, exponent = 0;
  bool found = false, fraction = false;
  size_t i = 0;
  for (; i < number.size() && number[i] != 'e' && number[i] != 'E'; ++i) {
    if (number[i] == '.') fraction = true;
    if (number[i] < '0' || number[i] > '9') continue;
    found = found || number[i] != '0';
    if (found && !fraction) ++power;
    if (!found && fraction) --power;
  }
  bool negative = i + 1 < number.size() && number[i + 1] == '-';
  for (; i < number.size(); ++i) {
    if (number[i] < '0' || number[i] > '9') continue;
    exponent = std::min<int64_t>(exponent * 10 + (number[i] - '0'), 1'000'000'000'000'000);
  }
  return power + (negative ? -exponent : exponent);
}

class Parser {
 public:
  Parser(std::string_view text, ErrorKind kind, std::string_view source, JsonLimits limits)
      : text_(text), kind_(kind), source_(source), limits_(limits) {}

  Json document() {
    Json v = value(0);
    skip_space();
    if (at_ != text_.size()) fail("text after the value");
    return v;
  }

 private:
  [[noreturn]] void fail(std::string message) const { fail_at(at_, std::move(message)); }
  [[noreturn]] void fail_at(size_t at, std::string message) const {
    throw json_error(text_, kind_, source_, at, std::move(message));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool take(char c) {
    skip_space();
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(cat("expected '", c, "'"));
  }
  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  // The depth limit bounds the recursion; callers keep it small.
  Json value(int depth) {
    ticker_.tick();
    skip_space();
    Json v;
    v.offset = at_;
    if (at_ == text_.size()) fail("the text ends where a value is expected");
    char c = peek();
    if (c == '{' || c == '[') {
      if (depth >= limits_.depth) fail(cat("more than ", limits_.depth, " levels"));
      c == '{' ? object(v, depth) : array(v, depth);
    } else if (c == '"') {
      v.kind = Json::Kind::String;
      v.string = string();
    } else if (take_word("null")) {
    } else if (take_word("true")) {
      v.kind = Json::Kind::Bool;
      v.boolean = true;
    } else if (take_word("false")) {
      v.kind = Json::Kind::Bool;
    } else {
      number(v);
    }
    return v;
  }

  // Before an element is added. The memory counts while the text is read: two bytes of it may
  // become an element.
  template <class T>
  void grow(std::vector<T>* elements) {
    if (elements->size() < elements->capacity()) return;
    constexpr size_t kCountedAtOnce = size_t{64} << 10;
    const size_t more = std::max<size_t>(elements->size(), 4);
    uncounted_ += more * sizeof(T);
    if (uncounted_ >= kCountedAtOnce) counted_.emplace_back(std::exchange(uncounted_, 0));
    elements->reserve(elements->size() + more);
  }

  void array(Json& v, int depth) {
    v.kind = Json::Kind::Array;
    ++at_;
    if (take(']')) return;
    do {
      Json element = value(depth + 1);
      grow(&v.array);
      v.array.push_back(std::move(element));
    } while (take(','));
    expect(']');
  }

  void object(Json& v, int depth) {
    v.kind = Json::Kind::Object;
    ++at_;
    if (take('}')) return;
    do {
      skip_space();
      if (peek() != '"') fail("expected a name in quotes");
      std::string name = string();
      expect(':');
      Json member = value(depth + 1);
      grow(&v.object);
      v.object.push_back({std::move(name), std::move(member)});
    } while (take(','));
    expect('}');
    check_names(v);
  }

  void check_names(const Json& v) const {
    std::vector<std::string_view> names;
    for (const auto& m : v.object) names.push_back(m.name);
    std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) fail_at(v.offset, cat("the name ", quoted(*twice), " appears twice"));
  }

  uint32_t hex4() {
    uint32_t c = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      char d = peek();
      int digit = d >= '0' && d <= '9'   ? d - '0'
                  : d >= 'a' && d <= 'f' ? d - 'a' + 10
                  : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                         : -1;
      if (digit < 0) fail("\\u needs four hexadecimal digits");
      c = c * 16 + static_cast<uint32_t>(digit);
    }
    return c;
  }

  void escape(std::string& out) {
    char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out.push_back(c);
        return;
      case 'b':
        out.push_back('\b');
        return;
      case 'f':
        out.push_back('\f');
        return;
      case 'n':
        out.push_back('\n');
        return;
      case 'r':
        out.push_back('\r');
        return;
      case 't':
        out.push_back('\t');
        return;
      case 'u': {
        uint32_t u = hex4();
        if (u >= 0xd800 && u <= 0xdbff && take_word("\\u")) {
          uint32_t low = hex4();
          if (low < 0xdc00 || low > 0xdfff) fail("an unpaired surrogate");
          u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
        } else if (u >= 0xd800 && u <= 0xdfff) {
          fail("an unpaired surrogate");
        }
        append_utf8(out, u);
        return;
      }
      default:
        --at_;
        fail("an unknown escape sequence");
    }
  }

  std::string string() {
    std::string out;
    ++at_;
    while (true) {
      ticker_.tick();
      if (at_ == text_.size()) fail("the text ends within a string");
      unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') break;
      if (c < 0x20) fail("a control character within a string");
      if (c == '\\') {
        ++at_;
        escape(out);
        continue;
      }
      size_t n = utf8_length(text_.substr(at_));
      if (n == 0) fail("a byte that is not valid UTF-8");
      out.append(text_.substr(at_, n));
      at_ += n;
    }
    ++at_;
    return out;
  }

  bool digits() {
    size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ != start;
  }

  // Whether other formats spell a number that is none, or no finite one, in this way.
  static bool names_no_number(std::string_view text) {
    std::string word(text.substr(0, 3));
    for (char& c : word) c = static_cast<char>(c | 0x20);
    return word == "nan" || word == "inf";
  }

  void number(Json& v) {
    size_t start = at_;
    if (peek() == '-') ++at_;
    bool zero = peek() == '0';
    size_t first_digit = at_;
    if (!digits()) {
      fail_at(start,
              names_no_number(text_.substr(at_))
                  ? "JSON has no NaN or infinity; a text such as \"NaN\" or \"-Infinity\" stands "
                    "for one"
                  : "expected a value");
    }
    if (zero && at_ - first_digit > 1) fail_at(start, "a number with a leading zero");
    bool whole = true;
    if (peek() == '.') {
      whole = false;
      ++at_;
      if (!digits()) fail("a number needs digits after its point");
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) fail("a number needs digits in its exponent");
    }
    const char* begin = text_.data() + start;
    const char* end = text_.data() + at_;
    auto status = std::from_chars(begin, end, v.number).ec;
    if (status != std::errc()) {
      // The number overflows or underflows; from_chars doesn't set the value.
      if (power_of_ten({begin, at_ - start}) >= 0) {
        fail_at(start, "a number beyond a double's range");
      }
      v.number = *begin == '-' ? -0.0 : 0.0;
    }
    v.kind = Json::Kind::Float;
    if (whole && std::from_chars(begin, end, v.integer).ec == std::errc()) v.kind = Json::Kind::Int;
  }

  std::string_view text_;
  ErrorKind kind_;
  std::string_view source_;
  JsonLimits limits_;
  size_t at_ = 0;
  size_t uncounted_ = 0;
  std::list<CountedBytes> counted_;
  Ticker ticker_;
};

}  // namespace

const Json* Json::find(std::string_view name) const {
  for (const auto& [n, v] : object) {
    if (n == name) return &v;
  }
  return nullptr;
}

Json parse_json(std::string_view text, ErrorKind kind, std::string_view source, JsonLimits limits) {
  return Parser(text, kind, source, limits).document();
}

Error json_error(std::string_view text, ErrorKind kind, std::string_view source, size_t offset,
                 std::string message) {
  std::string_view before = text.substr(0, std::min(offset, text.size()));
  auto line = std::count(before.begin(), before.end(), '\n') + 1;
  size_t last = before.rfind('\n');
  size_t column = before.size() - (last == std::string_view::npos ? 0 : last + 1) + 1;
  Error e(kind, cat(source, ": ", message));
  e.where(cat("line ", line, ", column ", column, ", byte ", offset));
  return e;
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_.push_back('\n');
  out_.append(static_cast<size_t>(depth_) * static_cast<size_t>(indent_), ' ');
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) out_.push_back(',');
  if (in_row_) {
    if (!first_ && indent_ != 0) out_.push_back(' ');
  } else if (depth_ > 0) {
    new_line();
  }
  first_ = false;
}

JsonWriter& JsonWriter::open(char c) {
  separate();
  out_.push_back(c);
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char c) {
  --depth_;
  if (!first_ && !in_row_) new_line();
  in_row_ = false;
  out_.push_back(c);
  first_ = false;
  return *this;
}

namespace {
void append_json_string(std::string& out, std::string_view s) {
  Ticker ticker;
  out.push_back('"');
  while (!s.empty()) {
    ticker.tick();
    size_t n = utf8_length(s);
    char c = s[0];
    if (n == 0) {
      out.append("\xef\xbf\xbd");
      n = 1;
    } else if (n == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      static const char digits[] = "0123456789abcdef";
      if (c == '\n') {
        out.append("\\n");
      } else {
        out.append("\\u00");
        out.push_back(digits[c >> 4]);
        out.push_back(digits[c & 15]);
      }
    } else {
      if (c == '"' || c == '\\') out.push_back('\\');
      out.append(s.substr(0, n));
    }
    s.remove_prefix(n);
  }
  out.push_back('"');
}
}  // namespace

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_.append(indent_ ? ": " : ":");
  after_key_ = true;
  return *this;
}

template <class T>
JsonWriter& JsonWriter::floating(T number) {
  if (!std::isfinite(number)) return null();
  separate();
  const size_t start = out_.size();
  append_text(out_, number);
  if (out_.find_first_of(".e", start) == std::string::npos) out_.append(".0");
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  out_.append("null");
  return *this;
}
JsonWriter& JsonWriter::value(bool b) {
  separate();
  append_text(out_, b);
  return *this;
}
JsonWriter& JsonWriter::value(int64_t i) {
  separate();
  append_text(out_, static_cast<long long>(i));
  return *this;
}
JsonWriter& JsonWriter::value(uint64_t i) {
  separate();
  append_text(out_, static_cast<unsigned long long>(i));
  return *this;
}
JsonWriter& JsonWriter::value(double d) {
  return floating(d);
}
JsonWriter& JsonWriter::value(float f) {
  return floating(f);
}
JsonWriter& JsonWriter::value(std::string_view s) {
  separate();
  append_json_string(out_, s);
  return *this;
}

JsonWriter& JsonWriter::value(const std::vector<std::string>& texts) {
  begin_array();
  for (const std::string& text : texts) value(text);
  return end_array();
}

}  // namespace tenon
