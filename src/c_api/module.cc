// The C interface's maps, fields of objects, modules and libraries.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "c_api/entry.h"
#include "c_api/own_folder.h"
#include "object/array.h"
#include "object/host_type.h"
#include "object/library.h"
#include "object/map.h"
#include "object/module.h"
#include "object/reflect.h"

namespace {

using namespace tenon;
using c_api::give;
using c_api::guard;
using c_api::need;
using c_api::object_in;
using c_api::take;
using c_api::view;

// The TypeInfo of a value's type; null if it has none.
const TypeInfo* table_of(const tenon_any* value) {
  return value && value->v.object && value->type_index >= TENON_ARRAY
             ? find_type(value->v.object->type_index)
             : nullptr;
}

std::vector<const Field*> visible_fields(const tenon_any* value) {
  std::vector<const Field*> fields;
  if (const TypeInfo* type = table_of(value)) {
    for (const Field* field : all_fields(*type)) {
      if (!(field->flags & kHidden)) fields.push_back(field);
    }
  }
  return fields;
}

const MapObj& map_of(const tenon_any* value) {
  const auto* map = object_in<MapObj>(value);
  if (!map) throw Error(ErrorKind::Usage, "not a map");
  return *map;
}

Module module_of(const tenon_any* value) {
  need(object_in<ModuleObj>(value), "not a module");
  return take<Module>(value, "not a module");
}

}  // namespace

extern "C" {

int tenon_map_create(const tenon_any* keys, const tenon_any* values, size_t size, tenon_any* out) {
  return guard([&] {
    need(out && (size == 0 || (keys && values)), "keys, values and out must not be NULL");
    Map<Any, Any> map;
    for (size_t i = 0; i < size; ++i) map.set(admit(view(keys + i)), admit(view(values + i)));
    give(out, Any(map));
  });
}

int64_t tenon_map_size(const tenon_any* value) {
  const auto* map = object_in<MapObj>(value);
  return map ? static_cast<int64_t>(map->entries.size()) : -1;
}

int tenon_map_get(const tenon_any* map, const tenon_any* key, tenon_any* out) {
  int found = 0;
  const int code = guard([&] {
    need(key && out, "key and out must not be NULL");
    const MapObj& m = map_of(map);
    const Map<Any, Any> values{Ref<Object>(const_cast<MapObj*>(&m))};
    const Any wanted = admit(view(key));
    if (const Any* value = values.find(wanted)) {
      give(out, *value);
      found = 1;
    }
  });
  return code == 0 ? found : -1;
}

int tenon_map_entry(const tenon_any* map, size_t index, tenon_any* key, tenon_any* value) {
  return guard([&] {
    const MapObj& m = map_of(map);
    if (index >= m.entries.size()) {
      c_api::fail_index("a map has no entry at this index", static_cast<int64_t>(index),
                        m.entries.size());
    }
    const MapEntry& entry = m.entries[index];
    if (key) give(key, entry.key);
    if (value) give(value, entry.value);
  });
}

int tenon_type_key(const tenon_any* value, tenon_any* out) {
  return guard([&] {
    need(value && out, "value and out must not be NULL");
    give(out, Any(type_name(value->type_index)));
  });
}

int tenon_object_fields(const tenon_any* object, tenon_any* out) {
  return guard([&] {
    need(object && out, "object and out must not be NULL");
    Array<String> names;
    for (const Field* field : visible_fields(object)) names.push_back(String(field->name));
    give(out, Any(names));
  });
}

int tenon_object_field(const tenon_any* object, const char* field, tenon_any* out) {
  return guard([&] {
    need(object && field && out, "object, field and out must not be NULL");
    std::vector<std::string> names;
    for (const Field* known : visible_fields(object)) {
      if (std::strcmp(known->name, field) == 0) {
        return give(out, get_field(*view(object).v.object, *known));
      }
      names.emplace_back(known->name);
    }
    throw Error(ErrorKind::Usage,
                cat(type_name(object->type_index), " has no field ", quoted(field)))
        .expected(names.empty() ? "no field: the type has none" : join(names, ", "));
  });
}

int tenon_type_register(const char* key, const char* const* fields, size_t field_count,
                        int32_t* type_index) {
  return guard([&] {
    need(key && type_index && (fields || field_count == 0),
         "key, fields and type_index must not be NULL");
    std::vector<std::string_view> names;
    for (size_t i = 0; i < field_count; ++i) {
      need(fields[i], "a field's name must not be NULL");
      names.emplace_back(fields[i]);
    }
    *type_index = register_host_type(key, names);
  });
}

int tenon_object_create(int32_t type_index, const tenon_any* fields, size_t field_count, void* data,
                        void (*release)(void* data), tenon_any* out) {
  return guard([&] {
    need(out && (fields || field_count == 0), "fields and out must not be NULL");
    const std::span<const AnyView> values(reinterpret_cast<const AnyView*>(fields), field_count);
    give(out, Any(make_host_object(type_index, values, data, release)));
  });
}

void* tenon_object_data(const tenon_any* object) {
  const auto* host = object_in<HostObj>(object);
  return host ? host->data : nullptr;
}

int tenon_any_equal(const tenon_any* a, const tenon_any* b) {
  int equal = 0;
  const int code = guard([&] {
    need(a && b, "a and b must not be NULL");
    equal = structural_equal(admit(view(a)), admit(view(b))) ? 1 : 0;
  });
  return code == 0 ? equal : -1;
}

int tenon_module_create(const char* name, const tenon_any* functions, tenon_any* out) {
  return guard([&] {
    need(name && functions && out, "name, functions and out must not be NULL");
    const auto given = take<Map<String, Function>>(functions, "not a map from names to functions");
    for (const auto& [key, function] : given) {
      need(static_cast<bool>(function), "a function of the module is None");
    }
    give(out, Module("host", name, given));
  });
}

int tenon_module_functions(const tenon_any* module, tenon_any* out) {
  return guard([&] {
    need(out, "out must not be NULL");
    Array<String> names;
    for (const std::string& name : module_of(module).get()->names) names.push_back(String(name));
    give(out, Any(names));
  });
}

int tenon_module_function(const tenon_any* module, const char* name, tenon_any* out) {
  return guard([&] {
    need(name && out, "name and out must not be NULL");
    give(out, module_of(module).at(name));
  });
}

int tenon_module_import(const tenon_any* module, const tenon_any* imported) {
  return guard([&] { module_of(module).import(module_of(imported)); });
}

int tenon_library_load(const char* name, const char* const* search, size_t folders,
                       tenon_any* out) {
  return guard([&] {
    need(name && (search || folders == 0), "name and search must not be NULL");
    std::vector<std::string> all{c_api::own_folder()};
    for (size_t i = 0; i < folders; ++i) {
      need(search[i], "a folder of search must not be NULL");
      all.emplace_back(search[i]);
    }
    Module library = load_library(name, all);
    if (!library) {
      // A file names its libraries without the prefix.
      const std::string prefixed = cat("tenon_", name);
      const bool meant = std::ranges::any_of(all, [&](const std::string& folder) {
        return access(cat(folder, "/lib", prefixed, ".so").c_str(), F_OK) == 0;
      });
      throw Error(ErrorKind::Unsupported, cat("there is no library ", name))
          .found(cat("no lib", name, ".so in ", join(all, ", ")))
          .help(meant ? cat("did you mean ", prefixed, "?") : "");
    }
    if (out) give(out, library);
  });
}

}  // extern "C"
