#include "object/host_type.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "object/reflect.h"
#include "object/tensor.h"
#include "support/failures.h"
#include "support/text.h"

namespace tenon {
namespace {

#define TENON_TYPE_INDEX(identifier, number) \
  static_assert((number) < HostObj::kTypeIndex, "a number is reserved for types of hosts");
#define TENON_BASE_TYPE_INDEX(identifier, first, last) TENON_TYPE_INDEX(identifier, last)
#include "object/type_indices.def"

// A registered type, with the texts that its TypeInfo points to.
struct HostType {
  std::string key;
  std::vector<std::string> names;
  std::vector<Field> fields;
  TypeInfo info;
};

std::mutex mutex;

std::list<HostType>& types() {
  static auto* const all = new std::list<HostType>;  // never destroyed: values may outlive statics
  return *all;
}

[[noreturn]] void fail(std::string_view key, std::string_view what) {
  throw Error(ErrorKind::Usage, cat("the type ", quoted(key), " ", what));
}

// Types of the compiler are registered when it is loaded, which a host's must not prevent.
bool is_reserved(std::string_view key) {
  for (const char* own = "graph.\0loop.\0compiler.\0tenon.\0"; *own; own += std::strlen(own) + 1) {
    if (key.starts_with(own)) return true;
  }
  // Types whose values aren't objects with fields are in no table.
  for (int32_t index = TypeIndex::None; index < HostObj::kTypeIndex;
       index = index == TypeIndex::Tensor ? TypeIndex::OursBegin : index + 1) {
    if (key == type_name(index)) return true;
  }
  return key.empty() || printable(key) != key;
}

bool has_fields(const TypeInfo& type, std::span<const std::string_view> names) {
  return type.type_index >= HostObj::kTypeIndex &&
         std::ranges::equal(type.fields, names, {}, &Field::name);
}

}  // namespace

HostObj::~HostObj() {
  for (Any& field : fields) field.~Any();
  if (release_data) release_data(data);
}

int32_t register_host_type(std::string_view key, std::span<const std::string_view> fields) {
  const std::lock_guard lock(mutex);
  if (is_reserved(key)) fail(key, "needs a key of its own");
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto before = fields.first(i);
    if (fields[i].empty() || std::ranges::find(before, fields[i]) != before.end()) {
      fail(key, "has two fields of one name, or one without a name");
    }
  }
  if (const TypeInfo* known = find_type(key)) {
    if (has_fields(*known, fields)) return known->type_index;
    fail(key, "is registered with other fields");
  }
  const auto index = HostObj::kTypeIndex + static_cast<int32_t>(types().size());
  if (index > HostObj::kTypeLast) fail(key, "is one too many: a process has at most 256 of hosts");
  HostType& made = types().emplace_back();
  made.key = key;
  made.names.assign(fields.begin(), fields.end());
  made.fields.reserve(fields.size());
  for (const std::string& name : made.names) {
    const size_t offset = sizeof(HostObj) + made.fields.size() * sizeof(Any);
    made.fields.push_back({name.c_str(),
                           static_cast<uint32_t>(offset),
                           FieldKind::Any,
                           kOptional,
                           &detail::accepts_value<Any>,
                           &detail::value_text<Any>,
                           {}});
  }
  made.info = {index, index, made.key, nullptr, sizeof(HostObj), 0, made.fields, nullptr};
  register_types({&made.info});
  return index;
}

Ref<HostObj> make_host_object(int32_t type_index, std::span<const AnyView> fields, void* data,
                              void (*release_data)(void*)) {
  const bool is_host_type = type_index >= HostObj::kTypeIndex && type_index <= HostObj::kTypeLast;
  const TypeInfo* type = is_host_type ? find_type(type_index) : nullptr;
  if (!type) {
    throw_misuse("no type of a host has this number", cat(type_index));
  }
  if (fields.size() != type->fields.size()) {
    throw_misuse(cat("an object of type ", quoted(type->type_key), " needs a value for each field"),
                 counted(fields.size(), "value"), cat(type->fields.size()));
  }
  std::vector<Any> values;
  for (const AnyView& field : fields) values.push_back(admit(field));
  Ref<HostObj> made = make_with_tail<HostObj>(fields.size() * sizeof(Any));
  made->type_index = type_index;
  Any* first = reinterpret_cast<Any*>(made.get() + 1);
  for (Any& value : values) {
    new (first + made->fields.size()) Any(std::move(value));
    made->fields = {first, made->fields.size() + 1};
  }
  made->data = data;
  made->release_data = release_data;
  return made;
}

}  // namespace tenon
