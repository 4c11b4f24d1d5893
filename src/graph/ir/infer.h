// Inference: the type of a right-hand side from the types of its operands. One routine serves the
// builder, which acts on what it could not prove, and the checker, which demands that somebody has.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "graph/ir/op.h"

namespace tenon::graph {

// What a body may name beside its variables.
struct Signatures {
  Map<String, TypeRef> functions;  // FunctionType each
  Map<String, loop::KernelInterfaceRef> kernels;
  Map<String, Ref<const AdtDefinition>> adts;  // beside the prelude's

  static Signatures of(const Module& module);
};

const AdtDefinition* find_adt(const Signatures& signatures, std::string_view name);
struct ConstructorRef {
  const AdtDefinition* adt = nullptr;  // null: unknown
  const Constructor* constructor = nullptr;
};
ConstructorRef find_constructor(const Signatures& signatures, std::string_view name);
// The fields of a constructor for these type arguments.
Array<TypeRef> constructor_fields(const ConstructorRef& c, const Array<TypeRef>& type_args);

struct Inferred {
  TypeRef type;
  // `type` with every size spelt out, where `type` names large ones by fresh symbols; else null.
  // The value itself has this type, so that it can be lowered; what follows works with the names.
  TypeRef spelt_out;
  std::vector<Ref<const Check>> conditions;  // not proved
  std::vector<std::string> fresh;            // symbols in `type` that only running tells

  // What is known of the value before match_shape has bound the fresh symbols.
  TypeRef known() const;
};

struct InferOptions {
  const Signatures* signatures = nullptr;
  std::function<Dim(std::string_view hint)> fresh;
  // Whether a symbol is bound where the right-hand side stands.
  std::function<bool(std::string_view)> in_scope;
};

// Throws Error (Usage) without a span: the caller knows it.
Inferred infer_type(const ExprRef& value, const InferOptions& options);

// The type with everything that is told in `symbols` left to the rank.
TypeRef erase(const TypeRef& type, const std::vector<std::string>& symbols);

}  // namespace tenon::graph
