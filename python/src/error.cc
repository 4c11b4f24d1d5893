#include "python/src/error.h"

#include <nanobind/stl/string.h>

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "python/src/value.h"

namespace tenon::python {
namespace {

// An exception of a callback, and the message of the error that stands for it.
struct Raised {
  nb::object exception;
  std::string message;
};
// The one that a callback on this thread raised last, until it is raised again. Not freed at the
// thread's end, which may come after the interpreter's.
constinit thread_local Raised* last_raised = nullptr;

std::string_view message_of(const Value& error) {
  const tenon_text text = tenon_error_message(error.get());
  return {text.data, text.size};
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

nb::object text_of(const Value& error) {
  Value text;
  if (tenon_error_text(error.get(), text.out()) != 0) return nb::none();
  return to_python(std::move(text));
}

}  // namespace

void raise_waiting() {
  Value error;
  tenon_error_take(error.out());
  const nb::module_ errors = nb::module_::import_("tenon._errors");
  Value parts;
  if (tenon_error_parts(error.get(), parts.out()) != 0) {
    PyErr_SetString(PyExc_SystemError, "a function of Tenon failed without an error");
    throw nb::python_error();
  }
  nb::object exception;
  const nb::object fields = to_python(std::move(parts));
  if (last_raised && last_raised->message == message_of(error)) {
    const std::unique_ptr<Raised> own(std::exchange(last_raised, nullptr));
    exception = std::move(own->exception);
    errors.attr("_add_frames")(exception, fields);
  } else {
    exception = errors.attr("_make")(tenon_error_kind(error.get()), text_of(error), fields);
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
  std::string message = Py_TYPE(exception.ptr())->tp_name;
  try {
    const std::string text = nb::cast<std::string>(nb::str(exception));
    if (!text.empty()) message += ": " + text.substr(0, text.find('\n'));
  } catch (...) {  // its own __str__ fails
  }
  // Of tenon.Error; an exception of somebody else's may have anything under that name.
  int32_t kind = TENON_ERROR_RUNTIME;
  nb::try_cast(nb::getattr(exception, "_kind", nb::none()), kind);
  tenon_error_set(kind, message.c_str());
  const std::unique_ptr<Raised> before(
      std::exchange(last_raised, new (std::nothrow) Raised{exception, message.c_str()}));
}

}  // namespace tenon::python
