#include "python/src/data.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cmath>
#include <utility>

#include "python/src/classes.h"
#include "python/src/error.h"
#include "python/src/number.h"

namespace tenon::python {
namespace {

using Form = DataPlan::Form;
using tenon::detail::kCons;
using tenon::detail::kNil;
using tenon::detail::kNone;
using tenon::detail::kSome;

constexpr const char* kModule = "tenon._data";
constexpr const char* kListText = "list[T] { Nil, Cons(T, list[T]) }";
constexpr const char* kOptionText = "option[T] { None, Some(T) }";
// As models of ONNX have it.
constexpr const char* kMapText = "map[K, V] { Map(K, V) }";

PyTypeObject* base_class() {
  static constinit std::atomic<PyObject*> known = nullptr;
  return reinterpret_cast<PyTypeObject*>(attribute_of(kModule, "DataValue", known));
}

PyObject* interned(const char* name, std::atomic<PyObject*>& known) {
  return kept(known, [&] { return PyUnicode_InternFromString(name); });
}
PyObject* fields_name() {
  static constinit std::atomic<PyObject*> known = nullptr;
  return interned("_fields", known);
}
PyObject* held_name() {
  static constinit std::atomic<PyObject*> known = nullptr;
  return interned("_held", known);
}

Expected expected_of(const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor:
      return {TENON_TENSOR, detail::element_type(type.name).value(), true};
    case Type::Kind::scalar: {
      const DLDataType dtype = detail::element_type(type.name).value();
      const bool is_int = dtype.code == kDLInt || dtype.code == kDLUInt;
      return {dtype.code == kDLBool ? TENON_BOOL : is_int ? TENON_INT : TENON_FLOAT, dtype, true};
    }
    case Type::Kind::shape:
      return {TENON_SHAPE, {}, true};
    default:
      return {TENON_NONE, {}, true};
  }
}

// A cell that a program returned and that Python has not looked into.
struct UnopenedCell {
  Value value;
  const DataPlan* plan;
  std::shared_ptr<DataTypes> types;
};

void set(nb::handle instance, PyObject* name, nb::handle value) {
  if (PyObject_GenericSetAttr(instance.ptr(), name, value.ptr()) != 0) throw nb::python_error();
}
nb::object get(nb::handle instance, PyObject* name) {
  nb::object out = nb::steal(PyObject_GenericGetAttr(instance.ptr(), name));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}

nb::object new_instance(nb::handle type, nb::handle fields, nb::handle held) {
  auto* const t = reinterpret_cast<PyTypeObject*>(type.ptr());
  nb::object made = nb::steal(t->tp_alloc(t, 0));
  if (!made.is_valid()) throw nb::python_error();
  set(made, fields_name(), fields);
  set(made, held_name(), held);
  return made;
}

// The value of a constructor without fields.
nb::object sole_value(nb::handle type) {
  return nb::borrow(type.attr("_value"));
}

bool is_class(nb::handle object) {
  return PyType_Check(object.ptr()) &&
         PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object.ptr()), base_class()) != 0;
}

// Whether a value of the type can be None in Python.
bool may_be_none(const DataPlan& plan) {
  return plan.form == Form::kOption || (plan.form == Form::kTuple && plan.parts.empty()) ||
         (plan.form == Form::kLeaf && plan.expected.kind == TENON_NONE);
}

// ---- Python to Tenon ----

// A container whose items are being converted.
struct Open {
  const DataPlan* plan;                                  // null where no type is known
  nb::object items;                                      // a tuple
  int64_t tag = -1;                                      // of a cell
  const std::vector<const DataPlan*>* fields = nullptr;  // of a cell
  std::vector<Value> made = {};

  size_t size() const { return static_cast<size_t>(PyTuple_GET_SIZE(items.ptr())); }
  const DataPlan* part(size_t i) const {
    if (!plan) return nullptr;
    if (fields) return (*fields)[i];
    return plan->form == Form::kTuple ? plan->parts[i] : plan->parts[0];
  }
};

