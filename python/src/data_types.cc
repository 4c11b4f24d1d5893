#include <atomic>
#include <iterator>
#include <utility>

#include "python/src/classes.h"
#include "python/src/data.h"
#include "python/src/data_object.h"
#include "python/src/error.h"
#include "python/src/nanobind.h"

namespace tenon::python {
namespace {

using Form = DataPlan::Form;

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

// Whether a field's type alone says what its values in Python are, whatever the type parameters of
// its data type stand for: a number or a value of the data type itself.
bool is_plain(const Type& field, const TypeDefinition& of) {
  if (field.kind == Type::Kind::data) {
    const bool has_forms =  // of Python's own
        of.text == detail::kListText || of.text == detail::kOptionText ||
        of.text == detail::kMapText;
    return field.name == of.name && !has_forms;
  }
  const int32_t kind = expected_of(field).kind;
  return kind == TENON_BOOL || kind == TENON_INT || kind == TENON_FLOAT;
}

bool is_vector(const Type& type) {
  return type.kind == Type::Kind::tensor && type.rank == 1;
}

}  // namespace

Expected expected_of(const DataPlan& plan) {
  Expected out = plan.expected;
  if (plan.form != Form::kLeaf) out.plan = &plan;
  return out;
}

DataTypes::DataTypes(const std::vector<std::string>& definitions) {
  static constinit std::atomic<PyObject*> known = nullptr;
  for (const std::string& text : definitions) {
    TypeDefinition definition = TypeDefinition::parse(text);
    nb::list constructors;
    for (const TypeDefinition::Constructor& c : definition.constructors) {
      nb::list fields, plain;
      for (const Type& field : c.fields) {
        if (is_plain(field, definition)) plain.append(fields.size());
        fields.append(field.text);
      }
      constructors.append(nb::make_tuple(c.name, fields, plain));
    }
    const nb::handle make(attribute_of(kDataModule, "_classes_of", known));
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
        const bool has_vectors =
            type.parts.size() == 2 && std::ranges::all_of(type.parts, is_vector);
        plan->form = text == detail::kListText && has_element     ? Form::kList
                     : text == detail::kOptionText && has_element ? Form::kOption
                     : text == detail::kMapText && has_vectors    ? Form::kMap
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
    definitions.insert(definitions.end(), std::begin(detail::kPrelude), std::end(detail::kPrelude));
    types = std::make_shared<DataTypes>(definitions);
  }
};

}  // namespace

void define_data(nb::module_& m) {
  nb::class_<ModuleTypes> c(m, "ModuleTypes", "The data types of a module and of the prelude.");
  c.def(
      "__init__",
      [](ModuleTypes* self, nb::handle definitions) {
        new (self) ModuleTypes(strings_of(definitions));
      },
      nb::arg("definitions"),
      nb::sig("def __init__(self, definitions: collections.abc.Sequence[str]) -> None"));
  c.def(
      "families", [](const ModuleTypes& t) { return t.types->families(); },
      nb::sig("def families(self) -> dict[str, tuple[str, list[type]]]"));
  c.def(
      "value",
      [](const ModuleTypes& t, nb::handle object, const nb::str& type) -> nb::object {
        const Expected expected = t.types->expected(string_of(type));
        return new_instance_of(Object{to_value(object, expected)});
      },
      nb::arg("object").none(), nb::arg("type"),
      "A value of that type, for functions that know none.",
      nb::sig("def value(self, object: object, type: str) -> typing.Any"));
  c.def(
      "object",
      [](const ModuleTypes& t, nb::handle value, const nb::str& type) -> nb::object {
        return to_python(to_value(value), t.types->expected(string_of(type)));
      },
      nb::arg("value").none(), nb::arg("type"),
      "What a function of that result type returned, in Python.",
      nb::sig("def object(self, value: object, type: str) -> typing.Any"));
  nb::class_<UnopenedCell> held(m, "HeldCell", "A cell that a program returned.");
  held.def_prop_ro(
      "key",
      [](const UnopenedCell& cell) {
        return nb::make_tuple(reinterpret_cast<uintptr_t>(cell.value.any().v.object),
                              reinterpret_cast<uintptr_t>(cell.plan));
      },
      "The same for the same cell and type, while either lives.",
      nb::sig("def key(self, /) -> tuple[int, int]"));
  m.def(
      "open_cell", [](nb::handle instance) { return opened(instance); }, nb::arg("instance"),
      "The fields of an instance of a constructor's class.",
      nb::sig("def open_cell(instance: object) -> tuple[typing.Any, ...]"));
  m.def(
      "classes_of",
      [](const nb::str& given) {
        const std::string definition = string_of(given);
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
