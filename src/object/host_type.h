// Types that a host registers while the process runs, each by a key: objects with named fields,
// which hold any values, and a pointer to data of the host. Their fields are listed in a TypeInfo
// like those of all types, so that equality, hashing, printing and reflection work.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "object/any.h"
#include "object/object.h"

namespace tenon {

struct HostObj : Object {
  // The types' numbers end where those of tests begin.
  static constexpr int32_t kTypeIndex = TypeIndex::TestBegin - 0x100;
  static constexpr int32_t kTypeLast = TypeIndex::TestBegin - 1;

  void* data = nullptr;
  void (*release_data)(void*) = nullptr;  // when the last reference ends, on any thread; or null
  std::span<Any> fields;                  // stored behind the object

  ~HostObj();
  size_t tail_bytes() const { return fields.size_bytes(); }
};

// The number of the type with that key, which is registered if it is new; it exists until the
// process ends. A Usage error if the key is empty, holds control bytes or is the name of a type
// of Tenon, if it belongs to a type with other fields, if a field's name is empty or stands twice,
// or if there are too many types. Thread-safe.
int32_t register_host_type(std::string_view key, std::span<const std::string_view> fields);

// An object of that type. A Usage error if there is none of that number, or if it doesn't have as
// many fields; `release_data` isn't called then.
Ref<HostObj> make_host_object(int32_t type_index, std::span<const AnyView> fields, void* data,
                              void (*release_data)(void*));

}  // namespace tenon
