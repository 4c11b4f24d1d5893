// Values whose types contain data types, lists, options, tuples, arrays or functions, as a
// program's signatures state them:
//
//   tree[T] { Leaf, ... }   an instance of a class of python/tenon/_data.py
//   list[T]                 a list
//   option[T]               None or a T; if a T can be None itself, None or Some(x)
//   map[K, V] { Map(K, V) } of two lists, which are tensors: a dict; from a Map, too
//   (T, U), array[T]        a tuple; from any sequence
//   fn(T) -> U              a tenon.Function; from any callable
//
// Cells that a program returned are opened, a level at a time, when Python looks into them. Neither
// way recurses over values, which may be of any depth.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "python/src/value.h"
#include "tenon/cpp/data_type.h"

namespace tenon::python {

class DataTypes;
struct Signature;

// A data type of a program and its classes in Python, by tag.
struct DataFamily {
  TypeDefinition definition;
  std::vector<nb::object> classes;
};

// How the values of one type cross the border.
struct DataPlan {
  enum class Form { kLeaf, kTuple, kArray, kList, kOption, kMap, kData, kFunction };

  Form form = Form::kLeaf;
  Type type;
  DataTypes* owner = nullptr;
  Expected expected;                   // of a leaf
  std::vector<const DataPlan*> parts;  // as Type::parts; a list's or option's element
  const DataFamily* family = nullptr;  // of a list, option, map, or other data type
  // Of the fields, by tag, once DataTypes::fields has looked them up: a type's fields may have
  // fields of ever more types.
  mutable std::vector<std::vector<const DataPlan*>> fields;
};

// A program's data types, and the plans for types that contain them.
class DataTypes : public std::enable_shared_from_this<DataTypes> {
 public:
  explicit DataTypes(const std::vector<std::string>& definitions);
  DataTypes(const DataTypes&) = delete;

  // What a parameter of the type takes; its plan is null for a type whose values to_value and
  // to_python convert by themselves.
  Expected expected(const std::string& type);
  // The plans of the fields of cells with this tag; null if no constructor has it.
  const std::vector<const DataPlan*>* fields(const DataPlan& plan, int64_t tag);
  // By name, each a tuple of its definition's text and its classes.
  nb::object families() const;
  // The classes of that data type, a list.
  nb::object family_classes(const std::string& name) const;

 private:
  const DataPlan* find(const Type& type);

  std::map<std::string, DataFamily> families_;  // by name
  nb::ft_mutex mutex_;                          // guards what follows, and the plans' fields
  std::unordered_map<std::string, std::unique_ptr<DataPlan>> plans_;  // by the type's text
  size_t bytes_ = 0;  // of the texts of the plans' types and their parts
};

// What a parameter of the plan's type takes.
Expected expected_of(const DataPlan& plan);

// As to_value and to_python. Tensors in cells are shared by everything that holds the cell, so that
// Python gets them read-only.
Value data_value(nb::handle object, const DataPlan& plan);
nb::object data_object(Value value, const DataPlan& plan);
// Whether data_object takes the same time for all values of the type: lists, arrays and maps are
// converted whole.
bool is_opened_later(const DataPlan& plan);

// Whether it is an instance of a constructor's class, or the class of a constructor without fields.
bool is_data_value(nb::handle object);
// The value of such an object where no type is known: lists in it become arrays.
Value untyped_data_value(nb::handle object);

// A function of that type.
nb::object typed_function(Value value, const DataPlan& plan);

}  // namespace tenon::python
