// Errors as exceptions. Included by tenon/tenon.h.
#pragma once

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <memory>

#include "tenon/cpp/value.h"

namespace tenon {
inline namespace v1 {

enum class ErrorKind : int32_t {
  usage = TENON_ERROR_USAGE,              ///< arguments, a model or a program that don't fit
  unsupported = TENON_ERROR_UNSUPPORTED,  ///< something that Tenon doesn't do
  damaged = TENON_ERROR_DAMAGED,          ///< a damaged file
  runtime = TENON_ERROR_RUNTIME,          ///< a call that failed, or that a limit stopped
  internal = TENON_ERROR_INTERNAL         ///< a bug in Tenon
};

/// What every function of this interface throws, as the subclass of its kind. Copies share their
/// contents and don't throw. Visible in libraries that hide their symbols, so that it can be caught
/// in others.
class TENON_API Error : public std::exception {
 public:
  /// A line below the message. The label is "found", "expected", "where", "help", another word,
  /// "at" for a frame of the machine, or "span" for a place in a program's source. One that begins
  /// with a dot is for programs: what() leaves it out. The note adds to the text and is mostly
  /// empty.
  struct Part {
    std::string label, text, note = {};
  };

  /// An error to throw from a function that a program calls.
  Error(ErrorKind kind, const std::string& message, std::initializer_list<Part> parts = {})
      : Error(make(kind, message, parts)) {}
  /// Takes over the reference to an error of the C interface.
  explicit Error(tenon_any error);

  /// The full text, as the command line prints it.
  const char* what() const noexcept override { return state_->text.c_str(); }
  ErrorKind kind() const noexcept { return state_->kind; }
  const std::string& message() const noexcept { return state_->message; }
  /// What was found, what was expected, where, and what to do about it; empty where the error
  /// doesn't say.
  const std::string& found() const noexcept { return part("found"); }
  const std::string& expected() const noexcept { return part("expected"); }
  const std::string& where() const noexcept { return part("where"); }
  const std::string& help() const noexcept { return part("help"); }
  /// What stopped the call or the compilation: "fuel", "deadline", "memory", "depth", "stack" or
  /// "cancel"; empty if it failed by itself.
  const std::string& stopped_by() const noexcept { return part(".stopped_by"); }
  /// The place in a program's source: "FILE:LINE:COLUMN".
  const std::string& span() const noexcept { return part("span"); }
  /// The machine's frames at the time of the error, innermost first.
  std::vector<std::string> frames() const {
    std::vector<std::string> out;
    for (const Part& p : parts()) {
      if (p.label == "at") out.push_back(p.text);
    }
    return out;
  }
  /// All lines below the message, in order, without those of `also`.
  const std::vector<Part>& parts() const noexcept { return state_->parts; }
  /// The text of the first part with this label; empty if there is none.
  const std::string& part(std::string_view label) const noexcept {
    static const std::string none;
    const auto found = std::ranges::find(state_->parts, label, &Part::label);
    return found == state_->parts.end() ? none : found->text;
  }
  /// An error that was reported with this one.
  struct Further {
    std::string message;
    std::vector<Part> parts;
  };
  /// The other errors of a program that has several.
  const std::vector<Further>& also() const noexcept { return state_->also; }
  /// The error as a value.
  const Value& value() const noexcept { return state_->value; }

 private:
  struct State {
    Value value;
    ErrorKind kind;
    std::string message, text;
    std::vector<Part> parts;
    std::vector<Further> also;
  };
  static tenon_any make(ErrorKind kind, const std::string& message,
                        std::initializer_list<Part> parts);

  std::shared_ptr<const State> state_;
};

/// The errors of one kind, so that a `catch` can tell them apart.
template <ErrorKind kKind>
class TENON_API ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message, std::initializer_list<Part> parts = {})
      : Error(kKind, message, parts) {}
  explicit ErrorOf(tenon_any error) : Error(error) {}
};
using UsageError = ErrorOf<ErrorKind::usage>;
using UnsupportedError = ErrorOf<ErrorKind::unsupported>;
using DamagedError = ErrorOf<ErrorKind::damaged>;
using ExecutionError = ErrorOf<ErrorKind::runtime>;
using InternalError = ErrorOf<ErrorKind::internal>;

namespace detail {

/// An exception that left a C++ function which Tenon called, until the call into Tenon returns. A
/// part of the error that stands for it meanwhile, `kMark`, has the same mark.
struct PassingException {
  static constexpr const char* kMark = ".c++";
  std::exception_ptr exception;
  std::string mark;
  uint64_t count = 0;  // of the thread's exceptions so far

