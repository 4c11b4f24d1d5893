// The words of loop IR in module text, in the order of the enumerations.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "loop/expr.h"
#include "loop/kernel.h"

namespace tenon::graph {

inline constexpr std::string_view kUnaryWords[] = {
    "neg",  "abs",  "not",  "bit_not", "sign",    "floor", "ceil",   "trunc", "round", "sqrt",
    "exp",  "log",  "tanh", "erf",     "sigmoid", "sin",   "cos",    "tan",   "asin",  "acos",
    "atan", "sinh", "cosh", "asinh",   "acosh",   "atanh", "is_nan", "is_inf"};
// Signs stand between their operands.
inline constexpr std::string_view kBinaryWords[] = {
    "+",   "-",  "*",  "/", "floordiv", "mod", "rem", "pow", "atan2", "min",
    "max", "==", "!=", "<", "<=",       "&",   "|",   "^",   "<<",    ">>"};
inline constexpr std::string_view kLoopWords[] = {"for", "parallel", "vector", "unrolled"};

static_assert(std::size(kUnaryWords) == static_cast<size_t>(loop::UnaryOp::kIsInf) + 1);
static_assert(std::size(kBinaryWords) == static_cast<size_t>(loop::BinaryOp::kShr) + 1);
static_assert(std::size(kLoopWords) == static_cast<size_t>(loop::ForKind::kUnrolled) + 1);

template <size_t N>
std::optional<uint8_t> index_of(const std::string_view (&words)[N], std::string_view word) {
  for (size_t i = 0; i < N; ++i) {
    if (words[i] == word) return static_cast<uint8_t>(i);
  }
  return std::nullopt;
}

inline bool is_sign(std::string_view word) {
  return !(word[0] >= 'a' && word[0] <= 'z');
}

}  // namespace tenon::graph
