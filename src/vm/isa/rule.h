// The verifier's rules: the rows of rules.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::vm {

enum class Rule : uint8_t {
#define TENON_RULE(identifier, name, text) identifier,
#include "vm/isa/rules.def"
};
std::string_view rule_name(Rule rule);  // "register-range"
std::span<const Rule> all_rules();

}  // namespace tenon::vm
