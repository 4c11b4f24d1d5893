#include "vm/isa/host_function.h"

#include <algorithm>
#include <map>
#include <string>

#include "object/array.h"
#include "object/function.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

using Kind = SignatureType::Kind;

const SignatureType& result_of(const SignatureType& function) {
  return function.parts.back();
}

std::span<const SignatureType> parameters_of(const SignatureType& function) {
  return std::span(function.parts).first(function.parts.size() - 1);
}

// Sizes by their text in types. A function type's sizes are those of the program's function around
// it, so equal texts mean equal sizes.
using Sizes = std::map<std::string, int64_t, std::less<>>;

bool has_sizes(const SignatureType& type) {
  const auto is_size = [](const SignatureDim& dim) { return !dim.is_constant(); };
  return std::ranges::any_of(type.dims, is_size) ||
         (type.kind == Kind::Tuple && std::ranges::any_of(type.parts, has_sizes));
}

void read_sizes(const SignatureType& type, const AnyView& value, Sizes* sizes) {
  if (!fits(type, value)) return;
  if (type.kind == Kind::Tuple && !type.parts.empty()) {
    const Any* field = value.as_object<ArrayObj>()->begin();
    for (const SignatureType& part : type.parts) read_sizes(part, *field++, sizes);
    return;
  }
  if (!type.dims_known) return;
  const std::span<const int64_t> found = type.kind == Kind::Tensor
                                             ? payload_as<Tensor>(value).shape()
                                             : payload_as<Shape>(value).dims();
  for (size_t i = 0; i < found.size(); ++i) {
    if (!type.dims[i].is_constant()) sizes->try_emplace(type.dims[i].text, found[i]);
  }
}

// Makes sizes constant: n becomes n=3.
void set_sizes(const Sizes& sizes, SignatureType* type) {
  for (SignatureDim& dim : type->dims) {
    const auto found = dim.is_constant() ? sizes.end() : sizes.find(dim.text);
    if (found != sizes.end()) dim = {cat(dim.text, "=", found->second), found->second};
  }
  if (type->kind != Kind::Tuple) return;
  for (SignatureType& part : type->parts) set_sizes(sizes, &part);
}

struct HostFunction : FunctionObj {
  Function function;
  SignatureType type;
  ResultFunctions in_result;
  bool has_sizes = false;  // whether the result's sizes may be compared with those of arguments

  static int call_checked(void* self, const AnyView* args, int32_t n, Any* result) {
    const auto& host = *static_cast<const HostFunction*>(static_cast<FunctionObj*>(self));
    try {
      Any found;
      if (const int failed = host.function.call(args, n, &found)) return failed;
      *result = host.checked({args, static_cast<size_t>(n)}, admit(found));
      return 0;
    } catch (...) {
      return set_current_exception();
    }
  }

  static std::string_view name_of_function(const FunctionObj& self) {
    return name_of(Any(static_cast<const HostFunction&>(self).function));
  }

  Any checked(std::span<const AnyView> args, Any found) const {
    const SignatureType& wanted = result_of(type);
    if (wanted.kind == Kind::Tuple && wanted.parts.empty()) return {};  // the unit
    round_floats(wanted, &found);
    in_result.places->check_results(in_result.type, &found);
    const auto require = [&](const SignatureType& of) {
      require_returned(name_of_function(*this), of, found, kMisfitsDeclaration);
    };
    const std::span<const SignatureType> params = parameters_of(type);
    if (!has_sizes || args.size() != params.size()) {
      require(wanted);
      return found;
    }
    Sizes sizes;
    for (size_t i = 0; i < args.size(); ++i) read_sizes(params[i], args[i], &sizes);
    SignatureType exact = wanted;
    set_sizes(sizes, &exact);
    require(exact);
    return found;
  }
};

// Whether a result of the type is checked here. A host's object is checked by those who know it.
bool is_checked(const SignatureType& result) {
  return result.kind != Kind::Any && (result.kind != Kind::Opaque || result.name == kString);
}

}  // namespace

Any with_checks(const SignatureType& type, const Any& value, ResultFunctions in_result) {
  if (value.type_index != TypeIndex::Function || type.parts.empty()) return value;
  Function function = value.as<Function>();
  const FunctionObj& given = *function.get();
  if (given.call == &HostFunction::call_checked) {
    const auto& host = static_cast<const HostFunction&>(given);
    if (host.type == type) return value;
    function = Function(host.function);
  } else if (!name_of(value).empty()) {
    return value;  // a program's
  }
  if (!is_checked(result_of(type))) return function;
  auto made = make<HostFunction>();
  made->call = &HostFunction::call_checked;
  made->name = &HostFunction::name_of_function;
  made->function = std::move(function);
  made->type = type;
  made->in_result = std::move(in_result);
  made->has_sizes =
      has_sizes(result_of(type)) && std::ranges::any_of(parameters_of(type), has_sizes);
  return Any(Function::adopt(std::move(made)));
}

}  // namespace tenon::vm
