// Strings of .npy files: NumPy's dtypes U, of code points of 32 bits, and S, of bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "object/tensor.h"

namespace tenon::tool {

struct StringForm {
  bool code_points = true;  // else bytes
  bool big_endian = false;
  size_t width = 0;  // code points or bytes of an element, filled up with zeros

  size_t bytes() const { return width * (code_points ? 4 : 1); }
};

// Of a header's dtype, such as '<U5' or '|S3' in quotes; nullopt for any other.
std::optional<StringForm> read_string_form(std::string_view descr);
// The tensor of a file's elements. Throws Usage, with the file's path, for an element that isn't
// text: code points that don't exist, or bytes that aren't UTF-8.
Tensor strings_of_npy(const std::string& path, const StringForm& form, std::string_view data,
                      std::span<const int64_t> shape);
// The elements as a file holds them, filled up to the longest, and their form.
std::string npy_strings(const Tensor& strings, StringForm* form);

}  // namespace tenon::tool
