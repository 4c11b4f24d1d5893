// What an instrument sees of a machine's calls. Included by tenon/tenon.h.
#pragma once

#include "tenon/cpp/program.h"

namespace tenon {
inline namespace v1 {

/// What a call instruction calls.
enum class CallKind : int32_t {
  function = TENON_CALL_FUNCTION,  ///< a function of the program
  closure = TENON_CALL_CLOSURE,    ///< a function value
  packed = TENON_CALL_PACKED,      ///< a registered function, or one of a library or module
  kernel = TENON_CALL_KERNEL       ///< compiled code, which writes to its last arguments
};

/// What an instrument asks for: Action::skip, before a call, makes the machine not call.
enum class Action : int { proceed = TENON_INSTRUMENT_CONTINUE, skip = TENON_INSTRUMENT_SKIP };

/// A call within a program. Valid only while the instrument runs.
class CallEvent {
 public:
  explicit CallEvent(const tenon_call_event& event) noexcept : event_(event) {}

  CallKind kind() const noexcept { return static_cast<CallKind>(event_.kind); }
  /// Whether the call is about to begin; otherwise it has ended.
  bool before() const noexcept { return event_.before != 0; }
  /// Of the called function; empty for a function value that no program made.
  std::string_view name() const noexcept { return {event_.name.data, event_.name.size}; }
  /// Of the calling function.
  std::string_view caller() const noexcept { return {event_.caller.data, event_.caller.size}; }
  const Value& function() const noexcept {
    return reinterpret_cast<const Value&>(*event_.function);
  }
  std::span<const Value> arguments() const noexcept {
    return {reinterpret_cast<const Value*>(event_.args), static_cast<size_t>(event_.arg_count)};
  }
  /// After a call, its result; None before it.
  const Value& result() const noexcept { return reinterpret_cast<const Value&>(*event_.result); }
  /// Replaces the result, or gives that of a call which is then skipped.
  void set_result(const Value& result) const {
    detail::check(tenon_any_copy(result.raw(), event_.result));
  }

 private:
  const tenon_call_event& event_;
};

namespace detail {

/// Adapts `Action f(const CallEvent&)`, or one that returns void, to the C interface.
template <class F>
struct Instrument {
  static int call(void* context, const tenon_call_event* event) noexcept {
    try {
      F& f = *static_cast<F*>(context);
      const CallEvent seen(*event);
      if constexpr (std::is_void_v<std::invoke_result_t<F&, const CallEvent&>>) {
        f(seen);
        return TENON_INSTRUMENT_CONTINUE;
      } else {
        return static_cast<int>(static_cast<Action>(f(seen)));
      }
    } catch (...) {
      return wait_with_current_exception();
    }
  }
  static void release(void* context) { delete static_cast<F*>(context); }
};

}  // namespace detail
}  // namespace v1
}  // namespace tenon
