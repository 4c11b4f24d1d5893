#include "tools/tenon/numpy/npy_strings.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "object/string_tensor.h"
#include "support/error.h"
#include "support/poll.h"
#include "support/utf8.h"

namespace tenon::tool {
namespace {

constexpr size_t kPoint = 4;  // bytes of a code point

uint32_t point_at(std::string_view data, size_t i, bool big_endian) {
  uint32_t point = 0;
  for (size_t k = 0; k < kPoint; ++k) {
    const auto byte = static_cast<unsigned char>(data[i * kPoint + k]);
    point |= uint32_t{byte} << (8 * (big_endian ? kPoint - 1 - k : k));
  }
  return point;
}

// Zeros at the end fill an element up.
std::string text_of(const StringForm& form, std::string_view data) {
  if (!form.code_points) return std::string(data.substr(0, data.find_last_not_of('\0') + 1));
  size_t size = form.width;
  while (size > 0 && point_at(data, size - 1, form.big_endian) == 0) --size;
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    const uint32_t point = point_at(data, i, form.big_endian);
    append_utf8(text, point > 0x10ffff ? 0xd800 : point);  // which isn't a character either
  }
  return text;
}

}  // namespace

std::optional<StringForm> read_string_form(std::string_view descr) {
  if (descr.size() < 5 || (descr[0] != '\'' && descr[0] != '"')) return std::nullopt;
  const size_t end = descr.find(descr[0], 1);
  if (end == std::string_view::npos || end < 4) return std::nullopt;
  const char order = descr[1], kind = descr[2];
  if (std::string_view("<>|=").find(order) == std::string_view::npos) return std::nullopt;
  if (kind != 'U' && kind != 'S') return std::nullopt;
  StringForm form{kind == 'U', order == '>', 0};
  const auto [stop, error] = std::from_chars(descr.data() + 3, descr.data() + end, form.width);
  // Elements of no width would take no bytes of the file, however many there are; NumPy makes none.
  constexpr size_t kMostWidth = size_t{1} << 40;
  const bool known = form.width > 0 && form.width <= kMostWidth;
  if (error != std::errc() || stop != descr.data() + end || !known) return std::nullopt;
  return form;
}

Tensor strings_of_npy(const std::string& path, const StringForm& form, std::string_view data,
                      std::span<const int64_t> shape) {
  StringTensorBuilder made(shape);
  Ticker ticker;
  const size_t size = form.bytes();
  for (int64_t i = 0, n = element_count(shape).value_or(0); i < n; ++i) {
    ticker.tick(size);
    const std::string text = text_of(form, data.substr(static_cast<size_t>(i) * size, size));
    require_utf8(text, i, path);
    made.append(text);
  }
  return made.finish();
}

std::string npy_strings(const Tensor& strings, StringForm* form) {
  const Strings elements(strings);
  *form = {true, false, 1};  // NumPy has no element of width 0 in files
  auto points = [](std::string_view text) {
    return static_cast<size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
  };
  for (int64_t i = 0; i < elements.size(); ++i)
    form->width = std::max(form->width, points(elements[i]));
  std::string out(static_cast<size_t>(elements.size()) * form->bytes(), '\0');
  Ticker ticker;
  for (int64_t i = 0; i < elements.size(); ++i) {
    ticker.tick(form->bytes());
    char* to = out.data() + static_cast<size_t>(i) * form->bytes();
    for (std::string_view rest = elements[i]; !rest.empty(); to += kPoint) {
      const uint32_t point = take_code_point(rest);
      std::memcpy(to, &point, kPoint);  // little-endian
    }
  }
  return out;
}

}  // namespace tenon::tool