const UnopenedCell& unopened(nb::handle held) {
  if (!nb::isinstance<UnopenedCell>(held)) throw nb::type_error("_held isn't a cell of a program");
  return *nb::inst_ptr<UnopenedCell>(held);
}

class Conversion {
 public:
  Value run(nb::handle object, const DataPlan* plan) {
    Value out;
    if (at_once(object, plan, &out)) return out;
    for (;;) {
      Open& top = open_.back();
      if (const size_t i = top.made.size(); i < top.size()) {
        const nb::handle item = PyTuple_GET_ITEM(top.items.ptr(), static_cast<Py_ssize_t>(i));
        Value made;
        if (at_once(item, top.part(i), &made)) top.made.push_back(std::move(made));
        continue;
      }
      Value made = close(top);
      open_.pop_back();
      if (open_.empty()) return made;
      open_.back().made.push_back(std::move(made));
    }
  }

 private:
  // Converts the object, or opens it as a container and returns false.
  bool at_once(nb::handle object, const DataPlan* plan, Value* out) {
    if (!plan) {
      if (is_data_value(object)) return data(object, nullptr, out);
      *out = to_value(object);
      return true;
    }
    switch (plan->form) {
      case Form::kLeaf:
        return leaf(object, *plan, out);
      case Form::kFunction:
        *out = PyCallable_Check(object.ptr()) && !nb::isinstance<Function>(object)
                   ? callback(object, plan)
                   : to_value(object);
        if (out->type_index() != TENON_FUNCTION) fail(object, *plan);
        return true;
      case Form::kTuple:
        if (plan->parts.empty() && object.is_none()) return true;
        return tuple(object, *plan, out);
      case Form::kArray:
        return sequence(object, *plan);
      case Form::kList:
        return is_data_value(object) ? data(object, plan, out) : sequence(object, *plan);
      case Form::kOption:
        if (is_data_value(object) && is_of(object, *plan)) return data(object, plan, out);
        if (object.is_none()) {
          check(tenon_cell_create(kNone, nullptr, 0, out->out()));
          return true;
        }
        open_.push_back({plan, nb::make_tuple(object), kSome});
        return false;
      case Form::kMap:
        return is_data_value(object) ? data(object, plan, out) : dict(object, *plan);
      case Form::kData:
        return data(object, plan, out);
    }
    return true;
  }

  bool dict(nb::handle object, const DataPlan& plan) {
    if (!PyDict_Check(object.ptr())) fail(object, plan);
    const nb::object keys = nb::steal(PyDict_Keys(object.ptr()));
    const nb::object values = nb::steal(PyDict_Values(object.ptr()));
    if (!keys.is_valid() || !values.is_valid()) throw nb::python_error();
    open_.push_back({&plan, nb::make_tuple(keys, values), 0, plan.owner->fields(plan, 0)});
    return false;
  }

  bool leaf(nb::handle object, const DataPlan& plan, Value* out) {
    const int32_t kind = plan.expected.kind;
    *out = to_value(object, plan.expected);
    if (kind != TENON_NONE && out->type_index() != kind) fail(object, plan);
    // The machine checks the numbers that are arguments, but doesn't look into containers.
    if (kind == TENON_INT && !is_in_range(out->any().v.i, plan.expected.dtype)) {
      fail(object, plan, std::to_string(out->any().v.i));
    }
    if (kind == TENON_FLOAT) {
      const double given = out->any().v.f, rounded = round_to(plan.expected.dtype, given);
      if (std::isfinite(given) && !std::isfinite(rounded)) {
        fail(object, plan, std::to_string(given));
      }
      tenon_any any = out->any();
      any.v.f = rounded;
      *out = Value::copy_of(any);
    }
    return true;
  }

