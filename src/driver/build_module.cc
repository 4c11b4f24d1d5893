#include "driver/build_module.h"

#include <algorithm>

#include "driver/build_values.h"
#include "driver/host_options.h"
#include "graph/ir/calls.h"
#include "graph/ir/check.h"
#include "graph/ir/name_text.h"
#include "graph/ir/typed_text.h"
#include "object/reflect.h"

namespace tenon::driver {
namespace {

using graph::Operand;

// What the functions of the module may name.
graph::Signatures signatures_of(const BuilderObj& module) {
  graph::Signatures known;
  for (const auto* functions :
       {&module.defined.functions, &module.defined.imported, &module.functions}) {
    for (const auto& [name, f] : *functions) known.functions.set(name, graph::type_of(*f));
  }
  for (const auto& [name, type] : module.declared) known.functions.set(name, type);
  known.written = module.defined.written;
  known.kernels = module.defined.kernels;
  for (const auto& [name, adt] : module.defined.adts) known.add_type(adt);
  return known;
}

// Lets the function that is being built name what was added to the module.
void tell_function(BuilderObj& module) {
  if (module.function) module.function->set_signatures(module.known);
}

// Throws if the text isn't a word that may name an import or a type parameter.
void require_word(const String& name, const char* of, const char* expected) {
  const std::string_view text = name.view();
  const bool is_word = graph::is_bare_name(text) && !(text[0] >= '0' && text[0] <= '9');
  if (is_word && !graph::is_reserved(text)) return;
  throw Error(ErrorKind::Usage, cat("this is not a name for ", of))
      .found(quoted(name.view()))
      .expected(expected);
}

// Makes known what the text defines. The module stays as it is if it is wrong.
void define(BuilderObj& module, std::string_view text,
            const std::vector<std::string>& import_paths = {}) {
  module.defined = graph::parse_definitions(text, "definitions", import_paths, module.defined,
                                            module.known.functions);
  module.known = signatures_of(module);
  tell_function(module);
}

// Throws if a callback of `if`, `loop`, `match` or a function literal is running.
void require_no_callback(const BuilderObj& module) {
  if (!module.function || module.function->open_blocks() == 1) return;
  throw Error(ErrorKind::Usage, "a block of the function is still being built")
      .help("return from the callback that builds it first");
}

// Throws if a function of this name was built, defined or imported.
void require_new(const BuilderObj& module, const String& function) {
  if (!module.functions.contains(function) && !module.defined.functions.contains(function) &&
      !module.defined.imported.contains(function)) {
    return;
  }
  throw Error(ErrorKind::Usage, cat("there is a function '", printable(function), "' already"));
}

}  // namespace

void register_build_types() {
  static const TypeInfo builder = {BuilderObj::kTypeIndex,
                                   BuilderObj::kTypeLast,
                                   "compiler.Builder",
                                   &Object::type_info(),
                                   sizeof(BuilderObj),
                                   0,
                                   {},
                                   nullptr};
  register_types({&builder});
}

BuilderObj& module_of(const BuilderRef& builder) {
  if (!builder) throw Error(ErrorKind::Usage, "the builder is none");
  return *builder;
}

graph::Builder& builder_of(const BuilderRef& builder) {
  BuilderObj& module = module_of(builder);
  if (!module.function) {
    module.function.emplace(module.known);
    module.function->at(Span::node("(built)"));
  }
  return *module.function;
}

String full_name(const BuilderObj& module, const String& function) {
  const std::string_view name = function.view();
  const size_t dot = std::min(name.find('.'), name.size());
  const auto import = module.defined.prefixes.find(name.substr(0, dot));
  if (dot == name.size() || import == module.defined.prefixes.end()) return function;
  return cat(import->second, name.substr(dot + 1));
}

graph::TypeRef type_of_value(const BuilderRef& builder, const Any& type) {
  if (type.is<String>()) {
    const BuilderObj& module = module_of(builder);
    return graph::parse_type(type.as<String>(), module.defined.adts, module.type_params);
  }
  if (type.is_none() || !type.is<graph::TypeRef>()) fail_value("a type or the text of one", type);
  return type.as<graph::TypeRef>();
}

std::vector<graph::TypeRef> types_of(const BuilderRef& builder, const Array<Any>& types) {
  std::vector<graph::TypeRef> out;
  for (const Any& type : types) out.push_back(type_of_value(builder, type));
  return out;
}

BuilderRef build_begin() {
  return make<BuilderObj>();
}

void build_import(const BuilderRef& builder, const String& file, const String& name,
                  const Any& options) {
  BuilderObj& module = module_of(builder);
  HostOptions given(options);
  Source source;
  take_source_options(given, &source);
  given.require_all_taken();
  require_word(name, "an import", "a word such as l, for calls of l.map");
  define(module, cat("import ", quoted(file.view()), " as ", name.view()), source.import_path);
}

void build_define(const BuilderRef& builder, const String& text) {
  define(module_of(builder), text.view());
}

void build_declare(const BuilderRef& builder, const String& function, const Any& type) {
  BuilderObj& module = module_of(builder);
  const graph::TypeRef known = type_of_value(builder, type);
  if (!known.as<graph::FunctionType>()) {
    throw Error(ErrorKind::Usage,
                cat("'", printable(function), "' is declared, but not as a function"))
        .found(to_text(known))
        .expected("a function's type, such as fn(i64) -> i64");
  }
  require_new(module, function);
  module.declared.set(function, known);
  module.known.functions.set(function, known);
  tell_function(module);
}

void build_type_param(const BuilderRef& builder, const String& name) {
  BuilderObj& module = module_of(builder);
  require_word(name, "a type parameter", "a word such as T");
  if (std::ranges::find(module.type_params, name) != module.type_params.end()) {
    throw Error(ErrorKind::Usage, cat("the type parameter ", name.view(), " is already defined"));
  }
  module.type_params.push_back(name);
}

void build_finish(const BuilderRef& builder, const String& name, const Any& result,
                  const Any& attributes) {
  graph::Builder& b = builder_of(builder);
  require_no_callback(*builder);
  require_new(*builder, name);
  const graph::TypeRef* declared = builder->declared.find(name);
  const auto* function = declared ? declared->as<graph::FunctionType>() : nullptr;
  const Operand made = operand_of(b, result, function ? function->result : nullptr);
  const auto attrs = map_or_empty<graph::Attrs>(attributes, "a map of attributes");
  const Array<String> type_params = builder->type_params;
  const graph::FunctionRef finished =
      function ? b.finish_as(name, made, function->result, attrs, type_params)
               : b.finish(name, made, attrs, type_params);
  build_discard(builder);
  const graph::TypeRef type = graph::type_of(*finished);
  if (function && !graph::same_type(type, *declared)) {
    throw Error(ErrorKind::Usage, cat("'", printable(name), "' is declared with another type"))
        .found(to_text(type))
        .expected(to_text(*declared));
  }
  builder->functions.set(name, finished);
  builder->known.functions.set(name, type);
}

void build_discard(const BuilderRef& builder) {
  BuilderObj& module = module_of(builder);
  require_no_callback(module);
  module.function.reset();
  module.type_params = {};
}

graph::Module build_module(const BuilderRef& builder) {
  const BuilderObj& module = module_of(builder);
  for (const auto& [name, type] : module.declared) {
    if (module.functions.contains(name)) continue;
    throw Error(ErrorKind::Usage, cat("'", printable(name), "' is declared but not built"))
        .help(cat("build a function of type ", to_text(type), ", and finish it with that name"));
  }
  Map<String, graph::FunctionRef> functions = module.defined.functions;
  for (const auto& [name, function] : module.functions) functions.set(name, function);
  const graph::Module made =
      graph::make_module(graph::reachable(functions, module.defined.imported),
                         module.defined.kernels, module.defined.adts);
  graph::check_module(made);
  return made;
}

}  // namespace tenon::driver
