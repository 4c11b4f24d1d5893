// Registers the implementations of library functions with their signatures:
//
//   add_typed(functions, signature("vm.array_get"), element);
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "library/signatures/signatures.h"
#include "object/array.h"
#include "object/registry.h"
#include "object/shape.h"
#include "object/tensor.h"

namespace tenon::library {

// What the registry keeps of a signature. It is a constant, so that a library that registers
// functions does not contain the table.
struct Registrant {
  consteval Registrant(const Signature& signature)
      : name(signature.name),
        flags{.for_files = signature.for_files, .prepares = signature.prepares} {}
  std::string_view name;
  FunctionFlags flags;
};

// Registers the function with its signature, as in `add(functions, signature("vm.array_get"), f)`.
inline void add(Registration& to, const Registrant& registrant, Function function) {
  to.add(registrant.name, std::move(function), registrant.flags);
}

// The types that parameters of C++ functions have; a byte each, for checks.
enum class ArgumentType : uint8_t { Any, Int, Tensor, Array, Shape, String };

// Calls `f` with a null pointer to the C++ type.
template <class F>
auto with_type(ArgumentType type, const F& f) {
  switch (type) {
    case ArgumentType::Int:
      return f(static_cast<int64_t*>(nullptr));
    case ArgumentType::Tensor:
      return f(static_cast<Tensor*>(nullptr));
    case ArgumentType::Array:
      return f(static_cast<Array<Any>*>(nullptr));
    case ArgumentType::Shape:
      return f(static_cast<Shape*>(nullptr));
    case ArgumentType::String:
      return f(static_cast<String*>(nullptr));
    case ArgumentType::Any:
      break;
  }
  return f(static_cast<Any*>(nullptr));
}

// The type's place in the list above; another C++ type doesn't compile.
template <class T>
consteval ArgumentType argument_type() {
  if (std::is_same_v<T, Any>) return ArgumentType::Any;
  if (std::is_same_v<T, int64_t>) return ArgumentType::Int;
  if (std::is_same_v<T, Tensor>) return ArgumentType::Tensor;
  if (std::is_same_v<T, Array<Any>>) return ArgumentType::Array;
  if (std::is_same_v<T, Shape>) return ArgumentType::Shape;
  if (std::is_same_v<T, String>) return ArgumentType::String;
  throw "no ArgumentType";
}

// A function object for a function without state. One type, and one `call`, serve all of them, so
// that each costs little code.
struct PlainFunction : FunctionObj {
  // Calls `body`, which `invoke` knows the type of, with arguments that were checked.
  void (*invoke)(const PlainFunction& f, const AnyView* args, Any* result) = nullptr;
  void (*body)() = nullptr;
  std::span<const ArgumentType> params;
  std::string_view name;
};

namespace detail {

[[gnu::noinline]] inline int call_plain(void* self, const AnyView* args, int32_t n, Any* result) {
  try {
    const auto& f = *static_cast<PlainFunction*>(static_cast<FunctionObj*>(self));
    const auto wanted = static_cast<int32_t>(f.params.size());
    if (n != wanted) tenon::detail::fail_count(f.name, wanted, n);
    for (int32_t i = 0; i < n; ++i) {
      with_type(f.params[static_cast<size_t>(i)], [&]<class T>(T*) {
        if (AnyTraits<T>::is(args[i])) return;
        tenon::detail::fail_argument(f.name, i, AnyTraits<T>::name(), args[i]);
      });
    }
    f.invoke(f, args, result);
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

// A checked argument as the parameter's type.
template <class A>
decltype(auto) argument_as(const AnyView& arg) {
  using T = std::remove_cvref_t<A>;
  if constexpr (std::is_reference_v<A> && std::is_base_of_v<Handle, T>) {
    return payload_as<T>(arg);
  } else {
    return AnyTraits<T>::get(arg);
  }
}

template <class Result, class... Args>
void invoke_plain(const PlainFunction& f, const AnyView* args, Any* result) {
  const auto body = reinterpret_cast<Result (*)(Args...)>(f.body);
  [&]<size_t... I>(std::index_sequence<I...>) {
    (void)args;  // of a function without parameters
    if constexpr (std::is_void_v<Result>) {
      (void)result;
      body(argument_as<Args>(args[I])...);
    } else {
      *result = Any(body(argument_as<Args>(args[I])...));
    }
  }
  (std::index_sequence_for<Args...>());
}

}  // namespace detail

// The types of the parameters of these C++ types.
template <class... Args>
inline constexpr std::array<ArgumentType, sizeof...(Args)> kArgumentTypes = {
    argument_type<std::remove_cvref_t<Args>>()...};

[[gnu::noinline]] inline void add_plain(Registration& to, const Registrant& registrant,
                                        decltype(PlainFunction::invoke) invoke,
                                        std::span<const ArgumentType> params,
                                        void (*body)() = nullptr) {
  auto made = make<PlainFunction>();
  made->call = &detail::call_plain;
  made->invoke = invoke;
  made->body = body;
  made->params = params;
  made->name = registrant.name;
  add(to, registrant, Function::adopt(std::move(made)));
}

// The same for a C++ function, whose arguments are checked and converted as by
// Function::from_typed.
template <class Result, class... Args>
void add_typed(Registration& to, const Registrant& registrant, Result (*body)(Args...)) {
  add_plain(to, registrant, &detail::invoke_plain<Result, Args...>, kArgumentTypes<Args...>,
            reinterpret_cast<void (*)()>(body));
}

}  // namespace tenon::library