  bool tuple(nb::handle object, const DataPlan& plan, Value* out) {
    PyObject* const o = object.ptr();
    if (!PyTuple_Check(o) && !PyList_Check(o)) fail(object, plan);
    nb::object items = nb::steal(PySequence_Tuple(o));
    if (!items.is_valid()) throw nb::python_error();
    if (static_cast<size_t>(PyTuple_GET_SIZE(items.ptr())) != plan.parts.size()) {
      fail(object, plan, std::to_string(PyTuple_GET_SIZE(items.ptr())) + " items");
    }
    if (plan.parts.empty()) {
      *out = Value();
      return true;
    }
    open_.push_back({&plan, std::move(items)});
    return false;
  }

  bool sequence(nb::handle object, const DataPlan& plan) {
    PyObject* const o = object.ptr();
    if (!PySequence_Check(o) || PyUnicode_Check(o) || is_class(object)) {
      fail(object, plan);
    }
    nb::object items = nb::steal(PySequence_Tuple(o));
    if (!items.is_valid()) throw nb::python_error();
    open_.push_back({&plan, std::move(items)});
    return false;
  }

  static nb::handle class_of(nb::handle object) {
    return PyType_Check(object.ptr())
               ? object
               : nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  }
  static bool is_of(nb::handle object, const DataPlan& plan) {
    const nb::handle type = class_of(object);
    return std::ranges::any_of(plan.family->classes,
                               [&](const nb::object& c) { return c.is(type); });
  }

  // An instance of a constructor's class, or the class itself.
  bool data(nb::handle object, const DataPlan* plan, Value* out) {
    if (!is_data_value(object)) fail(object, *plan);
    const nb::handle type = class_of(object);
    int64_t tag = -1;
    const std::vector<const DataPlan*>* fields = nullptr;
    if (plan) {
      const std::vector<nb::object>& classes = plan->family->classes;
      for (size_t i = 0; i < classes.size(); ++i) {
        if (classes[i].is(type)) tag = static_cast<int64_t>(i);
      }
      if (tag < 0) fail(object, *plan);
      fields = plan->owner->fields(*plan, tag);
    } else {
      tag = nb::cast<int64_t>(type.attr("_tag"));
    }
    if (PyType_Check(object.ptr())) {
      check(tenon_cell_create(tag, nullptr, 0, out->out()));
      return true;
    }
    if (const nb::object held = get(object, held_name()); !held.is_none()) {
      const UnopenedCell& cell = unopened(held);
      if (!plan || cell.plan == plan) {
        *out = Value::copy_of(cell.value.any());
        return true;
      }
    }
    nb::object items = opened(object);
    if (fields && static_cast<size_t>(PyTuple_GET_SIZE(items.ptr())) != fields->size()) {
      throw nb::type_error("_fields has another number of fields than the constructor");
    }
    open_.push_back({plan, std::move(items), tag, fields});
    return false;
  }

  static Value close(Open& top) {
    const tenon_any* const first = top.made.empty() ? nullptr : top.made[0].get();
    Value out;
    if (top.tag >= 0) {
      check(tenon_cell_create(top.tag, first, top.made.size(), out.out()));
    } else if (top.plan->form != Form::kList) {
      check(tenon_array_create(first, top.made.size(), out.out()));
    } else {
      check(tenon_cell_create(kNil, nullptr, 0, out.out()));
      for (size_t i = top.made.size(); i-- > 0;) {
        const tenon_any both[] = {top.made[i].any(), out.any()};
        Value longer;
        check(tenon_cell_create(kCons, both, 2, longer.out()));
        out = std::move(longer);
      }
    }
    return out;
  }

