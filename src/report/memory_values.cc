#include "report/memory_values.h"

#include <algorithm>
#include <functional>

#include "loop/dim_sum.h"
#include "support/text.h"

namespace tenon::report::memory {
namespace {

// A value with more than this is known by the storages that it keeps only.
constexpr uint32_t kMaxSize = 256;

}  // namespace

void add(Storages* to, const Storages& more) {
  Storages sum;
  std::ranges::set_union(*to, more, std::back_inserter(sum));
  *to = std::move(sum);
}

const Storages& keeps(const ValueRef& value) {
  static const Storages none;
  return value ? value->keeps : none;
}

ValueRef made(Value value) {
  value.keeps = value.own;
  value.size = 1;
  if (value.fields) {
    size_t size = 1;
    for (const ValueRef& field : *value.fields) {
      add(&value.keeps, keeps(field));
      size += field ? field->size : 1;
    }
    if (size <= kMaxSize) {
      value.size = static_cast<uint32_t>(size);
    } else {
      value.fields.reset();
      value.function.reset();
      value.own = value.keeps;
    }
  }
  if (!value.number && !value.dims && !value.fields && !value.dtype && value.own.empty()) {
    return nullptr;
  }
  return std::make_shared<const Value>(std::move(value));
}

ValueRef made_number(Dim number) {
  Value value;
  value.number = std::move(number);
  return made(std::move(value));
}

ValueRef made_storage(StorageId storage) {
  Value value;
  value.own = {storage};
  return made(std::move(value));
}

bool same(const ValueRef& a, const ValueRef& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (a->number != b->number || a->dims != b->dims || a->dtype != b->dtype ||
      a->function != b->function || a->own != b->own ||
      a->fields.has_value() != b->fields.has_value()) {
    return false;
  }
  return !a->fields || std::ranges::equal(*a->fields, *b->fields, same);
}

ValueRef with_storages(const ValueRef& value, const std::function<Storages(StorageId)>& to) {
  if (keeps(value).empty()) return value;
  Value out = *value;
  out.own.clear();
  for (const StorageId storage : value->own) add(&out.own, to(storage));
  if (out.fields) {
    for (ValueRef& field : *out.fields) field = with_storages(field, to);
  }
  return made(std::move(out));
}

Dim Unknowns::symbol(const std::string& key, const std::string& meaning) {
  meanings_.emplace(key, meaning);
  return Dim::symbol(key);
}

Dim Unknowns::size(std::string_view name) {
  sizes_.emplace(name);
  return Dim::symbol(name);
}

bool Unknowns::has_unknown(const Dim& d) const {
  if (d.kind() == DimKind::kSymbol) return !sizes_.contains(d.node().name.view());
  return std::ranges::any_of(d.node().args,
                             [this](const auto& arg) { return has_unknown(Dim(arg)); });
}

bool Unknowns::grows(const Dim& d) const {
  const auto all_grow = [this](const Dim& of) {
    return std::ranges::all_of(of.node().args, [this](const auto& arg) { return grows(Dim(arg)); });
  };
  switch (d.kind()) {
    case DimKind::kConst:
    case DimKind::kSymbol:
      return true;
    case DimKind::kAdd:
    case DimKind::kMin:
    case DimKind::kMax:
      return all_grow(d);
    case DimKind::kMul: {
      // A product of sizes, which aren't negative; a negative coefficient may precede them.
      const auto coefficient = Dim(d.node().args[0]).as_const();
      return !has_unknown(d) || ((!coefficient || *coefficient >= 0) && all_grow(d));
    }
    case DimKind::kFloorDiv: {
      const auto by = Dim(d.node().args[1]).as_const();
      return !has_unknown(d) || (by && *by > 0 && grows(Dim(d.node().args[0])));
    }
    case DimKind::kMod:
    case DimKind::kBcast:
      return !has_unknown(d);
  }
  return false;
}

Dim Unknowns::bounded(const Dim& size, const std::string& key, const std::string& meaning) {
  return grows(size) ? size : symbol(key, meaning);
}

std::string Unknowns::meaning(std::string_view symbol) const {
  const auto found = meanings_.find(symbol);
  return found == meanings_.end() ? "" : found->second;
}

StorageId StorageTable::add(Entry entry) {
  entries_.push_back(std::move(entry));
  return static_cast<StorageId>(entries_.size() - 1);
}

StorageId StorageTable::at(uint32_t offset, uint32_t index, const Dim& bytes) {
  const auto [place, is_new] = places_.try_emplace({offset, index});
  if (is_new) {
    place->second = add({});
  } else if (entries_[place->second].bytes != bytes) {
    count_growth();
  }
  entries_[place->second].bytes = bytes;
  return place->second;
}

Dim StorageTable::total(const Storages& storages) const {
  int64_t constant = 0;
  DimSum sum;
  for (const StorageId storage : storages) {
    const Entry& entry = entries_[storage];
    if (entry.held) continue;
    const auto bytes = entry.bytes.as_const();
    if (!bytes || __builtin_add_overflow(constant, *bytes, &constant)) sum.add(entry.bytes);
  }
  sum.add(constant);
  return sum.total();
}

Storages live(const State& state) {
  std::vector<StorageId> all;
  for (const ValueRef& value : state) {
    all.insert(all.end(), keeps(value).begin(), keeps(value).end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

namespace {

// The storages that differ between two states, in groups that registers tie together: each group
// becomes one storage, as large as the larger side.
//
// The other storages are on both sides. A storage that an earlier join at this place made counts as
// another one when it comes back around a loop: registers may have changed their places.
class Joiner {
 public:
  Joiner(const JoinContext& context, State* state, const State& more)
      : context_(context), storages_(*context.storages), state_(*state), more_(more) {}

  bool run() {
    tie();
    for (auto& [root, group] : groups_) settle(&group);
    for (size_t i = 0; i < state_.size(); ++i) {
      ValueRef merged = merge(state_[i], more_[i], cat(i));
      if (same(merged, state_[i])) continue;
      state_[i] = std::move(merged);
      changed_ = true;
    }
    return changed_;
  }

 private:
  struct Group {
    Storages before, more;  // of each side
    uint32_t first = 0;     // its first register
    StorageId result = 0;
  };
  using Node = std::pair<bool, StorageId>;  // whether of `more`

  void tie() {
    const Storages before = live(state_), more = live(more_);
    const auto differs = [&](StorageId storage, const Storages& other) {
      return storages_[storage].join == context_.offset ||
             !std::ranges::binary_search(other, storage);
    };
    for (uint32_t i = 0; i < state_.size(); ++i) {
      std::optional<Node> tied;
      const auto visit = [&](bool of_more, const Storages& side, const Storages& other) {
        for (const StorageId storage : side) {
          if (!differs(storage, other)) continue;
          const Node node{of_more, storage};
          parent_.try_emplace(node, node);
          first_.try_emplace(node, i);
          if (tied) parent_[root(node)] = root(*tied);
          tied = node;
        }
      };
      visit(false, keeps(state_[i]), more);
      visit(true, keeps(more_[i]), before);
    }
    for (const auto& [node, _] : parent_) {
      Group& group = groups_.try_emplace(root(node)).first->second;
      if (group.before.empty() && group.more.empty()) group.first = UINT32_MAX;
      group.first = std::min(group.first, first_[node]);
      (node.first ? group.more : group.before).push_back(node.second);
    }
  }

  Node root(Node node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }

  void settle(Group* group) {
    const auto known = std::ranges::find_if(
        group->before, [&](StorageId s) { return storages_[s].join == context_.offset; });
    const Dim before = storages_.total(group->before), more = storages_.total(group->more);
    if (known == group->before.end()) {
      StorageTable::Entry entry;
      entry.bytes = max(before, more);
      entry.join = context_.offset;
      group->result = storages_.add(std::move(entry));
      changed_ = true;
      return;
    }
    group->result = *known;
    grow(*known, before, more, std::ranges::binary_search(group->more, *known), group->first);
  }

  // Makes the storage as large as either side, of which `more` may contain it.
  void grow(StorageId id, const Dim& before, const Dim& more, bool contains_it, uint32_t reg) {
    StorageTable::Entry& entry = storages_[id];
    constexpr int kMostGrowth = 8;
    if (entry.grown > kMostGrowth) return;  // the symbol stands for any number
    StorageTable::Entry grown = entry;
    const Dim size = entry.bytes;
    if (entry.each && contains_it) {
      const Dim added = more - size;
      if (proves_less_equal(added, *entry.each) && proves_less_equal(before, size)) return;
      grown.each = max(*entry.each, added);
    } else {
      if (proves_less_equal(more, size) && proves_less_equal(before, size)) return;
      if (contains_it) {
        grown.base = max(before, size);
        grown.each = more - size;
      } else if (entry.each) {
        grown.base = max(*entry.base, max(before, more));
      }
    }
    grown.bytes = grown.each
                      ? *grown.base + context_.unknowns->symbol(context_.counts, context_.counted) *
                                          *grown.each
                      : max(size, max(before, more));
    // What isn't proved may still be so: these expressions are long.
    if (grown.bytes == size && grown.base == entry.base && grown.each == entry.each) return;
    if (++grown.grown > kMostGrowth) {
      grown.bytes = context_.unknowns->symbol(
          cat("kept(", context_.where, ".", reg, ")"),
          cat("the bytes of the storages that a variable keeps at ", context_.where));
    }
    entry = std::move(grown);
    storages_.count_growth();
    changed_ = true;
  }

  Storages moved(bool of_more, StorageId storage) {
    const Node node{of_more, storage};
    return {parent_.contains(node) ? groups_.at(root(node)).result : storage};
  }
  ValueRef moved(bool of_more, const ValueRef& value) {
    return with_storages(value, [&](StorageId storage) { return moved(of_more, storage); });
  }

  ValueRef merge(const ValueRef& before, const ValueRef& more, const std::string& path) {
    const ValueRef a = moved(false, before), b = moved(true, more);
    return merged(a, b, path);
  }

  ValueRef merged(const ValueRef& a, const ValueRef& b, const std::string& path) {
    if (same(a, b)) return a;
    Value out;
    if (a && b) {
      if (a->number && b->number) out.number = joined(*a->number, *b->number, path);
      if (a->dims && b->dims && a->dims->size() == b->dims->size()) {
        auto& dims = out.dims.emplace();
        for (size_t i = 0; i < a->dims->size(); ++i) {
          const auto &x = (*a->dims)[i], &y = (*b->dims)[i];
          dims.push_back(x && y ? std::optional(joined(*x, *y, cat(path, "[", i, "]")))
                                : std::nullopt);
        }
      }
      if (a->dtype == b->dtype) out.dtype = a->dtype;
      if (a->fields && b->fields && a->fields->size() == b->fields->size() &&
          a->function == b->function) {
        out.function = a->function;
        auto& fields = out.fields.emplace();
        for (size_t i = 0; i < a->fields->size(); ++i) {
          fields.push_back(merged((*a->fields)[i], (*b->fields)[i], cat(path, ".", i)));
        }
      }
    }
    for (const ValueRef& side : {a, b}) {
      if (side) add(&out.own, out.fields ? side->own : side->keeps);
    }
    return made(std::move(out));
  }

  Dim joined(const Dim& a, const Dim& b, const std::string& path) {
    if (a == b) return a;
    return context_.unknowns->symbol(
        cat("value(", context_.where, ".", path, ")"),
        cat("a number that differs between the paths to ", context_.where));
  }

  const JoinContext& context_;
  StorageTable& storages_;
  State& state_;
  const State& more_;
  bool changed_ = false;
  std::map<Node, Node> parent_;
  std::map<Node, uint32_t> first_;
  std::map<Node, Group> groups_;
};

}  // namespace

bool join(const JoinContext& context, State* state, const State& more) {
  return Joiner(context, state, more).run();
}

}  // namespace tenon::report::memory
