// A module that a host builds, and the packed functions (functions.def) for it as a whole; those
// for the function that is being built are in build_functions.h.
#pragma once

#include <optional>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/ir/text.h"
#include "object/array.h"

namespace tenon::driver {

// What texts define for the module, and its functions, which are built one after the other.
struct BuilderObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::CompilerBuilder;
  static constexpr int32_t kTypeLast = kTypeIndex;

  graph::Definitions defined;  // by texts
  Map<String, graph::TypeRef> declared;
  graph::Signatures known;                    // what its functions may name
  Map<String, graph::FunctionRef> functions;  // that are built

  std::optional<graph::Builder> function;  // the one that is being built
  Array<String> type_params;               // its
};
using BuilderRef = Ref<BuilderObj>;

// Registers this file's types, so that messages can name them. May be called repeatedly.
void register_build_types();

// Throws Usage if the builder is none.
BuilderObj& module_of(const BuilderRef& builder);
// The builder of the function, which begins unless one is being built.
graph::Builder& builder_of(const BuilderRef& builder);
// The name of a function as the module has it: "std/list.map" for "l.map".
String full_name(const BuilderObj& module, const String& function);
// The type, or that of the text, which may name what the module defines.
graph::TypeRef type_of_value(const BuilderRef& builder, const Any& type);
std::vector<graph::TypeRef> types_of(const BuilderRef& builder, const Array<Any>& types);

BuilderRef build_begin();
void build_import(const BuilderRef& builder, const String& file, const String& name,
                  const Any& options);
void build_define(const BuilderRef& builder, const String& text);
void build_declare(const BuilderRef& builder, const String& function, const Any& type);
void build_type_param(const BuilderRef& builder, const String& name);
void build_finish(const BuilderRef& builder, const String& name, const Any& result,
                  const Any& attributes);
void build_discard(const BuilderRef& builder);
graph::Module build_module(const BuilderRef& builder);

}  // namespace tenon::driver
