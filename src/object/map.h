// Map<K, V>: a hash map in insertion order, with value semantics like Array. Keys are compared by
// AnyView::same: strings and bytes by content, numbers by type and bits, other objects by identity.
// Null is empty.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "object/any.h"
#include "object/string.h"

namespace tenon {

struct MapEntry {
  Any key, value;
};

struct MapObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Map;
  static constexpr int32_t kTypeLast = kTypeIndex;
  std::vector<MapEntry> entries;  // in insertion order
  std::vector<uint32_t>
      slots;  // open addressing: entry index + 1, or 0 if free; size is a power of two

  const MapEntry* find(const AnyView& key) const;
  void set(Any key, Any value);
  bool erase(const AnyView& key);

 private:
  void rebuild(size_t slot_count);
};

class MapBase : public Handle {
 public:
  size_t size() const { return ref_ ? get()->entries.size() : 0; }
  bool empty() const { return size() == 0; }
  const MapEntry* entries_begin() const { return ref_ ? get()->entries.data() : nullptr; }
  const MapEntry* entries_end() const { return entries_begin() + size(); }
  static Object* empty_object();

 protected:
  const MapObj* get() const { return static_cast<const MapObj*>(ref_.get()); }
  MapObj* own();  // an object that only this handle references
  const MapEntry* find_any(const AnyView& key) const { return ref_ ? get()->find(key) : nullptr; }
  [[noreturn]] void fail_missing(const AnyView& key) const;
};

template <class K, class V>
class Map : public MapBase {
 public:
  struct Item {
    const K& first;
    const V& second;
  };
  class iterator {
   public:
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    explicit iterator(const MapEntry* at) : at_(at) {}
    Item operator*() const { return {payload_as<K>(at_->key), payload_as<V>(at_->value)}; }
    iterator& operator++() { return ++at_, *this; }
    bool operator==(const iterator&) const = default;

   private:
    const MapEntry* at_;
  };

  Map() = default;
  explicit Map(Ref<Object> r) { ref_ = std::move(r); }
  Map(std::initializer_list<std::pair<K, V>> items) {
    for (const auto& [k, v] : items) set(k, v);
  }

  bool contains(const K& key) const { return find_any(AnyView(key)) != nullptr; }
  // The value, borrowed until the map changes or is destroyed; null if the key is absent.
  const V* find(const K& key) const {
    const MapEntry* e = find_any(AnyView(key));
    return e ? &payload_as<V>(e->value) : nullptr;
  }
  const V& at(const K& key) const {  // a Usage error that names a missing key
    const MapEntry* e = find_any(AnyView(key));
    if (!e) fail_missing(AnyView(key));
    return payload_as<V>(e->value);
  }
  V get_or(const K& key, V otherwise) const {
    const V* v = find(key);
    return v ? *v : std::move(otherwise);
  }
  void set(K key, V value) { own()->set(Any(std::move(key)), Any(std::move(value))); }
  bool erase(const K& key) { return contains(key) && own()->erase(AnyView(key)); }  // linear time
  iterator begin() const { return iterator(entries_begin()); }
  iterator end() const { return iterator(entries_end()); }

  static Object* empty_value() { return empty_object(); }
  static bool accepts(const AnyView& a) {
    const auto* o = a.as_object<const MapObj>();
    if (!o) return false;
    for (const auto& e : o->entries) {
      if (!accepts_one<K>(e.key) || !accepts_one<V>(e.value)) return false;
    }
    return true;
  }
  static std::string type_text() {
    return cat("map of ", AnyTraits<K>::name(), " to ", AnyTraits<V>::name());
  }

 private:
  template <class T>
  static bool accepts_one(const AnyView& a) {
    if constexpr (std::is_floating_point_v<T>) return a.type_index == TypeIndex::Float;
    return AnyTraits<T>::is(a);
  }
};

}  // namespace tenon
