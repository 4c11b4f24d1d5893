#include "python/src/machines.h"

#include <algorithm>
#include <utility>

#include "python/src/classes.h"
#include "python/src/data.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/nanobind.h"

namespace tenon::python {
namespace {

// What an instrument written in Python returned: None, a tenon.VMInstrumentReturnKind, or a pair of
// that and the call's result.
int action_of(nb::handle returned, tenon_any* result) {
  if (returned.is_none()) return TENON_INSTRUMENT_CONTINUE;
  nb::object kind = nb::borrow(returned);
  // As a tuple, whatever a subclass makes of its length and items.
  if (PyTuple_Check(returned.ptr()) && PyTuple_GET_SIZE(returned.ptr()) == 2) {
    kind = nb::borrow(PyTuple_GET_ITEM(returned.ptr(), 0));
    const Value value = to_value(PyTuple_GET_ITEM(returned.ptr(), 1));
    check(tenon_any_copy(value.get(), result));
  }
  const auto expected = nb::module_::import_("tenon._executable").attr("VMInstrumentReturnKind");
  if (!nb::isinstance(kind, expected)) {
    throw nb::type_error(
        "an instrument returns None, a tenon.VMInstrumentReturnKind, or a tuple "
        "of that and the result of the call");
  }
  return nb::cast<int>(nb::int_(kind));
}

// A parameter's or result's value as an instrument gets it: with the names of constructors, unless
// that takes the longer the larger the value is, since each call of a recursive function may get
// it.
nb::object seen(Value value, const Parameter& as) {
  const DataPlan* plan = as.expected.plan;
  if (!plan || !is_opened_later(*plan)) return to_python(std::move(value));
  return data_object(std::move(value), *plan);
}

nb::object seen_result(const tenon_call_event& event, const Signature* signature) {
  Value result = Value::copy_of(*event.result);
  if (event.before || !signature || signature->results.empty()) return to_python(std::move(result));
  const std::vector<Parameter>& types = signature->results;
  if (types.size() == 1 && result.type_index() != TENON_ARRAY)
    return seen(std::move(result), types[0]);
  if (tenon_array_size(result.get()) != static_cast<int64_t>(types.size()))
    return to_python(std::move(result));
  nb::list out;
  for (size_t i = 0; i < types.size(); ++i) {
    Value item;
    check(tenon_array_get(result.get(), i, item.out()));
    out.append(seen(std::move(item), types[i]));
  }
  return nb::tuple(out);
}

// Null if the call isn't one of a function that the host knows.
const Signature* signature_of(const Machines& machines, const tenon_call_event& event) {
  if (event.kind != TENON_CALL_FUNCTION) return nullptr;
  const auto found = machines.signatures().find(std::string_view(event.name.data, event.name.size));
  const bool fits = found != machines.signatures().end() &&
                    found->second.params.size() == static_cast<size_t>(event.arg_count);
  return fits ? &found->second : nullptr;
}

int call_instrument(void* context, const tenon_call_event* event) {
  const WithGil acquired;
  if (!acquired) {
    tenon_error_set(TENON_ERROR_RUNTIME, "an instrument was called after the interpreter's end");
    return -1;
  }
  try {
    const Machines& machines = *static_cast<const Machines*>(context);
    const nb::object instrument = machines.instrument();
    const Signature* const signature = signature_of(machines, *event);
    nb::list args;
    args.append(to_python(Value::copy_of(*event->function)));
    args.append(nb::str(event->name.data, event->name.size));
    args.append(nb::bool_(event->before != 0));
    args.append(seen_result(*event, signature));
    for (int32_t i = 0; i < event->arg_count; ++i) {
      Value arg = Value::copy_of(event->args[i]);
      args.append(signature ? seen(std::move(arg), signature->params[static_cast<size_t>(i)])
                            : to_python(std::move(arg)));
    }
    const nb::object returned =
        nb::steal(PyObject_CallObject(instrument.ptr(), nb::tuple(args).ptr()));
    if (!returned.is_valid()) throw nb::python_error();
    return action_of(returned, event->result);
  } catch (...) {
    raise_current();
    wait_with_raised();
  }
  return -1;
}

nb::object memory_stats(Machines& machines) {
  size_t count = 0;
  const tenon_memory_stats stats = machines.memory(&count);
  nb::dict out;
  out["memory"] = stats.memory == TENON_MEMORY_NAIVE ? "naive" : "pooled";
  out["machines"] = count;
  out["allocated"] = stats.allocated;
  out["peak"] = stats.peak;
  out["pooled"] = stats.pooled;
  out["call_peak"] = stats.call_peak;
  out["call_bytes"] = stats.call_bytes;
  out["allocations"] = stats.allocations;
  out["system_allocations"] = stats.system_allocations;
  return out;
}

// -1 with a waiting error. The machine borrows the Machines that own it and the callable: Python's
// garbage collector then sees the only reference.
int watch(const Value& machine, const Machines* machines) {
  const bool is_watched = !machines->instrument().is_none();
  return tenon_machine_set_instrument(machine.get(), is_watched ? call_instrument : nullptr,
                                      const_cast<Machines*>(machines), nullptr);
}

// An instrument often refers to the tenon.VirtualMachine that it watches.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Machines>(self)->instrument().ptr());
  return 0;
}

int clear(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  try {
    nb::inst_ptr<Machines>(self)->set_instrument(nb::none());
  } catch (...) {  // no memory: the cycle stays until the next collection
    raise_current();
    PyErr_WriteUnraisable(self);
  }
  return 0;
}

const PyType_Slot kSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {0, nullptr},
};

}  // namespace