  [[noreturn]] void fail(nb::handle object, const DataPlan& plan, std::string found = {}) const {
    std::string text = "a value of type " + plan.type.text + " is expected";
    if (!open_.empty()) {
      const Open& around = open_.back();
      const std::string at = std::to_string(around.made.size());
      if (around.fields) {
        const auto tag = static_cast<size_t>(around.tag);
        text +=
            " for field " + at + " of " + around.plan->family->definition.constructors[tag].name;
      } else if (around.plan && around.plan->form != Form::kOption) {
        text += (around.plan->form == Form::kTuple ? " for field " : " for element ") + at +
                " of " + around.plan->type.text;
      }
    }
    if (found.empty()) {
      const nb::object value = is_data_value(object) && PyType_Check(object.ptr())
                                   ? sole_value(object)
                                   : nb::borrow(object);
      const nb::object shown = nb::steal(PyObject_Repr(value.ptr()));
      if (!shown.is_valid()) throw nb::python_error();
      found = nb::cast<std::string>(shown);
      if (found.size() > 80)
        found = std::string("an object of type '") + Py_TYPE(object.ptr())->tp_name + "'";
    }
    text += ", not " + found;
    if (plan.form == Form::kData) text += ": " + plan.family->definition.text;
    throw nb::type_error(text.c_str());
  }

 public:
  // The fields of an instance, as a tuple.
  static nb::object opened(nb::handle instance) {
    for (;;) {
      nb::object fields = get(instance, fields_name());
      if (PyTuple_Check(fields.ptr())) return fields;
      if (!fields.is_none()) throw nb::type_error("_fields isn't a tuple");
      const nb::object held = get(instance, held_name());
      if (held.is_none()) continue;  // another thread has opened it
      const UnopenedCell& cell = unopened(held);
      int64_t tag = -1;
      size_t size = 0;
      const tenon_any* values = tenon_cell_view(cell.value.get(), &tag, &size);
      const std::vector<const DataPlan*>& plans = *cell.types->fields(*cell.plan, tag);
      fields = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(size)));
      for (size_t i = 0; i < size; ++i) {
        nb::object field = data_object(Value::copy_of(values[i]), *plans[i]);
        PyTuple_SET_ITEM(fields.ptr(), static_cast<Py_ssize_t>(i), field.release().ptr());
      }
      set(instance, fields_name(), fields);
      // What Python has seen may change, such as a list.
      set(instance, held_name(), nb::none());
      return fields;
    }
  }

 private:
  std::vector<Open> open_;
};

// ---- Tenon to Python ----

[[noreturn]] void fail_result(const DataPlan& plan, const Value& value) {
  throw nb::value_error(("the program returned a value that isn't of type " + plan.type.text +
                         ": " + nb::cast<std::string>(repr_of(value)))
                            .c_str());
}

nb::object list_object(const Value& value, const DataPlan& plan) {
  nb::list out;
  for (const tenon_any* at = value.get();;) {
    int64_t tag = -1;
    size_t size = 0;
    const tenon_any* fields = tenon_cell_view(at, &tag, &size);
    if (tag == kNil && size == 0) return out;
    if (tag != kCons || size != 2) fail_result(plan, value);
    out.append(data_object(Value::copy_of(fields[0]), *plan.parts[0]));
    at = &fields[1];
  }
}

nb::object tuple_object(const Value& value, const DataPlan& plan) {
  const bool is_tuple = plan.form == Form::kTuple;
  if (is_tuple && plan.parts.empty() && value.type_index() == TENON_NONE) return nb::none();
  const int64_t size = tenon_array_size(value.get());
  if (size < 0 || (is_tuple && static_cast<size_t>(size) != plan.parts.size())) {
    fail_result(plan, value);
  }
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(size)));
  for (int64_t i = 0; i < size; ++i) {
    Value item;
    check(tenon_array_get(value.get(), static_cast<size_t>(i), item.out()));
    const DataPlan& part = *plan.parts[is_tuple ? static_cast<size_t>(i) : 0];
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i),
                     data_object(std::move(item), part).release().ptr());
  }
  return out;
}

