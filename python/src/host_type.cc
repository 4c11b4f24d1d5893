// Types that Python registers (tenon.register_type): instances of a class as objects with fields.
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/nanobind.h"

namespace tenon::python {
namespace {

// Immutable, and kept for ever with its class.
struct HostType {
  int32_t index = 0;
  PyTypeObject* type = nullptr;
  std::vector<std::string> fields;
};

// Immutable: a registration makes a new one, and so looking a type up needs no lock.
struct Types {
  std::unordered_map<PyTypeObject*, const HostType*> by_class;
  std::unordered_map<int32_t, const HostType*> by_index;

  static const HostType* find(const auto& map, auto key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
  }
};

// Never freed, since values may outlive the interpreter, and other threads may still read older
// types.
struct Registry {
  std::atomic<const Types*> types = new Types;
  // Guards what follows, and changes of `types`, in a free-threaded interpreter; else the GIL does.
  nb::ft_mutex mutex;
  // The instances that objects hold as their data. Another host may make objects of a type, too.
  std::unordered_set<void*> instances;
};
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

// The data of an object: an instance.
struct HeldInstance {
  PyObject* instance;
};

void release_instance(void* data) {
  const WithGil acquired;
  if (!acquired) return;
  auto* held = static_cast<HeldInstance*>(data);
  {
    Registry& all = registry();
    const nb::ft_lock_guard lock(all.mutex);
    all.instances.erase(held);
  }
  Py_DECREF(held->instance);
  delete held;
}

void register_type(const nb::str& key, const nb::list& given, nb::handle type) {
  std::vector<std::string> fields;
  for (nb::handle field : given) fields.push_back(name_of(nb::cast<nb::str>(field)));
  std::vector<const char*> names;
  names.reserve(fields.size());
  for (const std::string& field : fields) names.push_back(field.c_str());
  auto made = std::make_unique<HostType>();
  check(tenon_type_register(name_of(key).c_str(), names.data(), names.size(), &made->index));
  made->type = reinterpret_cast<PyTypeObject*>(type.ptr());
  made->fields = std::move(fields);
  Registry& all = registry();
  const nb::ft_lock_guard lock(all.mutex);
  auto types = std::make_unique<Types>(*all.types.load());
  types->by_index[made->index] = made.get();
  types->by_class[made->type] = made.get();
  Py_INCREF(type.ptr());
  all.types = types.release();
  static_cast<void>(made.release());
}

}  // namespace

bool host_object_of(nb::handle object, Value* out) {
  Registry& all = registry();
  const HostType* type = Types::find(all.types.load()->by_class, Py_TYPE(object.ptr()));
  if (!type) return false;
  const Nesting nesting;
  std::vector<Value> fields;
  for (const std::string& name : type->fields) {
    fields.push_back(to_value(nb::getattr(object, name.c_str())));
  }
  auto held = std::make_unique<HeldInstance>(HeldInstance{object.ptr()});
  check(tenon_object_create(type->index, fields.empty() ? nullptr : fields[0].get(), fields.size(),
                            held.get(), release_instance, out->out()));
  Py_INCREF(object.ptr());
  const nb::ft_lock_guard lock(all.mutex);
  all.instances.insert(held.release());
  return true;
}

nb::object host_instance(const Value& value) {
  Registry& all = registry();
  const HostType* type = Types::find(all.types.load()->by_index, value.type_index());
  if (!type) return {};
  void* const data = tenon_object_data(value.get());
  {
    const nb::ft_lock_guard lock(all.mutex);
    if (all.instances.contains(data)) return nb::borrow(static_cast<HeldInstance*>(data)->instance);
  }
  const Nesting nesting;
  nb::dict fields;
  for (const std::string& name : type->fields) {
    Value field;
    check(tenon_object_field(value.get(), name.c_str(), field.out()));
    fields[name.c_str()] = to_python(std::move(field));
  }
  return nb::handle(reinterpret_cast<PyObject*>(type->type))(**fields);
}

void define_host_types(nb::module_& m) {
  m.def("register_type", &register_type, nb::arg("key"), nb::arg("fields"), nb::arg("type"),
        nb::sig("def register_type(key: str, fields: list[str], type: type) -> None"));
}

}  // namespace tenon::python
