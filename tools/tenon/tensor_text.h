// Values as text for people.
#pragma once

#include <string>
#include <string_view>

#include "object/any.h"
#include "object/tensor.h"
#include "tools/tenon/data_types.h"

namespace tenon::tool {

inline constexpr int64_t kShownElements = 8;
// A bound for what is printed: values that share their parts would have a text of any length.
inline constexpr size_t kMostText = size_t{1} << 16;
inline constexpr size_t kMostFullText = size_t{1} << 28;  // where a user asked for everything

// Whether the text begins as that of a tensor does, which parse_tensor reads.
bool is_tensor_text(std::string_view text);
// The tensor of a literal of the language, "tensor[2; f32]{1, 2}", or of the text that value_text
// makes of it, "tensor[2; f32] = [1, 2]", with or without its spaces, if that has all elements.
// Throws Usage for other text.
Tensor parse_tensor(std::string_view text);

// "tensor[2, 3; f32] = [0.1, 2.5, ...]" with at most `count` elements, also in tuples; data types
// as data_types.h describes. Scalars and cells are printed with the type that the function's
// signature gives them. What follows when the text has reached `most` characters is elided, and of
// a string, unless `count` is the greatest, what follows 400. Polls.
std::string value_text(const Any& value, const vm::SignatureType& type = {},
                       const DataTypes& types = {}, int64_t count = kShownElements,
                       size_t most = kMostText);

}  // namespace tenon::tool
