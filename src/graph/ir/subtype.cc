// The subtype order of types, and the comparison that leaves sizes to run time.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <unordered_map>

#include "graph/ir/instantiate.h"
#include "graph/ir/type.h"
#include "loop/symbol_set.h"

namespace tenon::graph {

namespace {

using Unproved = std::vector<std::pair<Dim, Dim>>;

bool same_dims(const Array<Dim>& a, const Array<Dim>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

bool same_types(const Array<TypeRef>& a, const Array<TypeRef>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_type);
}

bool dim_fits(const Dim& from, const Dim& to, Unproved* unproved) {
  if (from == to || proves_equal(from, to)) return true;
  if (!unproved || proves_differ(from, to)) return false;
  unproved->emplace_back(from, to);
  return true;
}

bool dims_fit(const Array<Dim>& from, const Array<Dim>& to, Unproved* unproved) {
  if (from.size() != to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!dim_fits(from[i], to[i], unproved)) return false;
  }
  return true;
}

bool tensor_fits(const TensorType& from, const TensorType& to, Unproved* unproved) {
  if (from.dtype != to.dtype || from.device != to.device) return false;
  if (to.rank != kUnknownRank && from.rank != to.rank) return false;
  if (to.dims_known && !(from.dims_known && dims_fit(from.dims, to.dims, unproved))) return false;
  if (!to.value_known) return true;
  return from.value_known && dims_fit(from.values, to.values, unproved);
}

// What begins a symbol that stands for one that a function's parameters bind; a number follows.
constexpr char kOfGiven[] = "\x01", kOfTaken[] = "\x02";

// The least number that follows neither prefix in a symbol of these types: a function that is a
// parameter has the names of the functions around it.
size_t free_number(const FunctionType& a, const FunctionType& b) {
  SymbolSet symbols;
  for (const FunctionType* type : {&a, &b}) {
    for (const TypeRef& p : type->params) collect_symbols(p, &symbols);
    collect_symbols(type->result, &symbols);
  }
  size_t number = 0;
  for (const std::string& name : symbols) {
    if (!name.starts_with(kOfGiven) && !name.starts_with(kOfTaken)) continue;
    number = std::max(number, size_t{std::strtoul(name.c_str() + 1, nullptr, 10)} + 1);
  }
  return number;
}

// `type` with the symbols that its parameters bind renamed to `prefix` and a number from `first`.
Ref<FunctionType> with_own_names(const FunctionType& type, std::string_view prefix, size_t first) {
  SymbolSet own;
  for (const TypeRef& p : type.params) collect_binding_symbols(p, &own);
  std::unordered_map<std::string_view, size_t> number;
  for (const std::string& name : own) number.emplace(name, first + number.size());
  DimSubstitution rename = [&](std::string_view name) -> std::optional<Dim> {
    auto at = number.find(name);
    if (at == number.end()) return std::nullopt;
    return Dim::symbol(cat(prefix, at->second));
  };
  auto out = make<FunctionType>();
  Map<String, TypeRef> vars;
  for (size_t i = 0; i < type.type_params.size(); ++i) {
    const std::string name = cat("\x01", i);
    vars.set(type.type_params[i], type_var(name));
    out->type_params.push_back(name);
  }
  auto renamed = [&](const TypeRef& t) {
    return substitute_type_vars(substitute(t, rename), vars);
  };
  out->params = type.params.map(renamed);
  out->result = renamed(type.result);
  return out;
}

// A function checks the sizes of what it is called with, so those may be unknown here, or others: a
// literal's are sizes of the function around it, which inlining makes numbers, while the type of a
// function that takes the literal has symbols of its own in their place. If a call succeeds, these
// are the sizes that the function takes.
bool function_fits(const FunctionType& from, const FunctionType& to) {
  if (from.params.size() != to.params.size() || from.type_params.size() != to.type_params.size()) {
    return false;
  }
  const size_t first = free_number(from, to);
  const Ref<FunctionType> f = with_own_names(from, kOfGiven, first),
                          t = with_own_names(to, kOfTaken, first);
  Matching taken{Array<String>()}, given{Array<String>()};
  taken.match_all(f->params, t->params);
  const Array<TypeRef> params = f->params.map([&](const TypeRef& p) { return taken.apply(p); });
  given.match_all(t->params, params);
  for (size_t i = 0; i < params.size(); ++i) {
    if (!may_pass(given.apply(t->params[i]), params[i])) return false;
  }
  return is_subtype(taken.apply(f->result), given.apply(t->result));
}

}  // namespace

