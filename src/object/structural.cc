// Structural equality and hashing, with the matching of variables.
//
// Equality walks both values at once, depth first in field order, so that definitions come before
// uses. A pair of objects is compared only once: the result is a conjunction, and matches between
// variables are only ever added. That keeps the comparison of shared subvalues linear.
//
// Hashes are computed bottom-up and cached per object. A variable hashes as the number of its
// definition, which doesn't depend on sharing.
#include <unordered_map>
#include <unordered_set>

#include "object/walk.h"

namespace tenon {

using detail::Child;
using detail::class_of;
using detail::combine;
using detail::ValueClass;

namespace {

bool is_variable(const AnyView& v) {
  const TypeInfo* t = find_type(v.type_index);
  return t && (t->flags & kVariable);
}

struct PairHash {
  size_t operator()(const std::pair<const Object*, const Object*>& p) const {
    // Mix the first pointer before adding the second: the distance between the two is often
    // constant.
    return combine(combine(0, reinterpret_cast<uintptr_t>(p.first)),
                   reinterpret_cast<uintptr_t>(p.second));
  }
};

class Comparison {
 public:
  explicit Comparison(EqualOptions options) : options_(options) {}

  bool run(const AnyView& a, const AnyView& b) {
    stack_.push_back({Any(a), Any(b), false});
    while (!stack_.empty()) {
      Task t = std::move(stack_.back());
      stack_.pop_back();
      if (!step(t)) return false;
    }
    return true;
  }

 private:
  struct Task {
    Any a, b;
    bool binds;
  };

  bool step(const Task& t) {
    ValueClass c = class_of(t.a);
    if (c != class_of(t.b)) return false;
    if (c == ValueClass::Plain) return detail::plain_equal(t.a, t.b);
    if (t.a.type_index != t.b.type_index) return false;
    if (c == ValueClass::Identity) return t.a.v.object == t.b.v.object;
    if (c == ValueClass::Record && is_variable(t.a)) return variable(t);
    auto& seen = t.binds ? seen_binding_ : seen_;
    if (!seen.emplace(t.a.v.object, t.b.v.object).second) return true;
    return push_children(t);
  }

  bool variable(const Task& t) {
    const Object *a = t.a.v.object, *b = t.b.v.object;
    auto to = forward_.find(a);
    auto from = backward_.find(b);
    if (to != forward_.end() || from != backward_.end()) {
      bool match = to != forward_.end() && to->second == b && from != backward_.end();
      // If a use came before the definition, the definition's own fields haven't been compared yet.
      return match && (!t.binds || !seen_binding_.emplace(a, b).second || push_children(t));
    }
    if (!t.binds && a != b && !options_.map_free_variables) return false;
    forward_[a] = b;
    backward_[b] = a;
    if (!t.binds && a == b) return true;
    seen_binding_.emplace(a, b);
    return push_children(t);
  }

  bool push_children(const Task& t) {
    auto &a = children_a_, &b = children_b_;  // reused to avoid allocating
    a.clear();
    b.clear();
    detail::append_children(t.a, kIgnored, a);
    detail::append_children(t.b, kIgnored, b);
    if (a.size() != b.size()) return false;
    bool in_array = t.binds && class_of(t.a) == ValueClass::Array;
    for (size_t i = a.size(); i-- > 0;) {
      bool binds = a[i].field ? (a[i].field->flags & kBinds) != 0 : in_array;
      stack_.push_back({std::move(a[i].value), std::move(b[i].value), binds});
    }
    return true;
  }

  EqualOptions options_;
  std::vector<Task> stack_;
  std::vector<Child> children_a_, children_b_;
  std::unordered_map<const Object*, const Object*> forward_, backward_;
  std::unordered_set<std::pair<const Object*, const Object*>, PairHash> seen_, seen_binding_;
};

class Hashing {
 public:
  explicit Hashing(EqualOptions options) : options_(options) {}

  uint64_t run(const AnyView& value) {
    uint64_t result = 0;
    if (!enter(Any(value), false, result)) return result;
    while (true) {
      Frame& f = frames_.back();
      if (f.next == f.children.size()) {
        uint64_t h = f.hash;
        if (!f.is_variable) memo_.emplace(std::pair(f.value.v.object, f.binds), h);
        frames_.pop_back();
        if (frames_.empty()) return h;
        frames_.back().hash = combine(frames_.back().hash, h);
        continue;
      }
      Child child = std::move(f.children[f.next++]);
      bool in_array = f.binds && class_of(f.value) == ValueClass::Array;
      bool binds = child.field ? (child.field->flags & kBinds) != 0 : in_array;
      uint64_t h;
      if (!enter(std::move(child.value), binds, h)) {
        frames_.back().hash = combine(frames_.back().hash, h);
      }
    }
  }

 private:
  struct Frame {
    Any value;
    bool binds;
    bool is_variable;
    uint64_t hash;
    std::vector<Child> children;
    size_t next = 0;
  };
  struct KeyHash {
    size_t operator()(const std::pair<Object*, bool>& k) const {
      return combine(reinterpret_cast<uintptr_t>(k.first), k.second);
    }
  };

  // Opens a frame, or returns the hash if no frame is needed.
  bool enter(Any value, bool binds, uint64_t& hash) {
    ValueClass c = class_of(value);
    if (c == ValueClass::Plain) {
      hash = detail::plain_hash(value);
      return false;
    }
    uint64_t seed = type_seed(value.type_index);
    if (c == ValueClass::Identity) {
      hash = seed;
      return false;
    }
    bool variable = c == ValueClass::Record && is_variable(value);
    if (variable) {
      auto at = numbers_.find(value.v.object);
      bool known = at != numbers_.end();
      if (!known && !binds && !options_.map_free_variables) {
        hash = seed;  // a free variable equals only itself, but its address isn't stable
        return false;
      }
      if (!known) at = numbers_.emplace(value.v.object, numbers_.size()).first;
      hash = combine(seed, at->second);
      if (!binds) return false;
      seed = hash;
    } else if (auto at = memo_.find({value.v.object, binds}); at != memo_.end()) {
      hash = at->second;
      return false;
    }
    Frame f{std::move(value), binds, variable, seed, {}, 0};
    detail::append_children(f.value, kIgnored, f.children);
    f.hash = combine(f.hash, f.children.size());
    frames_.push_back(std::move(f));
    return true;
  }

  static uint64_t type_seed(int32_t index) {
    const TypeInfo* t = find_type(index);
    return t ? detail::hash_text(t->type_key) : static_cast<uint64_t>(index);
  }

  EqualOptions options_;
  std::vector<Frame> frames_;
  std::unordered_map<std::pair<Object*, bool>, uint64_t, KeyHash> memo_;
  std::unordered_map<const Object*, uint64_t> numbers_;
};

}  // namespace

bool structural_equal(const AnyView& a, const AnyView& b, EqualOptions options) {
  return Comparison(options).run(a, b);
}

uint64_t structural_hash(const AnyView& a, EqualOptions options) {
  return Hashing(options).run(a);
}

}  // namespace tenon
