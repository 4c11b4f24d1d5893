#include "tools/tenon/json_tensor.h"

#include <cstring>
#include <vector>

#include "device/device.h"
#include "json/json.h"
#include "loop/scalar_tensor.h"
#include "object/string_tensor.h"
#include "support/poll.h"
#include "tools/tenon/number_text.h"

namespace tenon::tool {
namespace {

class Lists {
 public:
  Lists(std::string_view text, DataType dtype)
      : text_(text),
        dtype_(dtype),
        source_(dtype == string_elements ? "the strings" : "the numbers") {}

  Tensor tensor() {
    const Json document = parse_json(text_, ErrorKind::Usage, source_, {kMaxRank + 1});
    const Json* first = &document;
    while (first->kind == Json::Kind::Array) {
      shape_.push_back(static_cast<int64_t>(first->array.size()));
      if (first->array.empty()) break;
      first = &first->array[0];
    }
    add(document, 0);
    if (dtype_ == string_elements) return string_tensor(shape_, strings_);
    Tensor out = allocate_tensor(shape_, dtype_);
    if (!numbers_.empty()) std::memcpy(out.data(), numbers_.data(), numbers_.size());
    return out;
  }

 private:
  [[noreturn]] void fail(const Json& at, const std::string& expected) const {
    const std::string elements = dtype_ == string_elements ? "strings" : to_text(dtype_);
    throw json_error(text_, ErrorKind::Usage, source_, at.offset, cat("not a tensor of ", elements))
        .expected(expected);
  }

  void add(const Json& value, size_t axis) {
    ticker_.tick();
    if (axis == shape_.size()) {
      return dtype_ == string_elements ? add_string(value) : add_number(value);
    }
    if (value.kind != Json::Kind::Array ||
        static_cast<int64_t>(value.array.size()) != shape_[axis]) {
      fail(value, cat("a list of ", shape_[axis], ", as before it"));
    }
    for (const Json& item : value.array) add(item, axis + 1);
  }

  static bool is_number_name(std::string_view text) {
    return text == "NaN" || text == "Infinity" || text == "-Infinity";
  }

  void add_string(const Json& value) {
    if (value.kind != Json::Kind::String) fail(value, "a string in quotes");
    strings_.emplace_back(value.string);
  }

  // From its text, since JSON's numbers are doubles. Those that it lacks are strings, as in what
  // `--json` prints.
  void add_number(const Json& value) {
    const std::string_view rest = text_.substr(value.offset);
    const auto number =
        scalar_value(dtype_, value.kind == Json::Kind::String && is_number_name(value.string)
                                 ? std::string_view(value.string)
                                 : rest.substr(0, rest.find_first_of(",] \t\r\n")));
    if (!number) {
      fail(value, dtype_.is_bool() ? "true or false" : cat("a number of ", numbers_of(dtype_)));
    }
    const Tensor one = loop::scalar_tensor(dtype_, *number);
    const char* const bytes = one.data_as<char>();
    numbers_.insert(numbers_.end(), bytes, bytes + one.bytes());
  }

  std::string_view text_;
  DataType dtype_;
  std::string_view source_;
  std::vector<int64_t> shape_;
  std::vector<std::string_view> strings_;
  std::vector<char> numbers_;
  Ticker ticker_;
};

}  // namespace

bool is_json_tensor(std::string_view text, DataType dtype) {
  const size_t begin = text.find_first_not_of(" \t\n\r");
  if (begin == std::string_view::npos || dtype.is_complex()) return false;
  return text[begin] == '[' || (text[begin] == '"' && dtype == string_elements);
}

Tensor parse_json_tensor(std::string_view text, DataType dtype) {
  return Lists(text, dtype).tensor();
}

}  // namespace tenon::tool