const TensorType* known_tensor(const TypeRef& type) {
  auto* tensor = type.as<TensorType>();
  return tensor && tensor->dims_known ? tensor : nullptr;
}

bool same_dims(const TypeRef& a, const TypeRef& b) {
  const TensorType *x = known_tensor(a), *y = known_tensor(b);
  return x && y && dims_fit(x->dims, y->dims, nullptr);
}

bool same_tensor(const TypeRef& a, const TypeRef& b) {
  return same_dims(a, b) && a.as<TensorType>()->dtype == b.as<TensorType>()->dtype;
}

bool same_type(const TypeRef& a, const TypeRef& b) {
  if (a == b) return true;
  if (!a || !b || a->type_index != b->type_index) return false;
  switch (a->type_index) {
    case TensorType::kTypeIndex: {
      const auto *x = a.as<TensorType>(), *y = b.as<TensorType>();
      return x->dtype == y->dtype && x->rank == y->rank && x->device == y->device &&
             x->dims_known == y->dims_known && x->value_known == y->value_known &&
             same_dims(x->dims, y->dims) && same_dims(x->values, y->values);
    }
    case ScalarType::kTypeIndex: {
      const auto *x = a.as<ScalarType>(), *y = b.as<ScalarType>();
      return x->dtype == y->dtype && x->value_known == y->value_known &&
             (!x->value_known || x->value == y->value);
    }
    case ShapeType::kTypeIndex: {
      const auto *x = a.as<ShapeType>(), *y = b.as<ShapeType>();
      return x->rank == y->rank && x->dims_known == y->dims_known && same_dims(x->dims, y->dims);
    }
    case TupleType::kTypeIndex:
      return same_types(a.as<TupleType>()->fields, b.as<TupleType>()->fields);
    case FunctionType::kTypeIndex: {
      const auto *x = a.as<FunctionType>(), *y = b.as<FunctionType>();
      return x->type_params.size() == y->type_params.size() &&
             std::equal(x->type_params.begin(), x->type_params.end(), y->type_params.begin()) &&
             same_types(x->params, y->params) && same_type(x->result, y->result);
    }
    case ArrayType::kTypeIndex:
      return same_type(a.as<ArrayType>()->element, b.as<ArrayType>()->element);
    case AdtType::kTypeIndex:
      return a.as<AdtType>()->name == b.as<AdtType>()->name &&
             same_types(a.as<AdtType>()->args, b.as<AdtType>()->args);
    case TypeVar::kTypeIndex:
      return a.as<TypeVar>()->name == b.as<TypeVar>()->name;
    case OpaqueType::kTypeIndex:
      return a.as<OpaqueType>()->key == b.as<OpaqueType>()->key;
    default:
      return false;
  }
}

bool fits(const TypeRef& from, const TypeRef& to, Unproved* unproved) {
  if (from == to) return true;
  if (!from || !to || from->type_index != to->type_index) return false;
  auto all_fit = [&](const Array<TypeRef>& a, const Array<TypeRef>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!fits(a[i], b[i], unproved)) return false;
    }
    return true;
  };
  switch (from->type_index) {
    case TensorType::kTypeIndex:
      return tensor_fits(*from.as<TensorType>(), *to.as<TensorType>(), unproved);
    case ScalarType::kTypeIndex: {
      const auto *x = from.as<ScalarType>(), *y = to.as<ScalarType>();
      return x->dtype == y->dtype &&
             (!y->value_known || (x->value_known && dim_fits(x->value, y->value, unproved)));
    }
    case ShapeType::kTypeIndex: {
      const auto *x = from.as<ShapeType>(), *y = to.as<ShapeType>();
      if (y->rank != kUnknownRank && x->rank != y->rank) return false;
      return !y->dims_known || (x->dims_known && dims_fit(x->dims, y->dims, unproved));
    }
    case TupleType::kTypeIndex:
      return all_fit(from.as<TupleType>()->fields, to.as<TupleType>()->fields);
    case FunctionType::kTypeIndex:
      return function_fits(*from.as<FunctionType>(), *to.as<FunctionType>());
    // Values are immutable, so containers are covariant; but elements can't be checked at run time.
    case ArrayType::kTypeIndex:
      return is_subtype(from.as<ArrayType>()->element, to.as<ArrayType>()->element);
    case AdtType::kTypeIndex: {
      const auto *x = from.as<AdtType>(), *y = to.as<AdtType>();
      return x->name == y->name && x->args.size() == y->args.size() &&
             std::equal(x->args.begin(), x->args.end(), y->args.begin(), is_subtype);
    }
    default:
      return same_type(from, to);
  }
}

