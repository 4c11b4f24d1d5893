// tenon.Object: objects by their fields, such as the nodes of a module.
#include <string>
#include <unordered_map>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/nanobind.h"

namespace tenon::python {
namespace {

nb::object type_key(const Value& value) {
  Value key;
  check(tenon_type_key(value.get(), key.out()));
  return to_python(std::move(key));
}

nb::object fields(const Object& object) {
  Value names;
  check(tenon_object_fields(object.value.get(), names.out()));
  return to_python(std::move(names));
}

// The Python class of a type, made when its first object crosses the border.
nb::handle class_of(const Value& value) {
  static auto* const classes = new std::unordered_map<int32_t, PyObject*>;  // never freed
  static nb::ft_mutex mutex;  // in a free-threaded interpreter; else the GIL guards the map
  {
    const nb::ft_lock_guard lock(mutex);
    if (const auto found = classes->find(value.type_index()); found != classes->end())
      return found->second;
  }
  nb::object made = nb::module_::import_("tenon._values").attr("_class_of")(type_key(value));
  const nb::ft_lock_guard lock(mutex);
  const auto [entry, is_new] = classes->try_emplace(value.type_index(), made.ptr());
  if (is_new) made.release();
  return entry->second;
}

}  // namespace

nb::object new_object(Value value) {
  const nb::handle type = class_of(value);
  nb::object instance = nb::inst_alloc(type);
  new (nb::inst_ptr<Object>(instance)) Object{std::move(value)};
  nb::inst_mark_ready(instance);
  return instance;
}

void define_object(nb::module_& m) {
  nb::class_<Object> c(m, "Object", R"(
An immutable object with fields, such as a module of graph IR, its functions and types.

Fields are attributes; ``dir(node)`` lists them and ``repr(node)`` prints the object. ``==`` compares types and
contents; ``node.id`` is the object's own number, for use as a key.
)");
  c.def(
      "__getattr__",
      [](const Object& object, const char* name) -> nb::object {
        if (name[0] == '_') throw nb::attribute_error(name);
        Value out;
        if (tenon_object_field(object.value.get(), name, out.out()) == 0)
          return to_python(std::move(out));
        Value error, text;
        tenon_error_take(error.out());
        if (tenon_error_kind(error.get()) == TENON_ERROR_USAGE) {
          check(tenon_error_text(error.get(), text.out()));
          throw nb::attribute_error(tenon_string_view(text.get()).data);
        }
        check(tenon_error_restore(error.get()));
        raise_waiting();
      },
      nb::sig("def __getattr__(self, name: str, /) -> typing.Any"));
  c.def("__dir__", [](nb::handle_t<Object> self) {
    nb::list names(
        nb::handle(reinterpret_cast<PyObject*>(&PyBaseObject_Type)).attr("__dir__")(self));
    for (nb::handle name : fields(*nb::inst_ptr<Object>(self))) names.append(name);
    return names;
  });
  c.def_prop_ro(
      "type_key", [](const Object& object) { return type_key(object.value); },
      "The name of the object's type, such as 'graph.Call'.", nb::sig("def type_key(self) -> str"));
  c.def_prop_ro(
      "fields", [](const Object& object) { return fields(object); },
      "The names of the fields, in order.", nb::sig("def fields(self) -> tuple[str, ...]"));
  c.def_prop_ro(
      "id",
      [](const Object& object) { return reinterpret_cast<uintptr_t>(object.value.any().v.object); },
      "A number that no other object has while this one lives.");
  c.def(
      "__eq__",
      [](const Object& a, nb::handle other) {
        Object* b = nullptr;
        if (!nb::try_cast(other, b) || !b) return false;
        const int equal = tenon_any_equal(a.value.get(), b->value.get());
        if (equal < 0) raise_waiting();
        return equal == 1;
      },
      nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"));
  c.def(
      "__hash__",
      [](const Object&) -> nb::object {
        throw nb::type_error(
            "objects of Tenon can't be keys, since == compares their contents: use node.id");
      },
      nb::sig("def __hash__(self) -> int"));
  c.def(
      "__repr__", [](const Object& object) { return repr_of(object.value); },
      nb::sig("def __repr__(self) -> str"));
}

}  // namespace tenon::python
