// The verifier's rules: the rows of rules.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::vm {

enum class Rule : uint8_t {
#define TENON_RULE(identifier, name, text) identifier,
#include "vm/isa/rules.def"
#undef TENON_RULE
};
std::string_view rule_name(Rule rule);  // "register-range"
std::string_view rule_text(Rule rule);
std::span<const Rule> all_rules();

}  // namespace tenon::vm
