// Function: a callable value, and the convention by which everything is called.
//
//   int call(void* self, const AnyView* args, int32_t n, Any* result)
//
// `self` is the function object. Arguments are borrowed for the call. The caller passes None in
// `result` and owns the value stored there. Non-zero means that the thread's waiting error is set.
// No C++ exception crosses a call.
//
//   object: header, byte 24 call, 32 null (tvm-ffi's cell), 40 fields of our own
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>

#include "object/any.h"
#include "object/string.h"

namespace tenon {

using PackedCall = int (*)(void* self, const AnyView* args, int32_t n, Any* result);

namespace vm {
struct SignatureType;  // vm/isa/signature.h
}
struct FunctionObj;

// What a program's function value says of itself. Borrowed from the value.
struct FunctionInfo {
  std::string_view (*name)(const FunctionObj& self);
  const vm::SignatureType& (*result)(const FunctionObj& self);  // null: its type isn't known
};

struct FunctionObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Function;
  static constexpr int32_t kTypeLast = kTypeIndex;
  PackedCall call = nullptr;
  void* cpp_call = nullptr;  // used between tvm-ffi's own functions; never read
  // Past the published cell. All our functions share one deleter, so that it identifies them; it
  // calls the type's own.
  void (*type_deleter)(void* self, int flags) = nullptr;

  bool is_ours() const { return deleter == &delete_function; }
  const FunctionInfo* info = nullptr;  // null for functions that aren't a program's
  // Out of line, so that it has the same address in every shared object.
  static void delete_function(void* self, int flags);
};

// The name of a function value; empty for one that has none, and for any other value.
std::string_view name_of(const AnyView& function);

// Sets the thread's waiting error. If there is no memory for it, an out-of-memory error waits
// instead.
void set_error(const Error& error) noexcept;
void set_error(ErrorKind kind, std::string_view message) noexcept;
// Takes the waiting error; an Internal error if a call failed without setting one.
Error take_error() noexcept;
bool has_error() noexcept;
// Sets the exception being handled in a catch block as the waiting error; returns -1.
int set_current_exception() noexcept;

// An error as an object: kind, message and backtrace at tvm-ffi's offsets, followed by our Error.
struct ErrorObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Error;
  static constexpr int32_t kTypeLast = kTypeIndex;
  StringCell kind{}, message{}, backtrace{};
  void (*update_backtrace)(void* self, const StringCell* backtrace, int32_t mode) = nullptr;
  Object* cause_chain = nullptr;    // owned; used by tvm-ffi
  Object* extra_context = nullptr;  // owned; used by tvm-ffi
  // Past the published cell: only in our objects.
  std::shared_ptr<const Error> error;
  std::string kind_text, message_text, backtrace_text;

  ~ErrorObj();
  bool is_ours() const { return deleter == &delete_object<ErrorObj>; }
  static Ref<ErrorObj> of(const Error& e);
};
// The Error in an error object of ours, or one that describes a foreign one.
Error error_of(const ErrorObj& object);
Ref<ErrorObj> take_error_object() noexcept;
void set_error_object(Ref<ErrorObj> object) noexcept;

