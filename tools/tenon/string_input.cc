#include "tools/tenon/string_input.h"

#include "json/json.h"
#include "object/string_tensor.h"

namespace tenon::tool {
namespace {

constexpr std::string_view kSource = "the strings";

class Lists {
 public:
  explicit Lists(std::string_view text) : text_(text) {}

  Tensor tensor() {
    const Json document = parse_json(text_, ErrorKind::Usage, kSource, {kMaxRank + 1});
    const Json* first = &document;
    while (first->kind == Json::Kind::Array) {
      shape_.push_back(static_cast<int64_t>(first->array.size()));
      if (first->array.empty()) break;
      first = &first->array[0];
    }
    add(document, 0);
    return string_tensor(shape_, elements_);
  }

 private:
  [[noreturn]] void fail(const Json& at, const std::string& expected) const {
    throw json_error(text_, ErrorKind::Usage, kSource, at.offset, "not a tensor of strings")
        .expected(expected);
  }

  void add(const Json& value, size_t axis) {
    if (axis == shape_.size()) {
      if (value.kind != Json::Kind::String) fail(value, "a string in quotes");
      elements_.emplace_back(value.string);
      return;
    }
    if (value.kind != Json::Kind::Array ||
        static_cast<int64_t>(value.array.size()) != shape_[axis]) {
      fail(value, cat("a list of ", shape_[axis], ", as before it"));
    }
    for (const Json& item : value.array) add(item, axis + 1);
  }

  std::string_view text_;
  std::vector<int64_t> shape_;
  std::vector<std::string_view> elements_;
};

}  // namespace

bool is_string_list(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n\r");
  return begin != std::string_view::npos && (text[begin] == '[' || text[begin] == '"');
}

Tensor parse_string_tensor(std::string_view text) {
  return Lists(text).tensor();
}

}  // namespace tenon::tool
