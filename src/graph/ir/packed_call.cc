#include "graph/ir/packed_call.h"

#include <algorithm>

#include "graph/ir/intrinsic.h"
#include "graph/ir/name_text.h"
#include "graph/ir/type.h"
#include "graph/ir/value_words.h"
#include "library/signatures/signatures.h"
#include "object/reflect.h"

namespace tenon::graph {

namespace {

using library::Parameter;
using library::Signature;
using library::ValueKind;

bool is_promise(const String& attribute) {
  return attribute == kEffectAttr || attribute == kDestinationsAttr || attribute == kNoRetainAttr;
}

// The index of a choice's name, or the number of choices if it is unknown.
size_t choice_index(const Parameter& parameter, const Any& value) {
  size_t i = 0;
  if (!String::accepts(value)) return parameter.choices.count;
  const String name = value.as<String>();
  while (i < parameter.choices.count && !(name == parameter.choices.names[i])) ++i;
  return i;
}

bool is_of(const Any& value, const Parameter& parameter) {
  switch (parameter.kind) {
    case ValueKind::Int:
      return value.type_index == TypeIndex::Int || value.try_as<Ref<const DimNode>>();
    case ValueKind::Float:
      return value.type_index == TypeIndex::Float || value.type_index == TypeIndex::Int;
    case ValueKind::Bool:
      return value.type_index == TypeIndex::Bool;
    case ValueKind::Shape:
      return value.try_as<Array<int64_t>>() || value.try_as<Array<Dim>>();
    case ValueKind::Choice:
      return choice_index(parameter, value) < parameter.choices.count;
    case ValueKind::String:
      return String::accepts(value);
    case ValueKind::Dtype:
      return value.type_index == TypeIndex::DataType;
    case ValueKind::Tensor:
    case ValueKind::Array:
    case ValueKind::Any:
      break;
  }
  return false;
}

std::string kind_text(const Parameter& parameter) {
  switch (parameter.kind) {
    case ValueKind::Int:
      return "an integer or a size";
    case ValueKind::Float:
      return "a number";
    case ValueKind::Bool:
      return "true or false";
    case ValueKind::Shape:
      return "a list of integers or sizes";
    case ValueKind::Choice: {
      std::vector<std::string> names;
      for (size_t i = 0; i < parameter.choices.count; ++i) {
        names.push_back(cat("\"", parameter.choices.names[i], "\""));
      }
      return cat("one of ", tenon::join(names, ", "));
    }
    case ValueKind::String:
      return "a string";
    case ValueKind::Dtype:
      return "an element type";
    case ValueKind::Tensor:
    case ValueKind::Array:
    case ValueKind::Any:
      break;
  }
  return "an operand";
}

Error usage(const Call& call, const std::string& what) {
  return Error(ErrorKind::Usage, cat("'", call.callee, "' ", what));
}

void check_signature(const Call& call, const Signature& signature, const Variances& variances) {
  const size_t operands = signature.operands.size();
  const bool destinations = signature.writes_results &&
                            call.args.size() == operands + signature.results.size() &&
                            is_unit(call.result_type);
  if (call.args.size() != operands && !destinations) {
    throw usage(call, "is called with the wrong number of operands")
        .found(counted(call.args.size(), "operand"))
        .expected(counted(operands, "operand"))
        .help("write () for an operand that is absent");
  }
  for (size_t i = 0; i < operands; ++i) {
    if (call.args[i] || signature.operands[i].optional) continue;
    throw usage(call, cat("needs its operand '", signature.operands[i].name, "'"));
  }
  if (!destinations) check_value_call(call, variances);
  if (signature.writes_results && !destinations && !known_tensor(call.result_type)) {
    throw usage(call, "writes its result into a tensor, whose dimensions must be known")
        .found(to_text(call.result_type));
  }
  for (const Parameter& attribute : signature.attributes) {
    const Any* value = call.attrs.find(String(attribute.name));
    if (!value) {
      throw usage(call, cat("needs the attribute '", attribute.name, "'"))
          .expected(kind_text(attribute));
    }
    if (!is_of(*value, attribute)) {
      throw usage(call, cat("can't take this value for its attribute '", attribute.name, "'"))
          .found(repr(*value))
          .expected(kind_text(attribute));
    }
  }
  for (const auto& [name, value] : call.attrs) {
    if (is_promise(name)) {
      throw usage(call, cat("is a library function: the attribute '", name,
                            "' can't be stated in a call of it"))
          .help("leave it out; docs/packed-functions.md says what the function promises");
    }
    const auto same = [&, &name = name](const Parameter& p) { return name == p.name; };
    if (std::ranges::none_of(signature.attributes, same)) {
      Error e = usage(call, cat("has no attribute '", name, "'"));
      std::vector<std::string> names;
      for (const Parameter& p : signature.attributes) names.emplace_back(p.name);
      suggest(&e, name, names);
      throw e;
    }
  }
}

void check_promises(const Call& call) {
  if (const Any* effect = call.attrs.find(kEffectAttr)) {
    if (!String::accepts(*effect) || !effect_named(effect->as<String>().view())) {
      throw usage(call, "has an effect that is not known")
          .found(repr(*effect))
          .expected("\"pure\", \"reads\" or \"ordered\"");
    }
  }
  if (const Any* count = call.attrs.find(kDestinationsAttr)) {
    if (count->type_index != TypeIndex::Int || count->as<int64_t>() != 1 ||
        !known_tensor(call.result_type)) {
      throw usage(call, "can't write its result into a tensor")
          .found(to_text(call.result_type))
          .expected(cat(kDestinationsAttr, "=1 and a tensor of known dimensions"));
    }
  }
  if (const Any* none = call.attrs.find(kNoRetainAttr)) {
    if (none->type_index != TypeIndex::Bool || !none->as<bool>()) {
      throw usage(call, cat("has the attribute '", kNoRetainAttr, "', which can only be true"))
          .help("leave it out where the function keeps an argument");
    }
  }
}

}  // namespace

const Signature* signature_of(const Call& call) {
  return call.kind == CalleeKind::kPacked ? library::find_signature(call.callee.view()) : nullptr;
}

const Call* as_packed(const ExprRef& value, std::string_view function) {
  const auto* call = value.as<Call>();
  return call && call->kind == CalleeKind::kPacked && call->callee == function ? call : nullptr;
}

size_t inputs_of(const ModuleNode& module, const Call& call) {
  size_t inputs = call.args.size();
  if (call.kind == CalleeKind::kKernel) inputs = module.kernels.at(call.callee)->inputs.size();
  if (const Signature* signature = signature_of(call)) inputs = signature->operands.size();
  return std::min(inputs, call.args.size());
}

Effect effect_of_packed(const Call& call) {
  return is_unit(call.result_type) ? Effect::Ordered : effect_of_function(call);
}

Effect effect_of_function(const Call& call) {
  if (const Signature* signature = signature_of(call)) return signature->effect;
  const Any* effect = call.attrs.find(kEffectAttr);
  return effect ? *effect_named(effect->as<String>().view()) : Effect::Ordered;
}

bool keeps_arguments(const Call& call) {
  if (const Signature* signature = signature_of(call)) return signature->keeps_arguments;
  return !call.attrs.contains(kNoRetainAttr);
}

bool awaits_destination(const Call& call) {
  if (const Signature* signature = signature_of(call)) {
    return signature->writes_results && call.args.size() == signature->operands.size();
  }
  return call.attrs.contains(kDestinationsAttr);
}

std::vector<std::pair<String, Any>> passed_attributes(const Call& call) {
  std::vector<std::pair<String, Any>> out;
  const Signature* signature = signature_of(call);
  if (!signature) {
    for (const auto& [name, value] : call.attrs) {
      if (!is_promise(name)) out.emplace_back(name, value);
    }
    return out;
  }
  for (const Parameter& attribute : signature->attributes) {
    const String name(attribute.name);
    const Any& value = call.attrs.at(name);
    const bool choice = attribute.kind == ValueKind::Choice;
    out.emplace_back(name,
                     choice ? Any(static_cast<int64_t>(choice_index(attribute, value))) : value);
  }
  return out;
}

Ref<const Call> as_packed_call(const Operator& op, const Call& call, const TypeRef& type) {
  std::vector<Operand> args(call.args.begin(), call.args.end());
  if (args.size() < op.operands.size()) args.resize(op.operands.size());
  return make_call(CalleeKind::kPacked, op.packed, args, call.attrs, type);
}

void check_packed_call(const Call& call, const Variances& variances) {
  if (check_intrinsic(call)) return;
  if (!same_type(call.result_type, without_known_values(call.result_type))) {
    throw Error(ErrorKind::Usage, cat("the elements of the result of '", call.callee,
                                      "' are not known before it runs"))
        .found(to_text(call.result_type))
        .expected(to_text(without_known_values(call.result_type)));
  }
  if (const Signature* signature = signature_of(call)) {
    check_signature(call, *signature, variances);
  } else {
    check_promises(call);
  }
}

}  // namespace tenon::graph
