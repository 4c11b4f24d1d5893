// Sequences, optional values and maps of ONNX: arrays, options and a data type of graph IR.
//
// ONNX doesn't state the shapes of what they hold, so their types follow from the nodes that make
// them: a sequence's element type is the most precise type of everything that is put into it.
// Nothing is known about what an empty sequence or an absent optional value could hold. Its open
// type has a type variable there, which gives way to any other type when types are joined. What is
// read from it is imaginary: its type is a variable, and so are the types of all results that are
// computed from it. Such variables occur only while the types of a loop's variables are searched
// for; a module has none.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

bool is_sequence(const Operand& x);
bool is_optional(const Operand& x);
// Whether it is the type of a sequence or an optional value.
bool holds_others(const graph::TypeRef& type);
// What a sequence or an optional value of this type holds; throws an assertion for other types.
graph::TypeRef held_type(const graph::TypeRef& type);
graph::TypeRef option_type(const graph::TypeRef& held);

// Whether the value is read from something empty, or computed from such a value, in a block that is
// built only to find types.
bool is_imaginary(const Operand& x);
// One of which nothing is known.
Operand imaginary(graph::Builder& builder);

// The operand's type, open where nothing is known.
graph::TypeRef open_type(const NodeContext& cx, const Operand& x);
// The most precise type of both; null if there is none. An optional value also holds plain ones.
graph::TypeRef join_open(const NodeContext& cx, const graph::TypeRef& a, const graph::TypeRef& b);
// The type with the least precise type in place of each variable, but of imaginary values.
graph::TypeRef closed(const graph::TypeRef& type);
// The type without sizes that mention symbols that are no longer in scope.
graph::TypeRef in_scope(const NodeContext& cx, const graph::TypeRef& type);
// The operand as a value of such a joined type.
Operand as_type(const NodeContext& cx, const Operand& x, const graph::TypeRef& type);

// ---- sequences ----

// An empty sequence for elements of an ONNX type, before anything is known about them.
Operand empty_sequence(const NodeContext& cx, const graph::TypeRef& element);
Operand sequence_of(const NodeContext& cx, const Operands& elements);
// The sequence with an element after the last one.
Operand with_last(const NodeContext& cx, const Operand& sequence, const Operand& element);
// The operands that a short sequence consists of; nullopt if they are known only at run time.
std::optional<Operands> known_elements(const NodeContext& cx, const Operand& sequence);
Operand length_of(const NodeContext& cx, const Operand& sequence);  // an i64 scalar
// The element at an index, an i64 scalar.
Operand element_at(const NodeContext& cx, const Operand& sequence, const Operand& index);

// An array of `count` elements (an i64 scalar), each of the type `element`, made by a loop whose
// variables are its index, the array so far, and those named here. `make` gives the element and the
// next values of the latter. The result is a tuple of all variables.
Operand sequence_by_loop(const NodeContext& cx, const graph::TypeRef& element, const Operand& count,
                         const std::vector<std::string>& names,
                         const std::vector<graph::TypeRef>& types, const Operands& init,
                         const std::function<Operands(const Operands&)>& make);
Operand size_scalar(const NodeContext& cx, const Dim& size);  // an i64 scalar
// A call of a word of the language for functions on values, such as array_push.
Operand word(const NodeContext& cx, std::string_view name, const Operands& args);

// ---- optional values ----

Operand some(const NodeContext& cx, const Operand& x);
Operand none(const NodeContext& cx, const graph::TypeRef& held);
// Whether there is a value: bool[], a constant if it is known. A plain value is always there.
Operand has_value(const NodeContext& cx, const Operand& x);
// The value, which is checked to be there.
Operand value_of(const NodeContext& cx, const Operand& x);

// ---- maps ----
//
// A value of map[K, V] { Map(K, V) }: the keys, a list of integers or strings, and a list of their
// values. A module that has maps declares the type.

bool is_map(const Operand& x);
graph::TypeRef map_type(const graph::TypeRef& keys, const graph::TypeRef& values);
// The type of maps of any size.
graph::TypeRef map_type(DataType key, DataType value);
Ref<const graph::AdtDefinition> map_definition();
// Declares the type of maps to the builder, if it isn't yet.
void declare_maps(graph::Builder& builder);
// Whether that has been done.
bool declares_maps(const graph::Builder& builder);

Operand map_of(const NodeContext& cx, const Operand& keys, const Operand& values);
struct MapParts {
  Operand keys, values;  // of one size
};
MapParts parts_of_map(const NodeContext& cx, const Operand& x);

}  // namespace tenon::onnx
