// Numbers of each element type as text, read exactly.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "object/any.h"
#include "object/dtype.h"

namespace tenon::tool {

// What texts are numbers of the type: "i8 from -128 to 127".
std::string numbers_of(DataType dtype);

// An integer, 31 or 0x1f, or boolean of that type; a u64 is returned as its bits.
std::optional<int64_t> parse_integer(std::string_view text, DataType dtype);
// A float that the type can hold, including infinities and NaN; rounded to f32 for f32.
std::optional<double> parse_float(std::string_view text, DataType dtype);
// The value of a scalar. Each is nullopt if the text is not a number that the type can hold.
std::optional<Any> scalar_value(DataType dtype, std::string_view text);

}  // namespace tenon::tool
