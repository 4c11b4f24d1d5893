#include "vm/isa/rule.h"

#include "vm/isa/short_text.h"

namespace tenon::vm {
namespace {

constexpr ShortText<15> kNames[] = {
#define TENON_RULE(identifier, name, text) name,
#include "vm/isa/rules.def"
#undef TENON_RULE
};
constexpr std::string_view kTexts[] = {
#define TENON_RULE(identifier, name, text) text,
#include "vm/isa/rules.def"
#undef TENON_RULE
};
constexpr Rule kRules[] = {
#define TENON_RULE(identifier, name, text) Rule::identifier,
#include "vm/isa/rules.def"
#undef TENON_RULE
};

}  // namespace

std::string_view rule_name(Rule rule) {
  return kNames[static_cast<size_t>(rule)];
}
std::string_view rule_text(Rule rule) {
  return kTexts[static_cast<size_t>(rule)];
}
std::span<const Rule> all_rules() {
  return kRules;
}

}  // namespace tenon::vm
