#include "object/map.h"

#include "object/reflect.h"
#include "support/keyed_hash.h"

namespace tenon {

namespace {

// Under AnyView::same. Keyed, because a map's keys may come from an untrusted file.
uint64_t same_hash(const AnyView& a) {
  if (String::accepts(a) || Bytes::accepts(a)) return keyed_hash(detail::text_of(a));
  return keyed_hash(static_cast<uint64_t>(a.type_index), a.v.bits);
}

}  // namespace

const MapEntry* MapObj::find(const AnyView& key) const {
  if (slots.empty()) return nullptr;
  size_t mask = slots.size() - 1;
  for (size_t i = same_hash(key) & mask;; i = (i + 1) & mask) {
    uint32_t n = slots[i];
    if (n == 0) return nullptr;
    if (entries[n - 1].key.same(key)) return &entries[n - 1];
  }
}

void MapObj::rebuild(size_t slot_count) {
  slots.assign(slot_count, 0);
  size_t mask = slot_count - 1;
  for (size_t n = 0; n < entries.size(); ++n) {
    size_t i = same_hash(entries[n].key) & mask;
    while (slots[i]) i = (i + 1) & mask;
    slots[i] = static_cast<uint32_t>(n + 1);
  }
}

void MapObj::set(Any key, Any value) {
  if (const MapEntry* e = find(key)) {
    const_cast<MapEntry*>(e)->value = std::move(value);
    return;
  }
  TENON_ASSERT(entries.size() < 0x7fffffff, "a map can't hold more entries");
  entries.push_back({std::move(key), std::move(value)});
  if (entries.size() * 2 > slots.size()) {
    rebuild(slots.empty() ? 8 : slots.size() * 2);
    return;
  }
  size_t mask = slots.size() - 1;
  size_t i = same_hash(entries.back().key) & mask;
  while (slots[i]) i = (i + 1) & mask;
  slots[i] = static_cast<uint32_t>(entries.size());
}

bool MapObj::erase(const AnyView& key) {
  const MapEntry* e = find(key);
  if (!e) return false;
  entries.erase(entries.begin() + (e - entries.data()));
  rebuild(slots.size());
  return true;
}

Object* MapBase::empty_object() {
  static MapObj* const object = make<MapObj>().leak();  // never destroyed
  return object;
}

MapObj* MapBase::own() {
  auto* now = static_cast<MapObj*>(ref_.get());
  if (now && now->unique()) return now;
  auto fresh = now ? make<MapObj>(*now) : make<MapObj>();
  MapObj* raw = fresh.get();
  ref_ = std::move(fresh);
  return raw;
}

void MapBase::fail_missing(const AnyView& key) const {
  throw Error(ErrorKind::Usage, cat("no entry for ", repr(key)));
}

}  // namespace tenon