nb::object option_object(const Value& value, const DataPlan& plan) {
  int64_t tag = -1;
  size_t size = 0;
  const tenon_any* fields = tenon_cell_view(value.get(), &tag, &size);
  if (tag == kNone && size == 0) return nb::none();
  if (tag != kSome || size != 1) fail_result(plan, value);
  nb::object inner = data_object(Value::copy_of(fields[0]), *plan.parts[0]);
  if (!may_be_none(*plan.parts[0])) return inner;
  return new_instance(plan.family->classes[kSome], nb::make_tuple(inner), nb::none());
}

nb::object dict_object(const Value& value, const DataPlan& plan) {
  int64_t tag = -1;
  size_t size = 0;
  const tenon_any* fields = tenon_cell_view(value.get(), &tag, &size);
  const std::vector<const DataPlan*>& plans = *plan.owner->fields(plan, 0);
  if (tag != 0 || size != plans.size()) fail_result(plan, value);
  const auto list_of = [&](size_t i) {
    return nb::cast<nb::list>(data_object(Value::copy_of(fields[i]), *plans[i]).attr("tolist")());
  };
  const nb::list keys = list_of(0), values = list_of(1);
  if (keys.size() != values.size()) fail_result(plan, value);
  nb::dict out;
  for (size_t i = 0; i < keys.size(); ++i) out[nb::object(keys[i])] = nb::object(values[i]);
  return out;
}

nb::object cell_object(Value value, const DataPlan& plan) {
  int64_t tag = -1;
  size_t size = 0;
  tenon_cell_view(value.get(), &tag, &size);
  const std::vector<const DataPlan*>* fields = plan.owner->fields(plan, tag);
  if (!fields || fields->size() != size) fail_result(plan, value);
  const nb::object& type = plan.family->classes[static_cast<size_t>(tag)];
  if (size == 0) return sole_value(type);
  nb::object held = nb::cast(UnopenedCell{std::move(value), &plan, plan.owner->shared_from_this()});
  return new_instance(type, nb::none(), held);
}

nb::object leaf_object(Value value, const Expected& type) {
  // Tensors in values are shared by all that hold the value.
  if (value.type_index() != TENON_TENSOR ||
      (tenon_tensor_flags(value.get()) & TENON_TENSOR_READ_ONLY)) {
    return to_python(std::move(value), type);
  }
  Value made;
  tenon_object* const object = value.any().v.object;
  tenon_object_retain(object);
  check(tenon_tensor_from_memory(
      tenon_tensor_view(value.get()), /*read_only=*/1, object,
      [](void* context) { tenon_object_release(static_cast<tenon_object*>(context)); },
      made.out()));
  return to_python(std::move(made));
}

}  // namespace

Expected expected_of(const DataPlan& plan) {
  Expected out = plan.expected;
  if (plan.form != Form::kLeaf) out.plan = &plan;
  return out;
}

Value data_value(nb::handle object, const DataPlan& plan) {
  return Conversion().run(object, &plan);
}
Value untyped_data_value(nb::handle object) {
  return Conversion().run(object, nullptr);
}

nb::object data_object(Value value, const DataPlan& plan) {
  switch (plan.form) {
    case Form::kLeaf:
      return leaf_object(std::move(value), plan.expected);
    case Form::kFunction:
      if (value.type_index() != TENON_FUNCTION) fail_result(plan, value);
      return typed_function(std::move(value), plan);
    case Form::kTuple:
    case Form::kArray:
      return tuple_object(value, plan);
    case Form::kList:
      return list_object(value, plan);
    case Form::kOption:
      return option_object(value, plan);
    case Form::kMap:
      return dict_object(value, plan);
    case Form::kData:
      return cell_object(std::move(value), plan);
  }
  return nb::none();
}

bool is_opened_later(const DataPlan& plan) {
  switch (plan.form) {
    case Form::kLeaf:
    case Form::kFunction:
    case Form::kData:
      return true;
    case Form::kTuple:
    case Form::kOption:
      return std::ranges::all_of(plan.parts, [](const DataPlan* p) { return is_opened_later(*p); });
    default:
      return false;
  }
}

