// The side effects of a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

// Stored in files, so the numbers never change. A larger number is more restrictive.
enum class Effect : uint8_t {
  // The result depends only on the arguments. Calls may be merged, dropped if unused, and moved
  // freely.
  Pure = 0,
  // The result also depends on state that Ordered calls may change. Calls may be merged or dropped
  // but never move across an Ordered call.
  Reads = 1,
  // May change state that others observe: executed exactly once, in program order.
  Ordered = 2,
};

inline constexpr std::string_view kEffectNames[] = {"pure", "reads", "ordered"};

constexpr std::string_view to_text(Effect effect) {
  return kEffectNames[static_cast<size_t>(effect)];
}
// Nullopt for an unknown name.
constexpr std::optional<Effect> effect_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kEffectNames); ++i) {
    if (kEffectNames[i] == name) return static_cast<Effect>(i);
  }
  return std::nullopt;
}

}  // namespace tenon
