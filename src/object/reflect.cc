#include "object/reflect.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>

namespace tenon {

namespace {
constexpr size_t kTypeCount = TypeIndex::OursEnd - TypeIndex::OursBegin;
constinit std::array<std::atomic<const TypeInfo*>, kTypeCount> types_by_index{};

struct KeyTable {
  std::mutex mutex;
  std::map<std::string_view, const TypeInfo*> types;
};
KeyTable& key_table() {
  static KeyTable* const table = new KeyTable;  // never destroyed: values may outlive statics
  return *table;
}
}  // namespace

const TypeInfo& Object::type_info() {
  static const TypeInfo info{kTypeIndex, kTypeLast, "object.Object", nullptr, sizeof(Object),
                             0,          {},        nullptr};
  return info;
}

void register_types(std::span<const TypeInfo* const> types) {
  KeyTable& table = key_table();
  std::lock_guard lock(table.mutex);
  for (const TypeInfo* t : types) {
    const auto place = static_cast<size_t>(t->type_index - TypeIndex::OursBegin);
    TENON_ASSERT(place < kTypeCount, "type ", t->type_key, " has the number ", t->type_index,
                 ", outside our block");
    auto& slot = types_by_index[place];
    const TypeInfo* there = slot.load();
    TENON_ASSERT(!there || there == t, "types ", t->type_key, " and ", there ? there->type_key : "",
                 " have the same number");
    auto [at, added] = table.types.emplace(t->type_key, t);
    TENON_ASSERT(at->second == t, "two types are called ", t->type_key);
    const TypeInfo* parent = t->parent;
    if (parent && parent->type_index != Object::kTypeIndex) {
      const bool is_within =
          t->type_index > parent->type_index && t->type_last <= parent->type_last;
      TENON_ASSERT(is_within, "type ", t->type_key, " is numbered outside its parent ",
                   parent->type_key);
      TENON_ASSERT(find_type(parent->type_index) == parent, "type ", parent->type_key,
                   " must be registered before ", t->type_key);
    }
    slot.store(t);
  }
}

void register_types(std::initializer_list<const TypeInfo*> types) {
  register_types(std::span(types.begin(), types.size()));
}

const TypeInfo* find_type(int32_t index) {
  if (index < TypeIndex::OursBegin || index >= TypeIndex::OursEnd) return nullptr;
  return types_by_index[static_cast<size_t>(index - TypeIndex::OursBegin)].load(
      std::memory_order_acquire);
}

const TypeInfo* find_type(std::string_view key) {
  KeyTable& table = key_table();
  std::lock_guard lock(table.mutex);
  auto at = table.types.find(key);
  return at == table.types.end() ? nullptr : at->second;
}

std::vector<const Field*> all_fields(const TypeInfo& type) {
  std::vector<const TypeInfo*> chain;
  for (const TypeInfo* t = &type; t; t = t->parent) chain.push_back(t);
  std::vector<const Field*> out;
  for (auto t = chain.rbegin(); t != chain.rend(); ++t) {
    for (const Field& f : (*t)->fields) out.push_back(&f);
  }
  return out;
}

}  // namespace tenon