bool is_data_value(nb::handle object) {
  if (PyObject_TypeCheck(object.ptr(), base_class())) return true;
  return is_class(object) && nb::hasattr(object, "_value");
}

// ---- Types ----

DataTypes::DataTypes(const std::vector<std::string>& definitions) {
  static constinit std::atomic<PyObject*> known = nullptr;
  for (const std::string& text : definitions) {
    TypeDefinition definition = TypeDefinition::parse(text);
    nb::list constructors;
    for (const TypeDefinition::Constructor& c : definition.constructors) {
      nb::list fields;
      for (const Type& field : c.fields) fields.append(field.text);
      constructors.append(nb::make_tuple(c.name, fields));
    }
    const nb::handle make(attribute_of(kModule, "_classes_of", known));
    const nb::object classes = make(text, definition.name, constructors);
    std::string name = definition.name;
    DataFamily& family = families_[std::move(name)];
    family.definition = std::move(definition);
    family.classes.clear();
    for (nb::handle c : classes) family.classes.push_back(nb::borrow(c));
  }
}

nb::object DataTypes::families() const {
  nb::dict out;
  for (const auto& [name, family] : families_) {
    out[name.c_str()] = nb::make_tuple(family.definition.text, family_classes(name));
  }
  return out;
}

nb::object DataTypes::family_classes(const std::string& name) const {
  nb::list classes;
  for (const nb::object& c : families_.at(name).classes) classes.append(c);
  return classes;
}

namespace {

// The types within values that Python has looked at.
constexpr size_t kMostTypeBytes = size_t{32} << 20;

[[noreturn]] void fail_too_large(const std::string& name) {
  throw nb::value_error(("the types within values of the data type '" + name +
                         "', which contains itself with other types, are too large to look at")
                            .c_str());
}

}  // namespace

Expected DataTypes::expected(const std::string& type) {
  const nb::ft_lock_guard lock(mutex_);
  const Type parsed = Type::parse(type);
  try {
    return expected_of(*find(parsed));
  } catch (const UnsupportedError&) {
    fail_too_large(parsed.name);
  }
}

namespace {

// Whether it is the type of tensors of rank 1.
bool is_list(const Type& type) {
  const size_t begin = sizeof "tensor[" - 1, end = type.text.find(';');
  if (type.kind != Type::Kind::tensor || end == std::string::npos) return false;
  const std::string size = type.text.substr(begin, end - begin);
  return size != "*" && size.find(',') == std::string::npos &&
         (!size.starts_with("rank=") || size == "rank=1");
}

}  // namespace

const DataPlan* DataTypes::find(const Type& type) {
  if (const auto known = plans_.find(type.text); known != plans_.end()) return known->second.get();
  const size_t bytes = detail::text_bytes(type);
  if (bytes_ + bytes > kMostTypeBytes) throw UnsupportedError("all types together are too large");
  bytes_ += bytes;
  auto plan = std::make_unique<DataPlan>();
  plan->type = type;
  plan->owner = this;
  switch (type.kind) {
    case Type::Kind::tuple:
      plan->form = Form::kTuple;
      break;
    case Type::Kind::array:
      plan->form = Form::kArray;
      break;
    case Type::Kind::function:
      plan->form = Form::kFunction;
      break;
    case Type::Kind::data:
      if (const auto known = families_.find(type.name); known != families_.end()) {
        plan->family = &known->second;
        const std::string& text = plan->family->definition.text;
        const bool has_element = type.parts.size() == 1;
        const bool has_lists = type.parts.size() == 2 && std::ranges::all_of(type.parts, is_list);
        plan->form = text == kListText && has_element     ? Form::kList
                     : text == kOptionText && has_element ? Form::kOption
                     : text == kMapText && has_lists      ? Form::kMap
                                                          : Form::kData;
      } else {
        plan->expected = expected_of(type);
      }
      break;
    default:
      plan->expected = expected_of(type);
  }
  if (plan->form != Form::kLeaf && plan->form != Form::kData && plan->form != Form::kMap) {
    for (const Type& part : type.parts) plan->parts.push_back(find(part));
  }
  return plans_.emplace(type.text, std::move(plan)).first->second.get();
}

