// Calls between functions: what is known of each, and recursion.
#include <algorithm>

#include "report/list_recursion.h"
#include "report/memory_walk.h"
#include "support/error.h"
#include "support/poll.h"
#include "support/text.h"

namespace tenon::report::memory {
namespace {

constexpr uint32_t kEntry = UINT32_MAX - 1;  // the offset of the join of a function's calls
constexpr size_t kMaxSteps = 20'000'000;
constexpr size_t kMaxNesting = 256;

Components components_of(const vm::Unit& unit) {
  std::vector<std::vector<size_t>> edges;
  for (const vm::FunctionUnit& function : unit.functions) {
    std::set<size_t> callees;
    vm::Instruction in;
    for (uint32_t at = 0; vm::decode(function.code, at, &in); at += in.words()) {
      for (const vm::Word word : in.operands) {
        if (vm::Arg(word).is(vm::ArgKind::Function)) callees.insert(vm::Arg(word).index());
      }
    }
    edges.emplace_back(callees.begin(), callees.end());
  }
  return Components(std::move(edges));
}

void describe(const ValueRef& value, std::string* out) {
  if (!value) {
    *out += "_;";
    return;
  }
  if (value->number) *out += cat("=", to_text(*value->number));
  if (value->dims) {
    *out += "[";
    for (const auto& dim : *value->dims) *out += dim ? cat(to_text(*dim), ",") : "?,";
    *out += "]";
  }
  if (value->dtype) *out += cat("d", value->dtype->word());
  if (value->function) *out += cat("@", *value->function);
  for (const StorageId storage : value->own) *out += cat("s", storage);
  if (value->fields) {
    *out += "(";
    for (const ValueRef& field : *value->fields) describe(field, out);
    *out += ")";
  }
  *out += ";";
}

std::string key_of(size_t function, const State& arguments, const StorageTable& storages) {
  std::string key = cat(function, ":");
  for (const ValueRef& argument : arguments) describe(argument, &key);
  for (StorageId i = 0; i < storages.size(); ++i) {
    key += cat(storages[i].held ? "h" : "o", to_text(storages[i].bytes), ",");
  }
  return key;
}

// The larger of all; 0 of none.
Dim largest(const Amounts& amounts) {
  Dim out = 0;
  for (const Dim& amount : amounts) out = max(out, amount);
  return out;
}

}  // namespace

Analysis::Analysis(const vm::Unit& unit) : unit_(unit), components_(components_of(unit)) {}

void Analysis::count_steps(size_t steps) {
  const size_t before = steps_;
  steps_ += steps;
  if (steps_ > kMaxSteps) throw Unanalysed();
  if (before / 1024 != steps_ / 1024) poll();
}

Dim Analysis::defined(const Dim& d) const {
  if (definitions_.empty()) return d;
  return substitute(d, [this](std::string_view symbol) -> std::optional<Dim> {
    const auto found = definitions_.find(symbol);
    return found == definitions_.end() ? std::nullopt : std::optional(found->second);
  });
}

std::shared_ptr<const Summary> Analysis::call(size_t function, const State& arguments,
                                              const StorageTable& storages) {
  auto& known = known_[key_of(function, arguments, storages)];
  if (!known) {
    // `known` stays valid: a map's elements don't move.
    known = std::make_shared<const Summary>(analyse(function, arguments, storages));
  }
  return known;
}

Summary Analysis::analyse(size_t function, const State& arguments, const StorageTable& storages) {
  if (active_.size() > kMaxNesting) throw Unanalysed();
  const size_t component = components_.component_of(function);
  active_.insert(component);
  Summary out;
  if (components_.is_on_cycle(function)) {
    State held = arguments;
    Storages all;
    for (StorageId i = 0; i < storages.size(); ++i) all.push_back(i);
    for (ValueRef& argument : held) {
      argument = with_storages(argument, [](StorageId) { return Storages{Component::kHeld}; });
    }
    const Summary recursive = Component(this, function).analyse(held);
    out.storages = storages;
    const StorageId made = out.storages.add({.bytes = recursive.storages[Component::kMade].bytes});
    out.returns = recursive.returns;
    out.result = with_storages(recursive.result, [&](StorageId storage) {
      return storage == Component::kHeld ? all : Storages{made};
    });
    const Dim owned = storages.total(all);
    for (const Dim& peak : recursive.peaks) out.peaks.add(owned + peak);
  } else {
    Walk walk(this, nullptr, function, arguments, storages);
    walk.run();
    out = std::move(walk).summary();
  }
  active_.erase(component);
  return out;
}

bool Component::contains(size_t function) const {
  const Components& components = analysis_.components();
  return components.component_of(function) == components.component_of(root_);
}

Component::Member& Component::member(size_t function) {
  const auto [known, is_new] = members_.try_emplace(function);
  if (is_new) {
    known->second.storages.add({.bytes = 0, .held = true});
    known->second.storages.add({.bytes = 0, .held = true});
  }
  return known->second;
}

void Component::join_entry(size_t function, Member* member, const State& arguments) {
  if (member->entry.empty()) {
    member->entry = arguments;
    if (!arguments.empty()) changed_ = true;
    return;
  }
  const std::string name = cat("@", analysis_.unit().functions[function].name);
  const JoinContext context{&member->storages,
                            &analysis_.unknowns(),
                            kEntry,
                            name,
                            cat("calls(", name, ")"),
                            cat("how often ", name, " is called")};
  if (join(context, &member->entry, arguments)) changed_ = true;
}

void Component::enter(size_t function, const State& arguments) {
  if (!members_.contains(function)) changed_ = true;
  join_entry(function, &member(function), arguments);
}

void Component::enter_by_tail_call(size_t function, const State& arguments,
                                   const StorageTable& storages, size_t shared, size_t caller,
                                   uint32_t offset) {
  if (!members_.contains(function)) changed_ = true;
  Member& callee = member(function);
  State moved = arguments;
  for (ValueRef& argument : moved) {
    argument = with_storages(argument, [&](StorageId storage) {
      if (storage == kHeld || storage < shared) return Storages{storage};
      const auto [known, is_new] = passed_.try_emplace({{caller, offset}, storage}, StorageId());
      if (is_new) known->second = callee.storages.add({});
      callee.storages[known->second].bytes = storages[storage].bytes;
      return Storages{known->second};
    });
  }
  join_entry(function, &callee, moved);
}

const ValueRef* Component::result(size_t function) const {
  const auto found = members_.find(function);
  return found == members_.end() || !found->second.result ? nullptr : &*found->second.result;
}

Dim Component::depth_of(size_t function) const {
  if (const auto bound = bound_by_list(function, false)) return *bound;
  const std::string name = cat("@", analysis_.unit().functions[function].name);
  return analysis_.unknowns().symbol(cat("depth(", name, ")"),
                                     cat("how many calls of ", name, " are on the stack at once"));
}

Dim Component::calls_of(size_t function) const {
  if (const auto bound = bound_by_list(function, true)) return *bound;
  const std::string name = cat("@", analysis_.unit().functions[function].name);
  return analysis_.unknowns().symbol(cat("calls(", name, ")"),
                                     cat("how often ", name, " is called"));
}

std::optional<Dim> Component::bound_by_list(size_t function, bool if_linear) const {
  if (members_.size() != 1) return std::nullopt;
  const auto found = list_recursion(analysis_.unit(), function);
  if (!found || (if_linear && !found->is_linear)) return std::nullopt;
  const vm::FunctionUnit& code = analysis_.unit().functions[function];
  const std::string& list = code.params[found->param].name;
  return Dim(1) + analysis_.unknowns().symbol(
                      cat("length(@", code.name, ".", list, ")"),
                      cat("how many elements the list ", list, " of @", code.name, " has"));
}

void Component::settle() {
  constexpr int kMostRounds = 64;
  int round = 0;
  do {
    if (++round > kMostRounds) throw Unanalysed();
    changed_ = false;
    std::vector<size_t> functions;
    for (const auto& [function, _] : members_) functions.push_back(function);
    for (const size_t function : functions) {
      Member& at = members_.at(function);
      Walk walk(&analysis_, this, function, at.entry, at.storages);
      walk.run();
      const Summary summary = std::move(walk).summary();
      if (!summary.returns) continue;
      Storages kept = keeps(summary.result);
      std::erase(kept, kHeld);
      at.adds = summary.storages.total(kept);
      const ValueRef result = with_storages(summary.result, [](StorageId storage) {
        return Storages{storage == kHeld ? kHeld : kMade};
      });
      if (!at.result) {
        at.result = result;
        changed_ = true;
        continue;
      }
      const std::string name = cat("@", analysis_.unit().functions[function].name);
      StorageTable none;  // of two storages that are on both sides, or join without sizes
      none.add({});
      none.add({});
      const JoinContext context{&none, &analysis_.unknowns(), kEntry - 1, name, name, name};
      State joined{*at.result};
      join(context, &joined, {result});
      joined[0] = with_storages(joined[0], [](StorageId storage) {
        return storage <= kMade ? Storages{storage} : Storages{kHeld, kMade};
      });
      if (same(joined[0], *at.result)) continue;
      at.result = joined[0];
      changed_ = true;
    }
  } while (changed_);
}

Summary Component::analyse(const State& arguments) {
  enter(root_, arguments);
  // What results keep: the most that one call adds, if a call's result doesn't hold that of
  // another.
  constexpr int kMostGrowth = 4;
  int growth = 0;
  for (bool grows = true; grows && growth <= kMostGrowth;) {
    settle();
    grows = false;
    for (const auto& [_, at] : members_) {
      if (proves_less_equal(at.adds, made_bytes_)) continue;
      made_bytes_ = max(made_bytes_, at.adds);
      grows = true;
    }
    growth += grows;
  }
  if (growth > kMostGrowth) {
    // Otherwise what every call adds.
    made_bytes_ = 0;
    settle();
    Dim all = 0;
    for (const auto& [function, at] : members_) {
      all = all + calls_of(function) * at.adds;
    }
    made_bytes_ = all;
    settle();
  }

  struct Found {
    size_t function;
    Amounts peaks, waiting;
  };
  std::vector<Found> found;
  for (const auto& [function, at] : members_) {
    Walk walk(&analysis_, this, function, at.entry, at.storages);
    walk.run();
    Found& one = found.emplace_back();
    one.function = function;
    one.waiting = walk.waiting();
    one.peaks = std::move(walk).summary().peaks;
  }
  Dim waiting = 0;
  for (const Found& one : found) {
    const Dim held = largest(one.waiting);
    if (held.is_const(0)) continue;
    waiting = waiting + depth_of(one.function) * held;
  }
  Summary out;
  for (const Found& one : found) {
    // The innermost call doesn't wait.
    const Dim held = one.waiting.size() == 1 ? *one.waiting.begin() : Dim(0);
    for (const Dim& peak : one.peaks) out.peaks.add(waiting + peak - held);
  }
  out.storages.add({.bytes = 0, .held = true});
  out.storages.add({.bytes = made_bytes_});
  const ValueRef* result = this->result(root_);
  out.returns = result != nullptr;
  if (result) out.result = *result;
  return out;
}

}  // namespace tenon::report::memory
