#include "graph/pass/clear_elements.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"
#include "graph/ir/value_words.h"

namespace tenon::graph {
namespace {

// An array and an index, of which equal ones have equal keys.
struct Element {
  const Object* array;
  const Object* index;
  int64_t number;  // of a constant index
  auto operator<=>(const Element&) const = default;
};
Element element_of(const Call& call) {
  const auto* constant = call.args[1].as<Constant>();
  const auto number = constant ? constant->value.try_as<int64_t>() : std::nullopt;
  return {call.args[0].get(), number ? nullptr : call.args[1].get(), number.value_or(0)};
}

// Finds which elements to clear, and where. Bindings are numbered in the order of the text, so that
// a binding and the blocks in it are a range of numbers.
class Finder {
 public:
  using Place = int64_t;
  // The bindings that put an element back, by the binding before which it is to be cleared; the
  // outermost array first.
  using Clearings = std::unordered_map<const Binding*, std::vector<const Binding*>>;

  static Clearings find(const FunctionExpr& function) {
    Finder finder;
    finder.number(*function.body);
    finder.next_ = 0;
    finder.block(*function.body);
    return std::move(finder.clearings_);
  }

 private:
  void number(const Block& block) {
    for (const auto& binding : block.bindings) {
      const Place here = next_++;
      const Call* reads = as_packed(binding->value, kArrayGet);
      if (!reads) reads = as_packed(binding->value, kArraySize);
      const bool is_plain = reads && !is_changed_in_place(binding->var->type);
      for_each_operand(binding->value,
                       [&](const Operand& operand) { use(operand, here, is_plain); });
      for_each_block(binding->value, [&](const BlockRef& inner) { number(*inner); });
    }
    use(block.result, next_++, false);
  }

  void use(const Operand& operand, Place place, bool is_plain) {
    const auto* var = operand.as<Var>();
    if (!var) return;
    uses_[var].insert(place);
    if (!is_plain) may_change_.insert(var);
  }

  void block(const Block& block) {
    std::vector<Place> places;
    std::vector<Element> read;
    for (const auto& binding : block.bindings) {
      places.push_back(next_++);
      if (const Call* set = as_packed(binding->value, kArraySet)) {
        put_back(block, *binding, *set, places);
      } else if (const Call* get = as_packed(binding->value, kArrayGet);
                 get && is_changed_in_place(binding->var->type)) {
        read.push_back(element_of(*get));
        read_[read.back()].push_back(binding->var.get());
      }
      for_each_block(binding->value, [&](const BlockRef& inner) { this->block(*inner); });
    }
    next_++;  // the result
    for (const Element& element : read) read_[element].pop_back();
  }

  // `places`: those of the block's bindings up to this one.
  void put_back(const Block& block, const Binding& binding, const Call& set,
                const std::vector<Place>& places) {
    const auto read = read_.find(element_of(set));
    if (read == read_.end() || read->second.empty()) return;
    const Var* element = read->second.back();
    std::set<Place>& element_uses = uses_[element];
    const Place here = places.back();
    const auto after = element_uses.lower_bound(here);
    if (after != element_uses.end() || after == element_uses.begin() ||
        !may_change_.contains(element)) {
      return;
    }
    // The binding of this block in which the element is used last.
    const auto last = std::ranges::upper_bound(places, *std::prev(after)) - places.begin() - 1;
    if (last < 0) return;
    const Place changed = places[static_cast<size_t>(last)];
    std::set<Place>& array_uses = uses_[set.args[0].get()];
    const auto used = array_uses.lower_bound(changed);
    if (used == array_uses.end() || *used != here) return;
    array_uses.erase(used);
    array_uses.insert(changed);
    auto& clearings = clearings_[block.bindings[static_cast<size_t>(last)].get()];
    clearings.insert(clearings.begin(), &binding);
  }

  Place next_ = 0;
  std::unordered_map<const Object*, std::set<Place>> uses_;
  std::unordered_set<const Object*> may_change_;  // used otherwise than to read a number or tensor
  std::map<Element, std::vector<const Var*>> read_;  // the variables for it, the innermost last
  Clearings clearings_;
};

class Clearer : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override { clearings_ = Finder::find(*function); }

  void before(const Binding& binding) override {
    const auto found = clearings_.find(&binding);
    if (found == clearings_.end()) return;
    for (const Binding* put_back : found->second) {
      const auto& args = put_back->value.as<Call>()->args;
      rest_[put_back->var.get()] = builder().call_packed(
          kArraySet, {mapped(args[0]), mapped(args[1]), Operand()}, put_back->var->type);
    }
  }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const auto rest = rest_.find(var.get());
    if (rest == rest_.end()) return keep(var, value);
    const auto& args = value.as<Call>()->args;
    return builder().call_packed(kArraySet, {rest->second, args[1], args[2]}, var->type);
  }

 private:
  Finder::Clearings clearings_;
  // The array with a cleared element, by the variable of what puts it back.
  std::unordered_map<const Var*, Operand> rest_;
};

}  // namespace

Module clear_elements(const Module& module, PassContext& /*cx*/) {
  return Clearer().run(module);
}

}  // namespace tenon::graph
