#include <atomic>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "python/src/classes.h"
#include "python/src/data.h"
#include "python/src/data_object.h"
#include "python/src/error.h"
#include "python/src/number.h"

namespace tenon::python {
namespace {

using Form = DataPlan::Form;
using tenon::detail::kCons;
using tenon::detail::kNil;
using tenon::detail::kNone;
using tenon::detail::kSome;

// An object, or a cell that Python has not looked into, that is converted as a value of the plan's
// type, or of none that is known.
struct Part {
  const void* identity;
  const DataPlan* plan;

  bool operator==(const Part&) const = default;
};
struct PartHash {
  size_t operator()(const Part& p) const {
    const std::hash<const void*> hash;
    return hash(p.identity) * 31 + hash(p.plan);
  }
};

// A container whose items are being converted.
struct Open {
  const DataPlan* plan;                                  // null where no type is known
  nb::object items;                                      // a tuple
  int64_t tag = -1;                                      // of a cell
  const std::vector<const DataPlan*>* fields = nullptr;  // of a cell
  nb::object mutable_container = {};                     // whose items they are, if it may change
  const void* identity = nullptr;                        // see Part
  nb::object shared = {};                                // keeps it, if it may be met again
  std::vector<Value> made = {};

  size_t size() const { return static_cast<size_t>(PyTuple_GET_SIZE(items.ptr())); }
  const DataPlan* part(size_t i) const {
    if (!plan) return nullptr;
    if (fields) return (*fields)[i];
    return plan->form == Form::kTuple ? plan->parts[i] : plan->parts[0];
  }
};

// What several containers hold is converted once, so that values which share parts take the time
// and memory of what they are made of, however many paths lead to it.
class Conversion {
 public:
  Value run(nb::handle object, const DataPlan* plan) {
    Value out;
    if (at_once(object, plan, &out)) return out;
    for (size_t steps = 1;; ++steps) {
      if (steps % kStepsBetweenSignals == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
      Open& top = open_.back();
      if (const size_t i = top.made.size(); i < top.size()) {
        const nb::handle item = PyTuple_GET_ITEM(top.items.ptr(), static_cast<Py_ssize_t>(i));
        Value made;
        if (at_once(item, top.part(i), &made)) top.made.push_back(std::move(made));
        continue;
      }
      Value made = close(top);
      mutable_.erase(top.mutable_container.ptr());
      if (top.shared.is_valid()) {
        const Part part{top.identity, top.plan};
        known_.emplace(part, Known{std::move(top.shared), Value::copy_of(made.any())});
      }
      open_.pop_back();
      if (open_.empty()) return made;
      open_.back().made.push_back(std::move(made));
    }
  }

 private:
  static constexpr size_t kStepsBetweenSignals = 1 << 12;

  struct Known {
    nb::object kept;  // so that nothing else gets the address
    Value value;
  };

  bool is_known(const Part& part, Value* out) const {
    if (known_.empty()) return false;
    const auto known = known_.find(part);
    if (known == known_.end()) return false;
    *out = Value::copy_of(known->second.value.any());
    return true;
  }

  // Converts the object, or opens it as a container and returns false.
  bool at_once(nb::handle object, const DataPlan* plan, Value* out) {
    if (is_known({object.ptr(), plan}, out)) return true;
    if (!plan) {
      if (is_data_value(object)) return data(object, nullptr, out);
      if (is_list_or_tuple(object)) {
        open({nullptr, items_of(object)}, object);
        return false;
      }
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

  static bool is_list_or_tuple(nb::handle object) {
    return PyTuple_CheckExact(object.ptr()) || PyList_CheckExact(object.ptr());
  }

  static nb::object items_of(nb::handle sequence) {
    nb::object items = nb::steal(PySequence_Tuple(sequence.ptr()));
    if (!items.is_valid()) throw nb::python_error();
    return items;
  }

  static void set_shared(nb::handle object, Open* container) {
    if (Py_REFCNT(object.ptr()) == 1) return;  // it is part of one container only
    container->shared = nb::borrow(object);
    container->identity = object.ptr();
  }

  // Opens a container, which may not be among those that are open: only one that may change can
  // contain itself.
  void open(Open container, nb::handle object) {
    // Other sequences may have other items the next time.
    if (is_list_or_tuple(object)) set_shared(object, &container);
    if (!PyTuple_CheckExact(object.ptr())) {
      if (!mutable_.insert(object.ptr()).second) {
        throw nb::value_error((std::string("an object of type '") + Py_TYPE(object.ptr())->tp_name +
                               "' contains itself, which no value of a program does")
                                  .c_str());
      }
      container.mutable_container = nb::borrow(object);
    }
    open_.push_back(std::move(container));
  }

  bool dict(nb::handle object, const DataPlan& plan) {
    if (!PyDict_Check(object.ptr())) fail(object, plan);
    const nb::object keys = nb::steal(PyDict_Keys(object.ptr()));
    const nb::object values = nb::steal(PyDict_Values(object.ptr()));
    if (!keys.is_valid() || !values.is_valid()) throw nb::python_error();
    open({&plan, nb::make_tuple(keys, values), 0, plan.owner->fields(plan, 0)}, object);
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
    nb::object items = items_of(object);
    if (static_cast<size_t>(PyTuple_GET_SIZE(items.ptr())) != plan.parts.size()) {
      fail(object, plan, std::to_string(PyTuple_GET_SIZE(items.ptr())) + " items");
    }
    if (plan.parts.empty()) {
      *out = Value();
      return true;
    }
    open({&plan, std::move(items)}, object);
    return false;
  }

  bool sequence(nb::handle object, const DataPlan& plan) {
    PyObject* const o = object.ptr();
    if (!PySequence_Check(o) || PyUnicode_Check(o) || is_class(object)) {
      fail(object, plan);
    }
    nb::object items = items_of(object);
    open({&plan, std::move(items)}, object);
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
    Open container{.plan = plan, .items = {}, .tag = tag, .fields = fields};
    if (const nb::object held = held_by(object); !held.is_none()) {
      const UnopenedCell& cell = unopened(held);
      if (!plan || cell.plan == plan) {
        *out = Value::copy_of(cell.value.any());
        return true;
      }
      // A value of another program: each cell becomes many instances when it is opened.
      container.identity = cell.value.any().v.object;
      if (is_known({container.identity, plan}, out)) return true;
      container.shared = held;
    } else {
      set_shared(object, &container);
    }
    container.items = opened(object);
    if (fields && container.size() != fields->size()) {
      throw nb::type_error("_fields has another number of fields than the constructor");
    }
    open_.push_back(std::move(container));
    return false;
  }

  static Value close(Open& top) {
    const tenon_any* const first = top.made.empty() ? nullptr : top.made[0].get();
    Value out;
    if (top.tag >= 0) {
      check(tenon_cell_create(top.tag, first, top.made.size(), out.out()));
    } else if (!top.plan || top.plan->form != Form::kList) {
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
      static constinit std::atomic<PyObject*> known = nullptr;
      const nb::handle brief(attribute_of(kDataModule, "_brief", known));
      found = string_of(brief(object));
    }
    text += ", not " + found;
    if (plan.form == Form::kData) text += ": " + plan.family->definition.text;
    throw nb::type_error(text.c_str());
  }

  std::vector<Open> open_;
  std::unordered_set<PyObject*> mutable_;  // the containers of open_ that may change
  std::unordered_map<Part, Known, PartHash> known_;
};

}  // namespace

Value data_value(nb::handle object, const DataPlan& plan) {
  return Conversion().run(object, &plan);
}
Value untyped_data_value(nb::handle object) {
  return Conversion().run(object, nullptr);
}

}  // namespace tenon::python
