#include "python/src/error.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "python/src/nanobind.h"
#include "python/src/value.h"

namespace tenon::python {
namespace {

// An exception of a callback, and the mark of the error that stands for it.
struct Raised {
  nb::object exception;
  std::string mark;
};
constexpr std::string_view kMark = ".python";  // the label of the part that has the mark
// The one that a callback on this thread raised last, until it is raised again. Not freed at the
// thread's end, which may come after the interpreter's.
constinit thread_local Raised* last_raised = nullptr;

bool is_marked(const nb::handle& parts, const std::string& mark) {
  for (nb::handle part : parts) {
    if (nb::cast<std::string_view>(part[0]) == kMark && nb::cast<std::string_view>(part[1]) == mark)
      return true;
  }
  return false;
}

// An error with that mark as the thread's waiting one.
void wait_marked(int32_t kind, const std::string& message, const std::string& mark) {
  const nb::tuple part = nb::make_tuple(nb::str(kMark.data(), kMark.size()), mark, "");
  const Value parts = to_value(nb::make_tuple(part));
  Value error;
  check(tenon_error_create(kind, message.c_str(), parts.get(), error.out()));
  check(tenon_error_restore(error.get()));
}

PyObject* class_of(nb::exception_type type) {
  switch (type) {
    case nb::exception_type::buffer_error:
      return PyExc_BufferError;
    case nb::exception_type::value_error:
      return PyExc_ValueError;
    case nb::exception_type::index_error:
      return PyExc_IndexError;
    case nb::exception_type::key_error:
      return PyExc_KeyError;
    case nb::exception_type::attribute_error:
      return PyExc_AttributeError;
    case nb::exception_type::import_error:
      return PyExc_ImportError;
    default:
      return PyExc_TypeError;
  }
}

}  // namespace

void raise_waiting() {
  Value error;
  tenon_error_take(error.out());
  const nb::module_ errors = nb::module_::import_("tenon._errors");
  if (tenon_error_kind(error.get()) < 0) {
    PyErr_SetString(PyExc_SystemError, "a function of Tenon failed without an error");
    throw nb::python_error();
  }
  Value parts, text;
  if (tenon_error_parts(error.get(), parts.out()) != 0 ||
      tenon_error_text(error.get(), text.out()) != 0)
    throw std::bad_alloc();
  nb::object exception;
  const nb::object fields = to_python(std::move(parts));
  if (last_raised && is_marked(fields, last_raised->mark)) {
    const std::unique_ptr<Raised> own(std::exchange(last_raised, nullptr));
    exception = std::move(own->exception);
    errors.attr("_add_frames")(exception, fields);
  } else {
    const tenon_text message = tenon_error_message(error.get());
    exception =
        errors.attr("_make")(tenon_error_kind(error.get()), nb::str(message.data, message.size),
                             to_python(std::move(text)), fields);
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

void raise_current() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (nb::builtin_exception& e) {
    PyErr_SetString(class_of(e.type()), e.what());
  } catch (std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

void wait_with_raised() noexcept {
  const nb::python_error caught;  // takes it
  const nb::object exception = nb::borrow(caught.value());
  const char* const type_name = Py_TYPE(exception.ptr())->tp_name;
  std::string message;
  try {
    message = type_name;
    const std::string text = string_of(nb::str(exception));
    if (!text.empty()) message += ": " + text.substr(0, text.find('\n'));
  } catch (...) {  // its own __str__ fails, or there is no memory
  }
  // Of tenon.Error; an exception of somebody else's may have anything under that name.
  int32_t kind = TENON_ERROR_RUNTIME;
  nb::try_cast(nb::getattr(exception, "_kind", nb::none()), kind);
  try {
    static std::atomic<uint64_t> count = 0;
    auto raised = std::make_unique<Raised>(exception, std::to_string(++count));
    wait_marked(kind, message, raised->mark);
    const std::unique_ptr<Raised> before(std::exchange(last_raised, raised.release()));
  } catch (...) {  // no memory for all of it
    tenon_error_set(kind, message.empty() ? type_name : message.c_str());
  }
}

}  // namespace tenon::python