Machines::Machines(Program program, int32_t memory, const tenon_limits& limits, int32_t inter_op)
    : program_(std::move(program)), memory_(memory), limits_(limits), inter_op_(inter_op) {
  auto made = make();
  if (!made) raise_waiting();
  slots_.push_back(std::move(made));
}

Machines::~Machines() = default;

std::unique_ptr<Machines::Slot> Machines::make() const {
  auto made = std::make_unique<Slot>();
  tenon_machine_options options = TENON_MACHINE_DEFAULTS;
  options.memory = memory_;
  options.limits = &limits_;
  options.inter_op = inter_op_;
  {
    // Preparing the program may take seconds.
    const nb::gil_scoped_release released;
    if (tenon_machine_create_with(program_.value.get(), &options, made->machine.out()) != 0)
      return nullptr;
  }
  if (!instrument_.is_none() && watch(made->machine, this) != 0) return nullptr;
  return made;
}

Machines::Slot* Machines::take() {
  Slot* taken = nullptr;
  {
    const nb::ft_lock_guard lock(mutex_);
    const auto idle =
        std::ranges::find_if_not(slots_, [](const auto& slot) { return slot->is_running; });
    if (idle != slots_.end()) {
      taken = idle->get();
    } else if (auto made = make()) {
      taken = made.get();
      slots_.push_back(std::move(made));
    }
    if (taken) {
      taken->is_running = true;
      taken->thread = PyThread_get_thread_ident();
    }
  }
  if (!taken) raise_waiting();
  return taken;
}

void Machines::give_back(Slot* slot) noexcept {
  const nb::ft_lock_guard lock(mutex_);
  slot->is_running = false;
}

void Machines::cancel(std::optional<unsigned long> thread) {
  int code = 0;
  {
    const nb::ft_lock_guard lock(mutex_);
    for (const auto& slot : slots_) {
      // A machine that runs no call may have made a function value that runs.
      if (!thread || (slot->is_running && slot->thread == *thread))
        code |= tenon_machine_cancel(slot->machine.get());
    }
  }
  check(code);
}

