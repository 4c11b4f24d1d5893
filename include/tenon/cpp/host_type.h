// Types of the host: objects with fields and data of a C++ program. Included by tenon/tenon.h.
#pragma once

#include "tenon/cpp/function.h"

namespace tenon {
inline namespace v1 {

/// A type of objects that hold a T and fields. Programs hold and pass such objects on as values of
/// the type opaque["KEY"]; every host can read their fields (Value::field).
///
///   const HostType<Connection> connections("app.Connection", {"address"});
///   Value v = connections.make({"localhost"}, Connection(...));
///   Connection* c = connections.find(v);
///
/// Threads may share it. A type lasts until the process ends; a process has at most 256.
template <class T>
class HostType {
 public:
  /// Throws UsageError if the key belongs to a type with other fields.
  HostType(const std::string& key, const std::vector<std::string>& fields) {
    std::vector<const char*> names;
    names.reserve(fields.size());
    for (const std::string& field : fields) names.push_back(field.c_str());
    detail::check(tenon_type_register(key.c_str(), names.data(), names.size(), &type_index_));
  }

  /// An object with these fields, in the order of the type's. It owns `data`, which is destroyed on
  /// any thread when the last reference ends.
  Value make(const std::vector<Value>& fields, T data) const {
    auto owned = std::make_unique<T>(std::move(data));
    Value out;
    detail::check(tenon_object_create(
        type_index_, reinterpret_cast<const tenon_any*>(fields.data()), fields.size(), owned.get(),
        [](void* given) { delete static_cast<T*>(given); }, out.out()));
    owned.release();
    return out;
  }
  /// The data of an object of this type, which lives as long as the object; null for any other
  /// value.
  T* find(const Value& value) const noexcept {
    if (value.type_index() != type_index_) return nullptr;
    return static_cast<T*>(tenon_object_data(value.raw()));
  }

 private:
  int32_t type_index_ = 0;
};

}  // namespace v1
}  // namespace tenon
