#include <algorithm>
#include <utility>

#include "python/src/classes.h"
#include "python/src/data.h"
#include "python/src/data_object.h"
#include "python/src/error.h"
#include "python/src/tensor_data.h"

namespace tenon::python {
namespace {

using Form = DataPlan::Form;
using tenon::detail::kCons;
using tenon::detail::kNil;
using tenon::detail::kNone;
using tenon::detail::kSome;

// Whether a value of the type can be None in Python.
bool may_be_none(const DataPlan& plan) {
  return plan.form == Form::kOption || (plan.form == Form::kTuple && plan.parts.empty()) ||
         (plan.form == Form::kLeaf && plan.expected.kind == TENON_NONE);
}

[[noreturn]] void fail_result(const DataPlan& plan, const Value& value) {
  throw nb::value_error(("the program returned a value that isn't of type " + plan.type.text +
                         ": " + string_of(repr_of(value)))
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

// What tolist() gives for a tensor of rank 1.
nb::list elements_list(const tenon_any& any, const DataPlan& plan) {
  Value value = Value::copy_of(any);
  if (value.type_index() == TENON_TENSOR) {
    const DLTensor& t = *tenon_tensor_view(value.get());
    if (t.ndim == 1 && is_strings(t.dtype)) return string_list(value);
    if (t.ndim == 1 && !is_elsewhere(t) && is_compact(t)) {
      if (const nb::object list = number_list(t); list.is_valid())
        return nb::borrow<nb::list>(list);
    }
  }
  return nb::cast<nb::list>(data_object(std::move(value), plan).attr("tolist")());
}

nb::object dict_object(const Value& value, const DataPlan& plan) {
  int64_t tag = -1;
  size_t size = 0;
  const tenon_any* fields = tenon_cell_view(value.get(), &tag, &size);
  const std::vector<const DataPlan*>& plans = *plan.owner->fields(plan, 0);
  if (tag != 0 || size != plans.size()) fail_result(plan, value);
  const nb::list keys = elements_list(fields[0], *plans[0]);
  const nb::list values = elements_list(fields[1], *plans[1]);
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
  nb::object held =
      new_instance_of(UnopenedCell{std::move(value), &plan, plan.owner->shared_from_this()});
  return new_instance(type, nb::none(), held);
}

nb::object leaf_object(Value value, const Expected& type) {
  // Tensors in values are shared by all that hold the value.
  if (value.type_index() != TENON_TENSOR ||
      (tenon_tensor_flags(value.get()) & TENON_TENSOR_READ_ONLY)) {
    return to_python(std::move(value), type);
  }
  return to_python(read_only_tensor(*tenon_tensor_view(value.get()), value.any().v.object));
}

}  // namespace

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

}  // namespace tenon::python
