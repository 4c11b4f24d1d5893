// The elements of compact tensors on the CPU, as numbers and as text.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <string>

#include "object/tensor.h"
#include "support/text.h"

namespace tenon::report {

// Without the sign of a NaN, which depends on the instructions that made it.
template <class T>
std::string float_text(T value) {
  return std::isnan(value) ? "nan" : cat(value);
}

// Element i of a tensor as a double; integers beyond 2^53 are rounded.
double element_as_double(const Tensor& tensor, int64_t i);
// The same for complex numbers too; the imaginary part of other elements is 0.
std::complex<double> element_as_complex(const Tensor& tensor, int64_t i);
// Element i as it prints: "1.5", "true", "-3", "(1, -2)" for a complex number; every NaN as "nan";
// a string in quotes.
std::string element_text(const Tensor& tensor, int64_t i);

}  // namespace tenon::report
