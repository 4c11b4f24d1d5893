// The checker verifies that a module follows all rules of graph IR.
#pragma once

#include <string_view>

#include "graph/ir/module.h"
#include "support/error.h"

namespace tenon::graph {

// Throws an Error with the binding's span unless: the module is in A-normal form, variables are
// bound once and before use, symbols are bound before use, operators and their attributes exist,
// types are those that the rules infer, calls match their callee, match arms cover their type, and
// nesting does not exceed kMaxNesting.
void check_module(const Module& module);

// Throws Usage at the span unless a field of the constructor may have the type.
void check_field(const TypeRef& field, std::string_view constructor, const Span& span);

// What an error says of parts of the language that the checker accepts and that are neither
// compiled nor interpreted: "memory on device 1 is ", then this.
inline constexpr char kOnlyChecked[] = "parsed and checked, but not run by this version";

// The error for a kernel, called `what`, that breaks a rule of loop IR. The checks of loop IR
// report it, as `broken`, as a bug of whoever made the kernel, which is here the user.
Error broken_kernel(std::string_view what, const Span& span, const Error& broken);

}  // namespace tenon::graph
