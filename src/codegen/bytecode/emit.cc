#include "codegen/bytecode/emit.h"

#include <algorithm>
#include <unordered_set>

#include "codegen/bytecode/arrange_counters.h"
#include "codegen/bytecode/data_types.h"
#include "codegen/bytecode/lower_function.h"
#include "codegen/bytecode/reuse_cells.h"
#include "codegen/bytecode/write_code.h"
#include "graph/ir/infer.h"
#include "graph/ir/tail_calls.h"
#include "vm/isa/limits.h"

namespace tenon::codegen {

using graph::FunctionExpr;
using graph::VarRef;

namespace {

[[noreturn]] void refuse(const FunctionExpr& function, const std::string& what,
                         std::string_view help) {
  throw Error(ErrorKind::Unsupported, function.span, cat("'", function.name, "': ", what))
      .help(help);
}

// `name` as a file has it, which is added to `names`. A model may use any names for its inputs and
// results, but a file's names contain no control characters and must differ.
std::string add_name(const char* what, const FunctionExpr& function, std::string_view name,
                     std::unordered_set<std::string>* names) {
  const std::string written = printable(name);
  require_name(what, written, function.span);
  if (!names->insert(written).second) {
    refuse(function, cat("two ", what, "s have the name ", quoted(written)),
           "rename one: in a compiled file, control characters become escapes");
  }
  return written;
}

// A name for a parameter that no host sees: captures may have the same name, or none.
std::string inner_name(std::string_view name, std::unordered_set<std::string>* names) {
  const std::string wanted = name.empty() ? "value" : printable(name);
  std::string made = wanted;
  for (int i = 1; !names->insert(made).second; ++i) made = cat(wanted, "_", i);
  return made;
}

void erase_type_params(const Array<String>& names, vm::SignatureType* type) {
  const bool is_name = type->kind == vm::SignatureType::Kind::Adt && type->parts.empty();
  if (is_name && std::ranges::find(names, type->name, &String::view) != names.end()) *type = {};
  for (vm::SignatureType& part : type->parts) erase_type_params(names, &part);
}

void emit_signature(const FunctionExpr& function, vm::FunctionUnit* out) {
  require_name("function", function.name, function.span);
  if (function.params.size() > vm::kMaxParams) {
    refuse(function, cat("it has ", function.params.size(), " parameters"),
           cat("a bytecode function has at most ", vm::kMaxParams, ": pass some as a tuple"));
  }
  out->exported = function.is_exported();
  std::unordered_set<std::string> names;
  for (const VarRef& param : function.params) {
    const std::string name = out->exported ? add_name("parameter", function, param->name, &names)
                                           : inner_name(param->name, &names);
    out->params.push_back({name, erased_type(param->type, function.name, function)});
  }
  out->result = erased_type(function.result_type, function.name, function);
  names.clear();
  for (const String& name : function.result_names()) {
    out->result_names.push_back(add_name("result", function, name, &names));
  }
}

}  // namespace

vm::SignatureType signature_type(const graph::TypeRef& type, std::string_view of,
                                 const Span& span) {
  if (has_type_parameters(type)) {
    throw Error(ErrorKind::Unsupported, span,
                cat("'", of, "': a value of a function type with type parameters"))
        .help("a function that is a value takes one type: leave out the brackets after fn");
  }
  // A file has types as text; what is parsed here, its readers accept.
  return vm::parse_signature_type(to_text(graph::without_known_values(type)));
}

vm::SignatureType erased_type(const graph::TypeRef& type, std::string_view of,
                              const FunctionExpr& function) {
  vm::SignatureType out = signature_type(type, of, function.span);
  erase_type_params(function.type_params, &out);
  return out;
}

vm::Unit emit_unit(const graph::Module& module) {
  vm::Unit unit;
  unit.producer = "tenon " TENON_VERSION;
  // Assign every function's index before any body is emitted: calls go in both directions.
  FunctionIndices indices;
  for (const auto& [name, function] : module->functions) {
    indices.emplace(name.view(), static_cast<uint32_t>(unit.functions.size()));
    vm::FunctionUnit f;
    f.name = std::string(name);
    unit.functions.push_back(std::move(f));
  }
  const graph::Signatures signatures = graph::Signatures::of(module);
  ConstantPool constants(&unit);
  PackedTable packed(&unit);
  DataTypes types(signatures);
  const Borrowing borrowing(module);
  const graph::TailCalls tail_calls(module, signatures);
  uint32_t index = 0;
  for (const auto& [name, function] : module->functions) {
    vm::FunctionUnit& out = unit.functions[index];
    emit_signature(*function, &out);
    for (size_t i = 0; i < out.params.size(); ++i) {
      out.params[i].borrowed = borrowing.is_borrowed(function->params[i].get());
    }
    if (out.exported) {
      for (const vm::Param& param : out.params) types.add(param.type);
      types.add(out.result);
    }
    VirtualCode code = FunctionLowering(&unit, &constants, &packed, indices, module, borrowing,
                                        signatures, tail_calls, *function, index)
                           .run();
    arrange_counters(&code);
    Liveness liveness = analyse_liveness(&code);
    remove_unneeded_releases(&code);
    if (reuse_cells(&code)) liveness = analyse_liveness(&code);
    write_code(code, liveness, assign_registers(code, liveness), index, &out);
    if (out.register_count > vm::kMaxRegisters) {
      refuse(*function, cat("it keeps ", out.register_count, " values and sizes at once"),
             cat("a bytecode function has at most ", vm::kMaxRegisters,
                 " registers: split it into two functions"));
    }
    ++index;
  }
  unit.types = types.take();
  return unit;
}

}  // namespace tenon::codegen
