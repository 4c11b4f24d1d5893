// Inference of the type of a right-hand side from the types of its operands. The builder adds
// checks for conditions that inference can't prove; the checker requires that they have been
// checked.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/ir/op.h"
#include "graph/ir/variance.h"

namespace tenon::graph {

struct ConstructorRef {
  const AdtDefinition* adt = nullptr;  // null: unknown
  const Constructor* constructor = nullptr;
  int64_t place = 0;  // among the type's constructors: the tag of its values
};

// The globals that a body may name.
class Signatures {
 public:
  static Signatures of(const Module& module);

  Map<String, TypeRef> functions;  // FunctionType each
  // What follows the @ in the text that names a function, where that isn't its name: "l.map".
  Map<String, String> written;
  std::string shown(const String& function) const;  // "@l.map", for errors
  Map<String, loop::KernelInterfaceRef> kernels;

  // Data types, in addition to the prelude's.
  void add_type(const Ref<const AdtDefinition>& adt);
  const AdtDefinition* find_type(std::string_view name) const;  // null: unknown
  ConstructorRef find_constructor(std::string_view name) const;
  std::vector<std::string> constructor_names() const;
  // Of these types; valid until one is added.
  const Variances& variances() const;

 private:
  struct FoundVariances;

  Map<String, Ref<const AdtDefinition>> types_;
  std::shared_ptr<FoundVariances> variances_;  // shared by copies; null: the prelude's
  // By constructor: its type, and its place among the type's constructors.
  Map<String, Ref<const AdtDefinition>> type_of_constructor_;
  Map<String, int64_t> place_of_constructor_;
};
// The error for a function or kernel that there is not. `before` is what stands before the name in
// the text, and before those of `others`: "@" or "@l.".
Error no_such_global(const char* what, std::string_view before, std::string_view name,
                     const std::vector<std::string>& others);
// The field types of a constructor for these type arguments.
Array<TypeRef> constructor_fields(const ConstructorRef& c, const Array<TypeRef>& type_args);

struct Inferred {
  TypeRef type;
  // If `type` names large sizes by fresh symbols, the type with all sizes written out; else null.
  // The value itself has this type, so that it can be lowered; later bindings use the symbols.
  TypeRef spelt_out;
  std::vector<Ref<const Check>> conditions;  // not proved
  SymbolSet fresh;                           // symbols in `type` that are bound at run time

  // The value's type with fresh symbols erased, before match_shape binds them.
  TypeRef known() const;
};

struct InferOptions {
  const Signatures* signatures = nullptr;
  std::function<Dim(std::string_view hint)> fresh;
  // Whether a symbol is in scope at the right-hand side.
  std::function<bool(std::string_view)> in_scope;
  // The symbols in scope, for errors; may be null.
  std::function<std::vector<std::string>()> symbols;
};

// Throws Usage without a span, which the caller adds.
Inferred infer_type(const ExprRef& value, const InferOptions& options);

// The type without dimensions and values that mention `symbols`; ranks are kept.
TypeRef erase(const TypeRef& type, const SymbolSet& symbols);

}  // namespace tenon::graph
