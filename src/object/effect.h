// What a call does beside giving its value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

// Stored in files: the numbers never change. A larger one allows the compiler less.
enum class Effect : uint8_t {
  // The value depends on the arguments alone. Equal calls may be shared, unused ones dropped, and
  // any of them moved.
  Pure = 0,
  // The value also depends on state that Ordered calls may change. It may be shared or dropped, but
  // never moves across an Ordered call.
  Reads = 1,
  // May change state that others observe: made exactly once, in program order.
  Ordered = 2,
};

inline constexpr std::string_view kEffectNames[] = {"pure", "reads", "ordered"};

constexpr std::string_view to_text(Effect effect) {
  return kEffectNames[static_cast<size_t>(effect)];
}
// Nothing for a text that names no effect.
constexpr std::optional<Effect> effect_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kEffectNames); ++i) {
    if (kEffectNames[i] == name) return static_cast<Effect>(i);
  }
  return std::nullopt;
}

}  // namespace tenon
