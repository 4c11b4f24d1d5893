// Functions, modules of functions and libraries. Included by tenon/tenon.h.
#pragma once

#include <filesystem>

#include "tenon/cpp/tensor.h"

namespace tenon {
inline namespace v1 {
namespace detail {

/// `const Value&` for every type: arguments that are Values are borrowed, others converted.
template <class>
struct AsValue {
  using type = const Value&;
};

/// Calls `call(values, count)` with the arguments as a C array.
template <class Call, class... A>
void with_arguments(Call&& call, A&&... args) {
  [&call](typename AsValue<A>::type... held) {
    const tenon_any values[] = {*held.raw()..., TENON_NONE_VALUE};
    call(values, static_cast<int32_t>(sizeof...(A)));
  }(std::forward<A>(args)...);
}

/// The result and parameters of a function pointer, or of a class with one operator() that is no
/// template.
template <class F>
struct Signature {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Result = R;
  using Parameters = std::tuple<A...>;
};
template <class R, class... A>
struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (*)(A...)> {};
template <class F>
requires requires {
  &F::operator();
}
struct Signature<F> : Signature<decltype(&F::operator())> {};

template <class F>
concept TypedCallable = !std::derived_from<F, Value> && requires {
  typename Signature<F>::Result;
};

/// Makes the exception that is being handled this thread's waiting error; returns -1.
inline int wait_with_current_exception() noexcept {
  try {
    std::string message = "an exception that is not a std::exception";
    try {
      throw;
    } catch (const Error& e) {
      tenon_error_restore(e.value().raw());
      return -1;
    } catch (const std::exception& e) {
      message = e.what();
    } catch (...) {
    }
    PassingException& passing = passing_exception();
    passing.set(std::current_exception());
    const ExecutionError error(message, {{PassingException::kMark, passing.mark}});
    tenon_error_restore(error.value().raw());
  } catch (...) {
    tenon_error_set(TENON_ERROR_RUNTIME, "out of memory");
  }
  return -1;
}

/// Adapts a C++ callable to the C interface.
template <class F>
struct Callee {
  using Parameters = typename Signature<F>::Parameters;
  static constexpr size_t kCount = std::tuple_size_v<Parameters>;
  static constexpr bool kTakesAll = std::same_as<Parameters, std::tuple<std::span<const Value>>>;

  static int call(void* context, const tenon_any* args, int32_t n, tenon_any* result) noexcept {
    try {
      const std::span all(reinterpret_cast<const Value*>(args), static_cast<size_t>(n));
      *result = invoke(*static_cast<F*>(context), all).release();
      return 0;
    } catch (...) {
      return wait_with_current_exception();
    }
  }
  static void release(void* context) { delete static_cast<F*>(context); }

 private:
  static Value invoke(F& f, std::span<const Value> args) {
    if constexpr (kTakesAll) {
      return result_of([&] { return f(args); });
    } else {
      if (args.size() != kCount) {
        throw UsageError("wrong number of arguments", {{"found", std::to_string(args.size())},
                                                       {"expected", std::to_string(kCount)}});
      }
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return result_of([&] { return f(argument<I>(args)...); });
      }
      (std::make_index_sequence<kCount>());
    }
  }
  template <class G>
  static Value result_of(G&& g) {
    if constexpr (std::is_void_v<decltype(g())>) {
      g();
      return {};
    } else {
      return g();
    }
  }
  template <size_t I>
  static auto argument(std::span<const Value> args) {
    using T = std::remove_cvref_t<std::tuple_element_t<I, Parameters>>;
    std::optional<T> out = read<T>(args[I]);
    if (!out) {
      fail_conversion<T>(args[I],
                         "argument " + std::to_string(I + 1) + " of " + std::to_string(kCount));
    }
    return *std::move(out);
  }
};

}  // namespace detail

/// A function as a value: of a program, of a library, or a C++ callable. Any number of threads may
/// call it at once.
class Function : public Value {
 public:
  static constexpr const char* kTypeName = "function";
  static bool accepts(const Value& v) noexcept { return v.type_index() == TENON_FUNCTION; }
  static Function unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  Function() = default;
  /// A function that calls a copy of `callable`: a function pointer, or an object with one
  /// operator() that is not a template, such as a lambda. Arguments are converted to the types of
  /// the parameters and checked; a single parameter of type `std::span<const Value>` receives all
  /// arguments. Its exceptions end the call that it is part of and leave that as themselves.
  template <detail::TypedCallable F>
  Function(F callable) {
    auto context = std::make_unique<F>(std::move(callable));
    detail::check(tenon_function_create(&detail::Callee<F>::call, context.get(),
                                        &detail::Callee<F>::release, out()));
    static_cast<void>(context.release());
  }
  template <class R, class... A>
  Function(R (&function)(A...)) : Function(&function) {}

