// The words of loop IR in module text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "loop/expr.h"
#include "loop/kernel.h"

namespace tenon::graph {

template <size_t N>
std::optional<uint8_t> index_of(const char* const (&words)[N], std::string_view word) {
  for (size_t i = 0; i < N; ++i) {
    if (words[i] == word) return static_cast<uint8_t>(i);
  }
  return std::nullopt;
}

// The index of the operation with that name.
inline std::optional<uint8_t> index_of(std::span<const loop::ScalarOpInfo> ops,
                                       std::string_view word) {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].word == word) return static_cast<uint8_t>(i);
  }
  return std::nullopt;
}

inline bool is_sign(std::string_view word) {
  return !(word[0] >= 'a' && word[0] <= 'z');
}

}  // namespace tenon::graph