bool is_subtype(const TypeRef& from, const TypeRef& to) {
  return fits(from, to, nullptr);
}

bool may_pass(const TypeRef& given, const TypeRef& taken) {
  if (given->type_index != taken->type_index) return false;
  if (const auto* to = taken.as<TensorType>()) {
    const auto* from = given.as<TensorType>();
    if (from->dtype != to->dtype || from->device != to->device) return false;
    if (to->rank == kUnknownRank) return true;
    if (from->rank != to->rank) return false;
    return !from->dims_known || !to->dims_known ||
           std::ranges::equal(from->dims, to->dims, std::not_fn(proves_differ));
  }
  if (const auto* to = taken.as<TupleType>()) {
    return std::ranges::equal(given.as<TupleType>()->fields, to->fields, may_pass);
  }
  return is_subtype(given, taken);
}

bool has_function(const TypeRef& type) {
  if (type.is<FunctionType>()) return true;
  if (auto* tuple = type.as<TupleType>()) return std::ranges::any_of(tuple->fields, has_function);
  if (auto* array = type.as<ArrayType>()) return has_function(array->element);
  auto* adt = type.as<AdtType>();
  return adt && std::ranges::any_of(adt->args, has_function);
}

bool may_be_known_as(const TypeRef& stated, const TypeRef& known) {
  if (!has_function(stated)) return true;
  const auto *to = stated.as<FunctionType>(), *from = known.as<FunctionType>();
  if (!to || !from) return same_type(stated, known);
  if (from->params.size() != to->params.size()) return false;
  const size_t first = free_number(*from, *to);
  const Ref<FunctionType> f = with_own_names(*from, kOfGiven, first),
                          t = with_own_names(*to, kOfTaken, first);
  Matching taken{Array<String>()};
  taken.match_all(f->params, t->params);
  for (size_t i = 0; i < f->params.size(); ++i) {
    if (!is_subtype(t->params[i], taken.apply(f->params[i]))) return false;
  }
  return is_subtype(taken.apply(f->result), t->result);
}

TypeRef join(const TypeRef& a, const TypeRef& b) {
  if (is_subtype(a, b)) return b;
  if (is_subtype(b, a)) return a;
  if (!a || !b || a->type_index != b->type_index) return nullptr;
  auto join_all = [](const Array<TypeRef>& x, const Array<TypeRef>& y, Array<TypeRef>* out) {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      TypeRef j = join(x[i], y[i]);
      if (!j) return false;
      out->push_back(j);
    }
    return true;
  };
  switch (a->type_index) {
    case TensorType::kTypeIndex: {
      const auto *x = a.as<TensorType>(), *y = b.as<TensorType>();
      if (x->dtype != y->dtype || x->device != y->device) return nullptr;
      auto t = make<TensorType>();
      t->dtype = x->dtype;
      t->device = x->device;
      if (x->rank != y->rank) return t;
      t->rank = x->rank;
      t->dims_known = x->dims_known && y->dims_known && dims_fit(x->dims, y->dims, nullptr);
      if (t->dims_known) t->dims = x->dims;
      return t;
    }
    case ScalarType::kTypeIndex: {
      DataType dtype = a.as<ScalarType>()->dtype;
      return dtype == b.as<ScalarType>()->dtype ? scalar_type(dtype) : nullptr;
    }
    case ShapeType::kTypeIndex: {
      auto t = make<ShapeType>();
      if (a.as<ShapeType>()->rank == b.as<ShapeType>()->rank) t->rank = a.as<ShapeType>()->rank;
      return t;
    }
    case TupleType::kTypeIndex: {
      auto t = make<TupleType>();
      return join_all(a.as<TupleType>()->fields, b.as<TupleType>()->fields, &t->fields) ? t
                                                                                        : nullptr;
    }
    case ArrayType::kTypeIndex: {
      TypeRef e = join(a.as<ArrayType>()->element, b.as<ArrayType>()->element);
      return e ? array_type(e) : nullptr;
    }
    case AdtType::kTypeIndex: {
      auto t = make<AdtType>();
      t->name = a.as<AdtType>()->name;
      if (t->name != b.as<AdtType>()->name) return nullptr;
      return join_all(a.as<AdtType>()->args, b.as<AdtType>()->args, &t->args) ? t : nullptr;
    }
    default:
      return nullptr;
  }
}

}  // namespace tenon::graph