  void set(std::exception_ptr thrown) {
    exception = std::move(thrown);
    mark = std::to_string(reinterpret_cast<uintptr_t>(this)) + "-" + std::to_string(++count);
  }
};
TENON_API inline PassingException& passing_exception() {
  static thread_local PassingException passing;
  return passing;
}

/// Throws the thread's waiting error, or the exception that it stands for.
[[noreturn]] inline void throw_waiting() {
  Value error;
  tenon_error_take(error.out());
  PassingException& passing = passing_exception();
  if (passing.exception) {
    const Error raised = Error(Value(error).release());
    if (raised.part(PassingException::kMark) == passing.mark) {
      std::rethrow_exception(std::exchange(passing.exception, nullptr));
    }
  }
  switch (tenon_error_kind(error.raw())) {
    case TENON_ERROR_USAGE:
      throw UsageError(error.release());
    case TENON_ERROR_UNSUPPORTED:
      throw UnsupportedError(error.release());
    case TENON_ERROR_DAMAGED:
      throw DamagedError(error.release());
    case TENON_ERROR_RUNTIME:
      throw ExecutionError(error.release());
    default:
      throw InternalError(error.release());
  }
}

/// Throws unless a function of the C interface returned 0.
inline void check(int code) {
  if (code != 0) [[unlikely]] {
    throw_waiting();
  }
}

inline std::string text_of(const Value& value) {
  const tenon_text text = tenon_string_view(value.raw());
  return text.data ? std::string(text.data, text.size) : std::string();
}
inline Value value_of(std::string_view text) {
  Value out;
  check(tenon_string_create(text.data(), text.size(), out.out()));
  return out;
}
inline Value array_of(const Value* items, size_t size) {
  Value out;
  check(tenon_array_create(reinterpret_cast<const tenon_any*>(items), size, out.out()));
  return out;
}
inline Value array_of(const std::vector<Value>& items) {
  return array_of(items.data(), items.size());
}
inline Value element(const Value& array, size_t index) {
  Value out;
  check(tenon_array_get(array.raw(), index, out.out()));
  return out;
}
inline std::vector<std::string> texts_of(const Value& array) {
  std::vector<std::string> out;
  const int64_t size = tenon_array_size(array.raw());
  for (int64_t i = 0; i < size; ++i) out.push_back(text_of(element(array, static_cast<size_t>(i))));
  return out;
}

}  // namespace detail

inline tenon_any Error::make(ErrorKind kind, const std::string& message,
                             std::initializer_list<Part> parts) {
  std::vector<Value> rows;
  for (const Part& p : parts) {
    const Value row[] = {detail::value_of(p.label), detail::value_of(p.text),
                         detail::value_of(p.note)};
    rows.push_back(detail::array_of(row, 3));
  }
  const Value array = detail::array_of(rows);
  Value out;
  detail::check(
      tenon_error_create(static_cast<int32_t>(kind), message.c_str(), array.raw(), out.out()));
  return out.release();
}

inline Error::Error(tenon_any owned) {
  Value error = Value::adopt(owned);
  auto state = std::make_shared<State>();
  state->kind = static_cast<ErrorKind>(tenon_error_kind(error.raw()));
  const tenon_text message = tenon_error_message(error.raw());
  if (message.data) state->message.assign(message.data, message.size);
  Value text, parts;
  detail::check(tenon_error_text(error.raw(), text.out()));
  state->text = detail::text_of(text);
  detail::check(tenon_error_parts(error.raw(), parts.out()));
  const int64_t size = tenon_array_size(parts.raw());
  for (int64_t i = 0; i < size; ++i) {
    std::vector<std::string> row = detail::texts_of(detail::element(parts, static_cast<size_t>(i)));
    if (row.at(0) == "error") {
      state->also.push_back({std::move(row.at(1)), {}});
      continue;
    }
    std::vector<Part>& own = state->also.empty() ? state->parts : state->also.back().parts;
    own.push_back({std::move(row.at(0)), std::move(row.at(1)), std::move(row.at(2))});
  }
  state->value = std::move(error);
  state_ = std::move(state);
}

inline std::string Value::type_key() const {
  Value key;
  detail::check(tenon_type_key(raw(), key.out()));
  return detail::text_of(key);
}
inline std::string Value::repr() const {
  Value text;
  detail::check(tenon_any_repr(raw(), text.out()));
  return detail::text_of(text);
}
inline std::vector<std::string> Value::fields() const {
  Value names;
  detail::check(tenon_object_fields(raw(), names.out()));
  return detail::texts_of(names);
}
inline Value Value::field(const std::string& name) const {
  Value out;
  detail::check(tenon_object_field(raw(), name.c_str(), out.out()));
  return out;
}

}  // namespace v1
}  // namespace tenon