tenon_memory_stats Machines::memory(size_t* count) {
  tenon_memory_stats sum{};
  int code = 0;
  {
    const nb::ft_lock_guard lock(mutex_);
    for (const auto& slot : slots_) {
      tenon_memory_stats one{};
      one.size = sizeof one;
      code |= tenon_machine_memory(slot->machine.get(), &one);
      sum.memory = one.memory;
      sum.allocated += one.allocated;
      sum.peak += one.peak;
      sum.pooled += one.pooled;
      sum.call_peak = std::max(sum.call_peak, one.call_peak);
      sum.call_bytes = std::max(sum.call_bytes, one.call_bytes);
      sum.allocations += one.allocations;
      sum.system_allocations += one.system_allocations;
    }
    *count = slots_.size();
  }
  check(code);
  return sum;
}

void Machines::trim() {
  int code = 0;
  {
    const nb::ft_lock_guard lock(mutex_);
    for (const auto& slot : slots_) {
      if (!slot->is_running) code |= tenon_machine_trim(slot->machine.get());
    }
  }
  check(code);
}

void Machines::set_instrument(nb::object instrument) {
  int code = 0;
  bool is_running = false;
  nb::object old = instrument;  // freed without the lock, since that may run code in Python
  std::map<std::string, Signature, std::less<>> signatures;
  if (!instrument.is_none()) signatures = signatures_of(program_);
  {
    const nb::ft_lock_guard lock(mutex_);
    is_running = std::ranges::any_of(slots_, [](const auto& slot) { return slot->is_running; });
    if (!is_running) {
      std::swap(instrument_, old);
      if (signatures_.empty()) signatures_.swap(signatures);
      for (const auto& slot : slots_) code |= watch(slot->machine, this);
    }
  }
  if (is_running) {
    throw nb::value_error(
        "the instrument can't change while a call runs: set it before the call or after it");
  }
  check(code);
}

std::shared_ptr<Machines> shared_machines(nb::handle instance) {
  if (!nb::inst_ready(instance)) throw nb::type_error("these machines were made without __init__");
  // Not nanobind's conversion, which ends the process where there is no memory.
  PyObject* const owner = instance.inc_ref().ptr();
  return {nb::inst_ptr<Machines>(instance), [owner](Machines*) {
            if (const WithGil acquired{}) Py_DECREF(owner);
          }};
}

void define_machines(nb::module_& m) {
  nb::class_<Machines> c(m, "Machines", nb::type_slots(kSlots),
                         "What tenon.VirtualMachine runs calls on.");
  c.def(
      "__init__",
      [](Machines* self, const Program& program, bool naive, const nb::dict& limits,
         int32_t inter_op) {
        new (self)
            Machines(Program{Value::copy_of(program.value.any()), program.types},
                     naive ? TENON_MEMORY_NAIVE : TENON_MEMORY_POOLED, limits_of(limits), inter_op);
      },
      nb::arg("program"), nb::arg("naive"), nb::arg("limits"), nb::arg("inter_op"),
      nb::sig("def __init__(self, program: Program, naive: bool, limits: dict[str, int], "
              "inter_op: int) -> None"));
  c.def(
      "function",
      [](nb::handle_t<Machines> self, const nb::str& name) {
        const std::shared_ptr<Machines> machines = shared_machines(self);
        return function_of(machines->program(), name, machines->limits(), machines);
      },
      nb::arg("name"), nb::sig("def function(self, name: str) -> Function"));
  c.def("cancel", &Machines::cancel, nb::arg("thread") = nb::none(),
        nb::sig("def cancel(self, thread: int | None = None) -> None"));
  c.def("memory_stats", &memory_stats, nb::sig("def memory_stats(self) -> dict[str, typing.Any]"));
  c.def("trim", &Machines::trim);
  c.def("set_instrument", &Machines::set_instrument, nb::arg("instrument").none(),
        nb::sig("def set_instrument(self, instrument: collections.abc.Callable[..., typing.Any] | "
                "None) -> None"));
}

}  // namespace tenon::python