namespace detail {

template <class F>
struct Closure : FunctionObj {
  F body;
  explicit Closure(F f) : body(std::move(f)) {}
};

// Runs `body(args, n, result)`, and sets what it throws as the waiting error.
template <class F>
int call_closure(void* self, const AnyView* args, int32_t n, Any* result) {
  try {
    static_cast<Closure<F>*>(static_cast<FunctionObj*>(self))->body(args, n, result);
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R(A...)> {
  using Result = R;
  using Args = std::tuple<A...>;
};
template <class R, class... A>
struct Signature<R (*)(A...)> : Signature<R(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R(A...)> {};

[[noreturn]] void fail_count(std::string_view name, int32_t wanted, int32_t n);
[[noreturn]] void fail_argument(std::string_view name, int32_t i, const std::string& wanted,
                                const AnyView& found);

// Converts an argument to its parameter's type. A `const Handle&` refers to the argument in place,
// without touching its reference count.
template <class A>
decltype(auto) unpack(std::string_view name, const AnyView* args, int32_t i) {
  using T = std::remove_cvref_t<A>;
  if (!AnyTraits<T>::is(args[i])) [[unlikely]] {
    fail_argument(name, i, AnyTraits<T>::name(), args[i]);
  }
  if constexpr (std::is_reference_v<A> && (std::is_base_of_v<Handle, T>)) {
    return payload_as<T>(args[i]);
  } else {
    return AnyTraits<T>::get(args[i]);
  }
}

}  // namespace detail

class Function : public Handle {
 public:
  Function() = default;
  explicit Function(Ref<Object> r) { ref_ = std::move(r); }

  // From an object of a type derived from FunctionObj, whose `call` is set.
  template <class T>
  static Function adopt(Ref<T> made) {
    made->type_deleter = made->deleter;
    made->deleter = &FunctionObj::delete_function;
    return Function(Ref<Object>(std::move(made)));
  }
  // From `void(const AnyView* args, int32_t n, Any* result)`, which may throw.
  template <class F>
  static Function from_packed(F body) {
    auto made = make<detail::Closure<F>>(std::move(body));
    made->call = &detail::call_closure<F>;
    return adopt(std::move(made));
  }
  // From any callable with a single signature. Arguments are checked and converted; a mismatch is a
  // Usage error that names the function and the argument. Take handles by `const&`, which avoids
  // reference counting. A name that outlives the function need not be copied: Name is a
  // string_view.
  template <class Name = std::string, class F>
  static Function from_typed(F body, std::type_identity_t<Name> name = {}) {
    using S = detail::Signature<std::remove_cvref_t<F>>;
    return from_packed([body = std::move(body), name = std::move(name)](const AnyView* args,
                                                                        int32_t n, Any* result) {
      constexpr int32_t wanted = std::tuple_size_v<typename S::Args>;
      if (n != wanted) [[unlikely]]
        detail::fail_count(name, wanted, n);
      apply<typename S::Result, typename S::Args>(body, name, args, result,
                                                  std::make_index_sequence<wanted>());
    });
  }
  // A C function with a context. `release`, which may be null, frees the context when the function
  // is destroyed. Results are admitted, since they come from outside.
  static Function from_c(PackedCall call, void* context, void (*release)(void* context));

  FunctionObj* get() const { return static_cast<FunctionObj*>(ref_.get()); }
  // The bare call: returns 0, or sets the waiting error.
  int call(const AnyView* args, int32_t n, Any* result) const {
    return get()->call(get(), args, n, result);
  }
  // Calls the function, and throws its error.
  Any operator()(const auto&... args) const {
    // Arguments that only an Any can hold (std::string) are owned by `held` during the call.
    std::array<AnyView, sizeof...(args) + 1> views;
    std::array<Any, sizeof...(args) + 1> held;
    int32_t n = 0;
    (place(views, held, n, args), ...);
    Any result;
    if (call(views.data(), n, &result) != 0) [[unlikely]]
      throw take_error();
    return result;
  }

  static bool accepts(const AnyView& a) {
    return a.type_index == TypeIndex::Function || a.is_none();
  }
  static std::string type_text() { return "function"; }

 private:
  template <class V, class H, class T>
  static void place(V& views, H& held, int32_t& n, const T& value) {
    if constexpr (std::is_base_of_v<AnyView, T>) {
      views[static_cast<size_t>(n)] = value;
    } else if constexpr (requires(AnyView a) { AnyTraits<T>::put(a, value); }) {
      AnyTraits<T>::put(views[static_cast<size_t>(n)], value);
    } else {
      held[static_cast<size_t>(n)] = Any(value);
      views[static_cast<size_t>(n)] = held[static_cast<size_t>(n)];
    }
    ++n;
  }
  template <class R, class Args, class F, size_t... I>
  static void apply(const F& body, std::string_view name, const AnyView* args, Any* result,
                    std::index_sequence<I...>) {
    (void)name, (void)args;
    auto& f = const_cast<F&>(body);
    if constexpr (std::is_void_v<R>) {
      f(detail::unpack<std::tuple_element_t<I, Args>>(name, args, I)...);
      (void)result;
    } else {
      *result = Any(f(detail::unpack<std::tuple_element_t<I, Args>>(name, args, I)...));
    }
  }
};

}  // namespace tenon
