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

nb::object whole_object(Value value, const DataPlan& plan, ConvertedParts* parts);

// Whether it takes less to convert such a value again than to keep it.
bool is_small(const Value& value, const DataPlan& plan) {
  constexpr int64_t kFew = 16;
  const auto is_leaf = [](const DataPlan* part) { return part->form == Form::kLeaf; };
  switch (plan.form) {
    case Form::kTuple:
    case Form::kArray:
      return tenon_array_size(value.get()) <= kFew && std::ranges::all_of(plan.parts, is_leaf);
    case Form::kList:
    case Form::kMap:
      return false;
    default:
      return true;  // opened later, or one part
  }
}

nb::object part_object(Value value, const DataPlan& plan, ConvertedParts* parts) {
  if (value.type_index() < TENON_OBJECT_BEGIN || is_small(value, plan)) {
    return whole_object(std::move(value), plan, parts);
  }
  return parts->of(value, &plan,
                   [&] { return whole_object(Value::copy_of(value.any()), plan, parts); });
}

nb::object list_object(const Value& value, const DataPlan& plan, ConvertedParts* parts) {
  nb::list out;
  for (const tenon_any* at = value.get();;) {
    int64_t tag = -1;
    size_t size = 0;
    const tenon_any* fields = tenon_cell_view(at, &tag, &size);
    if (tag == kNil && size == 0) return out;
    if (tag != kCons || size != 2) fail_result(plan, value);
    out.append(part_object(Value::copy_of(fields[0]), *plan.parts[0], parts));
    at = &fields[1];
  }
}

nb::object tuple_object(const Value& value, const DataPlan& plan, ConvertedParts* parts) {
  const bool is_tuple = plan.form == Form::kTuple;
  if (is_tuple && plan.parts.empty() && value.type_index() == TENON_NONE) return nb::none();
  const int64_t size = tenon_array_size(value.get());
  if (size < 0 || (is_tuple && static_cast<size_t>(size) != plan.parts.size())) {
    fail_result(plan, value);
  }
  nb::object out = new_tuple(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    Value item;
    check(tenon_array_get(value.get(), static_cast<size_t>(i), item.out()));
    const DataPlan& part = *plan.parts[is_tuple ? static_cast<size_t>(i) : 0];
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i),
                     part_object(std::move(item), part, parts).release().ptr());
  }
  return out;
}

nb::object option_object(const Value& value, const DataPlan& plan, ConvertedParts* parts) {
  int64_t tag = -1;
  size_t size = 0;
  const tenon_any* fields = tenon_cell_view(value.get(), &tag, &size);
  if (tag == kNone && size == 0) return nb::none();
  if (tag != kSome || size != 1) fail_result(plan, value);
  nb::object inner = part_object(Value::copy_of(fields[0]), *plan.parts[0], parts);
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

nb::object leaf_object(Value value, const Expected& type, ConvertedParts* parts) {
  // Tensors in values are shared by all that hold the value.
  if (value.type_index() != TENON_TENSOR ||
      (tenon_tensor_flags(value.get()) & TENON_TENSOR_READ_ONLY)) {
    return to_python(std::move(value), type, parts);
  }
  return to_python(read_only_tensor(*tenon_tensor_view(value.get()), value.any().v.object));
}

nb::object whole_object(Value value, const DataPlan& plan, ConvertedParts* parts) {
  switch (plan.form) {
    case Form::kLeaf:
      return leaf_object(std::move(value), plan.expected, parts);
    case Form::kFunction:
      if (value.type_index() != TENON_FUNCTION) fail_result(plan, value);
      return typed_function(std::move(value), plan);
    case Form::kTuple:
    case Form::kArray:
      return tuple_object(value, plan, parts);
    case Form::kList:
      return list_object(value, plan, parts);
    case Form::kOption:
      return option_object(value, plan, parts);
    case Form::kMap:
      return dict_object(value, plan);
    case Form::kData:
      return cell_object(std::move(value), plan);
  }
  return nb::none();
}

}  // namespace

nb::object data_object(Value value, const DataPlan& plan) {
  ConvertedParts parts;
  return whole_object(std::move(value), plan, &parts);
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