  /// Calls the function: `f(1, "two", tensor).as<Tensor>()`. Throws what the function throws.
  template <class... A>
  Value operator()(A&&... args) const {
    Value result;
    detail::with_arguments(
        [&](const tenon_any* values, int32_t n) {
          detail::check(tenon_function_call(raw(), values, n, result.out()));
        },
        std::forward<A>(args)...);
    return result;
  }
  /// The same with any number of arguments.
  Value call(std::span<const Value> args) const {
    Value result;
    detail::check(tenon_function_call(raw(), reinterpret_cast<const tenon_any*>(args.data()),
                                      static_cast<int32_t>(args.size()), result.out()));
    return result;
  }
  /// Calls a program's function with its results in tensors of the caller, one for each result, or
  /// None for a result to allocate. An output must have the type and shape of its result, be
  /// compact and writable, and overlap neither an argument nor another output. Returns what a call
  /// returns, with the outputs in it. After an error, the elements of the outputs are unspecified.
  template <class... A>
  Value call_into(const std::vector<Value>& outputs, A&&... args) const {
    Value result;
    detail::with_arguments(
        [&](const tenon_any* values, int32_t n) {
          detail::check(tenon_function_call_into(
              raw(), values, n, reinterpret_cast<const tenon_any*>(outputs.data()),
              static_cast<int32_t>(outputs.size()), result.out()));
        },
        std::forward<A>(args)...);
    return result;
  }
  /// A function that calls this one with these arguments, followed by its own.
  template <class... A>
  Function bind(A&&... args) const {
    Function bound;
    detail::with_arguments(
        [&](const tenon_any* values, int32_t n) {
          detail::check(tenon_function_bind(raw(), values, n, bound.out()));
        },
        std::forward<A>(args)...);
    return bound;
  }
  /// Stops the running calls of a program's function with ExecutionError; from any thread. Throws
  /// UsageError for other functions.
  void cancel() const { detail::check(tenon_function_cancel(raw())); }

 private:
  Function(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}
};

/// Callables become functions where a value is wanted.
template <detail::TypedCallable F>
struct Conversion<F> {
  static Value make(F callable) { return Function(std::move(callable)); }
};

struct RegisterOptions {
  bool for_files = false;  ///< untrusted files may link it: it validates every argument
  bool replace = false;    ///< replace an existing function of that name
};
/// Registers a function by name in this process, where programs find it. Throws UsageError for a
/// name that is taken.
///
///   tenon::register_function("host.scale", [](int64_t x) { return 10 * x; });
inline void register_function(const std::string& name, const Function& function,
                              RegisterOptions options = {}) {
  const int32_t flags =
      (options.for_files ? TENON_FOR_FILES : 0) | (options.replace ? TENON_REPLACE : 0);
  detail::check(tenon_function_register(name.c_str(), function.raw(), flags));
}
/// The body of a library's entry point: runs `body` and returns 0, or -1 after an exception, which
/// the load of the library then fails with.
///
///   extern "C" TENON_API int tenon_register_library(void) {
///     return tenon::register_library([] { tenon::register_function("acme.scale", scale); });
///   }
template <class F>
int register_library(F&& body) noexcept {
  try {
    body();
    return 0;
  } catch (...) {
    return detail::wait_with_current_exception();
  }
}
/// The function that is registered under a name. Throws UsageError, which suggests the nearest
/// name, if there is none.
inline Function find_function(const std::string& name) {
  Value out;
  detail::check(tenon_function_find(name.c_str(), out.out()));
  return Function::unchecked(std::move(out));
}
/// The number of threads that the function running now may use.
inline int function_threads() noexcept {
  return tenon_function_threads();
}

/// A set of named functions from one source: a library, a program or this host.
class Module : public Value {
 public:
  static constexpr const char* kTypeName = "module";
  static bool accepts(const Value& v) noexcept { return v.type_index() == TENON_MODULE; }
  static Module unchecked(Value v) noexcept { return {detail::Unchecked{}, std::move(v)}; }

  Module() = default;
  /// A module of this host's functions.
  Module(const std::string& name, const std::map<std::string, Function>& functions) {
    detail::check(tenon_module_create(name.c_str(), Value(functions).raw(), out()));
  }

  /// The names of the module's own functions.
  std::vector<std::string> functions() const {
    Value names;
    detail::check(tenon_module_functions(raw(), names.out()));
    return detail::texts_of(names);
  }
  /// A function of the module or of its imports. Throws UsageError, which lists the functions, for
  /// an unknown name.
  Function operator[](const std::string& name) const {
    Value out;
    detail::check(tenon_module_function(raw(), name.c_str(), out.out()));
    return Function::unchecked(std::move(out));
  }
  /// Adds a module that is searched for functions that this one lacks. Throws UsageError for a
  /// cycle. No other thread may use the module at the same time.
  void import(const Module& other) { detail::check(tenon_module_import(raw(), other.raw())); }

 private:
  Module(detail::Unchecked, Value v) noexcept : Value(std::move(v)) {}
};

/// Loads a library ("tenon_compiler"), once per process, from the runtime's folder or one of
/// `search`, and returns the module of its functions, which are registered, too.
inline Module load_library(const std::string& name,
                           const std::vector<std::filesystem::path>& search = {}) {
  std::vector<const char*> folders;
  folders.reserve(search.size());
  for (const std::filesystem::path& folder : search) folders.push_back(folder.c_str());
  Value out;
  detail::check(tenon_library_load(name.c_str(), folders.data(), folders.size(), out.out()));
  return Module::unchecked(std::move(out));
}

}  // namespace v1
}  // namespace tenon
