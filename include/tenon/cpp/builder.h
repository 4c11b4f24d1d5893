// Building modules from C++. Included by tenon/tenon.h.
#pragma once

#include "tenon/cpp/compiler.h"

namespace tenon {
inline namespace v1 {
namespace ir {

/// An object of a type that has fields, such as "graph.Match".
inline Value node(std::string_view type_key, const Map& fields) {
  return detail::compiler_function("tenon.build_node")(type_key, fields);
}
/// A type from its text: "tensor[n, 4; f32]", "fn(i64) -> i64".
inline Value type(std::string_view text) {
  return detail::compiler_function("tenon.build_type")(text);
}

/// An arm of a match. The pattern is `Node(l, x, _)`, `(a, None)`, a number, `true`, `false`, a
/// variable's name or `_`; `build(Array variables)` gets the variables of the pattern, in order.
struct Arm {
  template <class Build>
  Arm(std::string_view arm_pattern, Build build_arm)
      : pattern(arm_pattern), build(Function([build_arm](const Array& variables) {
          if constexpr (std::is_invocable_v<Build>) {
            return Value(build_arm());
          } else {
            return Value(build_arm(variables));
          }
        })) {}

  std::string pattern;
  Function build;
};

/// A variable of a loop.
struct LoopVariable {
  std::string name;
  Value type;  ///< text or a type
  Value init;
};
struct FunctionOptions {
  bool exported = true;                   ///< if not, hosts can't call it
  bool inlined = true;                    ///< if not, its calls stay calls
  std::vector<std::string> results = {};  ///< the names of the results
};

/// Builds a module, one function after the other:
///
///   ir::Builder b;
///   Value x = b.param("x", "tensor[n, 4; f32]");
///   Value y = b.op("reshape", {x}, {{"shape", Array{"2*n", 2}}});
///   b.finish("main", b.op("add", {y, y}));
///   Program program = compile(b.module());
///
/// A function begins with the first parameter or operand after `finish`, and may call those before
/// it, itself if it is declared, and what texts define.
///
/// Operands are what these functions return; numbers, shapes and tensors become constants, and None
/// leaves out an optional operand. Where a type is known, as of an argument, a field or a loop's
/// variable, a number is a scalar of it and an Array becomes a tuple. Types and sizes are values,
/// or text as in the language. A mistake is a UsageError of the function that makes it. One thread
/// at a time may use a builder.
class Builder {
 public:
  /// Adds what a text in the language defines: data types, functions, kernels.
  ///
  ///   b.define("type tree[T] { Leaf, Node(tree[T], T, tree[T]) }");
  void define(std::string_view text) { call("tenon.build_define", text); }
  /// Makes the data types and functions of a file known: after `b.import_("std/list.tn", "l")`,
  /// `b.call_function("l.map", {f, xs})` calls its function `map`. Other files lie in the current
  /// folder or in those of the option "import_path", or below them.
  void import_(std::string_view file, std::string_view name, const Map& options = {}) {
    call("tenon.build_import", file, name, options);
  }
  /// Declares a function that is built later with this type, so that it and others can call it:
  /// `b.declare("length", "fn[T](list[T]) -> i64")`.
  void declare(std::string_view name, const Value& function_type) {
    call("tenon.build_declare", name, function_type);
  }
  /// A type parameter of the function, which types in its text may name: `b.type_param("T")`.
  void type_param(std::string_view name) { call("tenon.build_type_param", name); }
  /// A parameter of the function; before anything else.
  Value param(std::string_view name, const Value& type) {
    return call("tenon.build_param", name, type);
  }
  /// Calls an operator (docs/operators.md). One with several results returns a tuple.
  Value op(std::string_view name, const Array& operands, const Map& attributes = {}) {
    return call("tenon.build_op", name, operands, attributes);
  }
  static Value constant(const Value& value) {
    return detail::compiler_function("tenon.build_constant")(value);
  }
  /// Calls a function of the module. `type_arguments` are needed where the operands don't determine
  /// them: `b.call_function("none", {}, {"i64"})` for `fn @none[T]() -> option[T]`.
  Value call_function(std::string_view function, const Array& operands,
                      const Array& type_arguments = {}) {
    return call("tenon.build_call", function, operands, type_arguments);
  }
  /// Calls a registered function whose result has this type.
  Value call_packed(std::string_view function, const Array& operands, const Value& result_type) {
    return call("tenon.build_call_packed", function, operands, result_type);
  }
  /// A value of a data type. `type` is needed where the fields don't determine its type arguments:
  /// `b.construct("Nil", {}, "list[i64]")`.
  Value construct(std::string_view constructor, const Array& fields, const Value& type = {}) {
    return call("tenon.build_construct", constructor, fields, type);
  }
  /// The first arm whose pattern fits:
  ///
  ///   b.match(t, {{"Leaf", [] { return 0; }},
  ///               {"Node(_, x, _)", [&](const Array& v) { return v[0]; }}});
  Value match(const Value& value, const std::vector<Arm>& arms) {
    std::vector<Value> patterns, functions;
    for (const Arm& arm : arms) {
      patterns.emplace_back(arm.pattern);
      functions.emplace_back(arm.build);
    }
    return call("tenon.build_match", value, patterns, functions);
  }
  /// A function of the module as a value, with its first arguments.
  Value function_value(std::string_view function, const Array& arguments = {},
                       const Array& type_arguments = {}) {
    return call("tenon.build_closure", function, arguments, type_arguments);
  }
  /// An array of elements of that type. Words such as `array_get` are operators of `op`.
  Value array(const Value& element_type, const Array& elements) {
    return call("tenon.build_array", element_type, elements);
  }
  /// A size as an i64: `b.size("2*n")`.
  Value size(const Value& size) { return call("tenon.build_size", size); }
  /// A scalar constant: `Builder::scalar("f32", 0.5)`.
  static Value scalar(std::string_view dtype, const Value& value) {
    return detail::compiler_function("tenon.build_scalar")(dtype, value);
  }
  /// Calls a function value.
  Value call_closure(const Value& closure, const Array& operands) {
    return call("tenon.build_call_closure", closure, operands);
  }
  Value tuple(const Array& fields) { return call("tenon.build_tuple", fields); }
  /// A field of a tuple, counted from 0.
  Value field(const Value& tuple, int index) { return call("tenon.build_field", tuple, index); }
  /// Checks a tensor's sizes and binds the new symbols among them.
  Value match_shape(const Value& value, const Array& sizes) {
    return call("tenon.build_match_shape", value, sizes);
  }
  /// The same for the elements of a small integer tensor, a shape or an integer.
  Value match_elements(const Value& value, const Array& sizes) {
    return call("tenon.build_match_elements", value, sizes);
  }
  /// Checks two sizes at run time: "equal", "less_equal" or "broadcast".
  void check(std::string_view kind, const Value& left, const Value& right,
             std::string_view message) {
    call("tenon.build_check", kind, left, right, message);
  }
  /// An if; the functions build the arms and return their results.
  template <class Then, class Else>
  Value if_(const Value& condition, Then then, Else otherwise) {
    return call("tenon.build_if", condition, Function(then), Function(otherwise));
  }
  /// A loop: `condition(Array variables)` builds a boolean, and `body(Array variables)` the next
  /// value, or a tuple of the next values.
  template <class Condition, class Body>
  Value loop(const std::vector<LoopVariable>& variables, Condition condition, Body body) {
    std::vector<Value> names, types, init;
    for (const LoopVariable& v : variables) {
      names.emplace_back(v.name);
      types.push_back(v.type);
      init.push_back(v.init);
    }
    return call("tenon.build_loop", names, types, init, Function(condition), Function(body));
  }
  /// A function literal: `body(Array parameters)` builds its result. Unless `self` is empty, the
  /// literal itself is the last parameter.
  template <class Body>
  Value function(std::string_view self, const std::vector<std::string>& names, const Array& types,
                 const Value& result_type, Body body) {
    return call("tenon.build_function", self, names, types, result_type, Function(body));
  }
  /// Binds any right-hand side, such as one of `node`.
  Value bind(const Value& value, std::string_view name) {
    return call("tenon.build_bind", value, name);
  }
  /// Sets the source node of what follows, for errors and profiles.
  void at(std::string_view node) { call("tenon.build_at", node); }

  /// Ends the function; its result is one operand, or a tuple of several. What is built next begins
  /// another.
  void finish(std::string_view name, const Value& result, const FunctionOptions& options = {}) {
    std::vector<Map::Entry> attributes;
    if (!options.exported) attributes.emplace_back("export", false);
    if (!options.inlined) attributes.emplace_back("inline", false);
    if (!options.results.empty()) attributes.emplace_back("results", options.results);
    call("tenon.build_finish", name, result, Map(attributes));
  }
  /// Drops the function that is being built, such as after a mistake.
  void discard() { call("tenon.build_discard"); }
  /// The module of the functions that were built or defined, checked. Throws UsageError if one was
  /// only declared.
  Module module() const { return call("tenon.build_module").as<Module>(); }

 private:
  template <class... A>
  Value call(const char* function, A&&... args) const {
    return detail::compiler_function(function)(builder_, std::forward<A>(args)...);
  }

  Value builder_ = detail::compiler_function("tenon.build_begin")();
};

}  // namespace ir
}  // namespace v1
}  // namespace tenon