const std::vector<const DataPlan*>* DataTypes::fields(const DataPlan& plan, int64_t tag) {
  const nb::ft_lock_guard lock(mutex_);
  const TypeDefinition& definition = plan.family->definition;
  if (plan.fields.empty()) {
    std::vector<std::vector<const DataPlan*>> all;  // or none, if one of their types is too large
    for (size_t i = 0; i < definition.constructors.size(); ++i) {
      all.emplace_back();
      try {
        for (const Type& field : definition.field_types(i, plan.type)) {
          all.back().push_back(find(field));
        }
      } catch (const UnsupportedError&) {
        fail_too_large(definition.name);
      }
    }
    plan.fields = std::move(all);
  }
  const auto place = static_cast<size_t>(tag);
  return tag >= 0 && place < plan.fields.size() ? &plan.fields[place] : nullptr;
}

namespace {

// The data types of a module that isn't compiled, with the prelude's.
struct ModuleTypes {
  std::shared_ptr<DataTypes> types;

  explicit ModuleTypes(std::vector<std::string> definitions) {
    definitions.insert(definitions.end(), {kListText, kOptionText});
    types = std::make_shared<DataTypes>(definitions);
  }
};

}  // namespace

void define_data(nb::module_& m) {
  nb::class_<ModuleTypes> c(m, "ModuleTypes", "The data types of a module and of the prelude.");
  c.def(nb::init<std::vector<std::string>>(), nb::arg("definitions"));
  c.def(
      "families", [](const ModuleTypes& t) { return t.types->families(); },
      nb::sig("def families(self) -> dict[str, tuple[str, list[type]]]"));
  c.def(
      "value",
      [](const ModuleTypes& t, nb::handle object, const std::string& type) -> nb::object {
        const Expected expected = t.types->expected(type);
        return nb::cast(Object{to_value(object, expected)});
      },
      nb::arg("object").none(), nb::arg("type"),
      "A value of that type, for functions that know none.",
      nb::sig("def value(self, object: object, type: str) -> typing.Any"));
  c.def(
      "object",
      [](const ModuleTypes& t, nb::handle value, const std::string& type) -> nb::object {
        return to_python(to_value(value), t.types->expected(type));
      },
      nb::arg("value").none(), nb::arg("type"),
      "What a function of that result type returned, in Python.",
      nb::sig("def object(self, value: object, type: str) -> typing.Any"));
  const nb::class_<UnopenedCell> held(m, "HeldCell", "A cell that a program returned.");
  m.def(
      "open_cell", [](nb::handle instance) { return Conversion::opened(instance); },
      nb::arg("instance"), "The fields of an instance of a constructor's class.",
      nb::sig("def open_cell(instance: object) -> tuple[typing.Any, ...]"));
  m.def(
      "classes_of",
      [](const std::string& definition) {
        return DataTypes(std::vector<std::string>{definition})
            .family_classes(TypeDefinition::parse(definition).name);
      },
      nb::arg("definition"), "The classes of a data type's constructors, by tag.",
      nb::sig("def classes_of(definition: str) -> list[type]"));
  m.def(
      "cell_of",
      [](nb::handle object) {
        int64_t tag = -1;
        size_t size = 0;
        const Value value = to_value(object);
        const tenon_any* fields = tenon_cell_view(value.get(), &tag, &size);
        if (!fields) throw nb::type_error("not a cell");
        nb::list out;
        for (size_t i = 0; i < size; ++i) out.append(to_python(Value::copy_of(fields[i])));
        return nb::make_tuple(tag, nb::tuple(out));
      },
      nb::arg("cell"), "The tag and the fields of a cell.",
      nb::sig("def cell_of(cell: object) -> tuple[int, tuple[typing.Any, ...]]"));
}

}  // namespace tenon::python
