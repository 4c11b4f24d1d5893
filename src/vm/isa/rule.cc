#include "vm/isa/rule.h"

#include "vm/isa/short_text.h"

namespace tenon::vm {
namespace {

constexpr size_t kLongestName = longest({
#define TENON_RULE(identifier, name, text) name,
#include "vm/isa/rules.def"
});
constexpr ShortText<kLongestName> kNames[] = {
#define TENON_RULE(identifier, name, text) name,
#include "vm/isa/rules.def"
};
constexpr Rule kRules[] = {
#define TENON_RULE(identifier, name, text) Rule::identifier,
#include "vm/isa/rules.def"
};

}  // namespace

std::string_view rule_name(Rule rule) {
  return kNames[static_cast<size_t>(rule)];
}
std::span<const Rule> all_rules() {
  return kRules;
}

}  // namespace tenon::vm
