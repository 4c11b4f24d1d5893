// Values as text for people.
#pragma once

#include <string>

#include "object/any.h"
#include "object/tensor.h"
#include "vm/isa/signature.h"

namespace tenon::tool {

// Element i of a tensor as a double; integers beyond 2^53 are rounded.
double element_as_double(const Tensor& tensor, int64_t i);
// Element i as it prints: "1.5", "true", "-3"; every NaN as "nan".
std::string element_text(const Tensor& tensor, int64_t i);

inline constexpr int64_t kShownElements = 8;
// A bound for what is printed: values that share their parts would have a text of any length.
inline constexpr size_t kMostText = size_t{1} << 16;

// "tensor[2, 3; f32] = [0.1, 2.5, ...]" with at most `count` elements, also for tuples. A scalar is
// printed with the type that the function's signature gives it. What is nested deeply, or follows
// when the text has reached `most` characters, is elided.
std::string value_text(const Any& value, const vm::SignatureType& type = {},
                       int64_t count = kShownElements, size_t most = kMostText);

}  // namespace tenon::tool
