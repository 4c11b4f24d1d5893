// Values as text for people.
#pragma once

#include <string>

#include "object/any.h"
#include "object/tensor.h"
#include "vm/isa/signature.h"

namespace tenon::tool {

// Element i of a tensor as a double; integers beyond 2^53 are rounded.
double element_as_double(const Tensor& tensor, int64_t i);
// Element i as it prints: "1.5", "true", "-3".
std::string element_text(const Tensor& tensor, int64_t i);

// "float32[2, 3] = [0.1, 2.5, ...]" with at most `count` elements, also for tuples. A scalar is
// printed with the type that the function's signature gives it. Deeply nested values are elided.
std::string value_text(const Any& value, const vm::SignatureType& type = {}, int64_t count = 8);

}  // namespace tenon::tool
