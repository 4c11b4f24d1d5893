// The subtype order of types, the comparison that leaves sizes to run time, and the least common
// supertype.

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

namespace {

class Order {
 public:
  explicit Order(const Variances& variances) : variances_(variances) {}

  bool fits(const TypeRef& from, const TypeRef& to, Unproved* unproved) const {
    if (from == to) return true;
    if (!from || !to || from->type_index != to->type_index) return false;
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
        return std::ranges::equal(
            from.as<TupleType>()->fields, to.as<TupleType>()->fields,
            [&](const TypeRef& x, const TypeRef& y) { return fits(x, y, unproved); });
      case FunctionType::kTypeIndex:
        return function_fits(*from.as<FunctionType>(), *to.as<FunctionType>());
      // Values are immutable, so containers are covariant; but elements can't be checked at run
      // time.
      case ArrayType::kTypeIndex:
        return is_subtype(from.as<ArrayType>()->element, to.as<ArrayType>()->element);
      case AdtType::kTypeIndex: {
        const auto *x = from.as<AdtType>(), *y = to.as<AdtType>();
        if (x->name != y->name || x->args.size() != y->args.size()) return false;
        for (size_t i = 0; i < x->args.size(); ++i) {
          if (!are_related(variances_.of(x->name, i), x->args[i], y->args[i])) return false;
        }
        return true;
      }
      default:
        return same_type(from, to);
    }
  }

  bool is_subtype(const TypeRef& from, const TypeRef& to) const { return fits(from, to, nullptr); }

  bool may_pass(const TypeRef& given, const TypeRef& taken) const {
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
      return std::ranges::equal(given.as<TupleType>()->fields, to->fields,
                                [&](const TypeRef& x, const TypeRef& y) { return may_pass(x, y); });
    }
    return is_subtype(given, taken);
  }

  bool has_function(const TypeRef& type) const {
    if (type.is<FunctionType>()) return true;
    const auto in = [&](const TypeRef& part) { return has_function(part); };
    if (auto* tuple = type.as<TupleType>()) return std::ranges::any_of(tuple->fields, in);
    if (auto* array = type.as<ArrayType>()) return has_function(array->element);
    const auto* adt = type.as<AdtType>();
    for (size_t i = 0; adt && i < adt->args.size(); ++i) {
      if ((variances_.of(adt->name, i) & ~kFits) || has_function(adt->args[i])) return true;
    }
    return false;
  }

  bool may_be_known_as(const TypeRef& stated, const TypeRef& known) const {
    if (!has_function(stated)) return true;
    const auto *to = stated.as<FunctionType>(), *from = known.as<FunctionType>();
    if (!to || !from) return same_type(stated, known);
    if (from->params.size() != to->params.size()) return false;
    const size_t first = free_number(*from, *to);
    const Ref<FunctionType> f = with_own_names(*from, kOfGiven, first),
                            t = with_own_names(*to, kOfTaken, first);
    Matching taken;
    taken.match_all(f->params, t->params);
    for (size_t i = 0; i < f->params.size(); ++i) {
      if (!is_subtype(t->params[i], taken.apply(f->params[i]))) return false;
    }
    return is_subtype(taken.apply(f->result), t->result);
  }

  TypeRef join(const TypeRef& a, const TypeRef& b) const {
    if (is_subtype(a, b)) return b;
    if (is_subtype(b, a)) return a;
    if (!a || !b || a->type_index != b->type_index) return nullptr;
    switch (a->type_index) {
      case TensorType::kTypeIndex:
        return join_tensors(*a.as<TensorType>(), *b.as<TensorType>());
      case ScalarType::kTypeIndex: {
        DataType dtype = a.as<ScalarType>()->dtype;
        return dtype == b.as<ScalarType>()->dtype ? scalar_type(dtype) : nullptr;
      }
      case ShapeType::kTypeIndex: {
        auto t = make<ShapeType>();
        if (a.as<ShapeType>()->rank == b.as<ShapeType>()->rank) t->rank = a.as<ShapeType>()->rank;
        return t;
      }
      default:
        return in_parts(a, b, Bound::kLeast);
    }
  }

 private:
  // Of two types: the least supertype, the greatest subtype, or what may be passed where either is
  // taken.
  enum class Bound { kLeast, kGreatest, kPassed };

  // A function checks the sizes of what it is called with, so those may be unknown here, or others:
  // a literal's are sizes of the function around it, which inlining makes numbers, while the type
  // of a function that takes the literal has symbols of its own in their place. If a call succeeds,
  // these are the sizes that the function takes.
  bool function_fits(const FunctionType& from, const FunctionType& to) const {
    if (from.params.size() != to.params.size() ||
        from.type_params.size() != to.type_params.size()) {
      return false;
    }
    const size_t first = free_number(from, to);
    const Ref<FunctionType> f = with_own_names(from, kOfGiven, first),
                            t = with_own_names(to, kOfTaken, first);
    Matching taken, given;
    taken.match_all(f->params, t->params);
    const Array<TypeRef> params = f->params.map([&](const TypeRef& p) { return taken.apply(p); });
    given.match_all(t->params, params);
    for (size_t i = 0; i < params.size(); ++i) {
      if (!may_pass(given.apply(t->params[i]), params[i])) return false;
    }
    return is_subtype(taken.apply(f->result), given.apply(t->result));
  }

  // Whether the types are the same but for the names of symbols that parameters of functions bind.
  static bool same_but_names(const TypeRef& x, const TypeRef& y) {
    if (same_type(x, y)) return true;
    if (!x || !y || x->type_index != y->type_index) return false;
    const auto all = [](const Array<TypeRef>& a, const Array<TypeRef>& b) {
      return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_but_names);
    };
    if (const auto* tuple = x.as<TupleType>()) return all(tuple->fields, y.as<TupleType>()->fields);
    if (const auto* array = x.as<ArrayType>()) {
      return same_but_names(array->element, y.as<ArrayType>()->element);
    }
    if (const auto* adt = x.as<AdtType>()) {
      return adt->name == y.as<AdtType>()->name && all(adt->args, y.as<AdtType>()->args);
    }
    const auto *f = x.as<FunctionType>(), *g = y.as<FunctionType>();
    if (!f || f->type_params.size() != g->type_params.size()) return false;
    const size_t first = free_number(*f, *g);
    const Ref<FunctionType> a = with_own_names(*f, kOfGiven, first),
                            b = with_own_names(*g, kOfGiven, first);
    return all(a->params, b->params) && same_but_names(a->result, b->result);
  }

  bool are_related(Relations relations, const TypeRef& x, const TypeRef& y) const {
    if (same_but_names(x, y)) return true;
    const Attempt attempt(*this);
    if (attempt.is_one_too_many()) return false;
    return (!(relations & kFits) || is_subtype(x, y)) &&
           (!(relations & kFitsBack) || is_subtype(y, x)) &&
           (!(relations & kPasses) || may_pass(x, y)) &&
           (!(relations & kPassesBack) || may_pass(y, x));
  }

  static TypeRef join_tensors(const TensorType& x, const TensorType& y) {
    if (x.dtype != y.dtype || x.device != y.device) return nullptr;
    auto t = make<TensorType>();
    t->dtype = x.dtype;
    t->device = x.device;
    if (x.rank != y.rank) return t;
    t->rank = x.rank;
    t->dims_known = x.dims_known && y.dims_known && dims_fit(x.dims, y.dims, nullptr);
    if (t->dims_known) t->dims = x.dims;
    return t;
  }

  TypeRef bound(const TypeRef& a, const TypeRef& b, Bound kind) const {
    if (kind == Bound::kLeast) return join(a, b);
    if (kind == Bound::kGreatest) {
      if (is_subtype(a, b)) return a;
      if (is_subtype(b, a)) return b;
    }
    if (!a || !b || a->type_index != b->type_index) return nullptr;
    if (kind == Bound::kPassed) {
      if (a.is<TensorType>()) return join(a, b);
      if (!a.is<TupleType>()) return bound(a, b, Bound::kGreatest);
    }
    return in_parts(a, b, kind);
  }

  // The same for types of one kind, part by part.
  TypeRef in_parts(const TypeRef& a, const TypeRef& b, Bound kind) const {
    if (const auto* x = a.as<TupleType>()) {
      const Array<TypeRef>& fields = b.as<TupleType>()->fields;
      if (x->fields.size() != fields.size()) return nullptr;
      auto t = make<TupleType>();
      for (size_t i = 0; i < fields.size(); ++i) {
        const TypeRef field = bound(x->fields[i], fields[i], kind);
        if (!field) return nullptr;
        t->fields.push_back(field);
      }
      return t;
    }
    if (const auto* x = a.as<ArrayType>()) {
      const TypeRef element = bound(x->element, b.as<ArrayType>()->element, kind);
      return element ? array_type(element) : nullptr;
    }
    if (const auto* x = a.as<FunctionType>()) return of_functions(*x, *b.as<FunctionType>(), kind);
    const auto *x = a.as<AdtType>(), *y = b.as<AdtType>();
    if (!x || x->name != y->name || x->args.size() != y->args.size()) return nullptr;
    auto t = make<AdtType>();
    t->name = x->name;
    for (size_t i = 0; i < x->args.size(); ++i) {
      Relations relations = variances_.of(x->name, i);
      if (kind == Bound::kGreatest) relations = reversed(relations);
      const TypeRef arg = related(relations, x->args[i], y->args[i]);
      if (!arg) return nullptr;
      t->args.push_back(arg);
    }
    return t;
  }

  // A type to which both are so related, the most precise one if there is one.
  TypeRef related(Relations relations, const TypeRef& x, const TypeRef& y) const {
    if (relations == 0 || same_but_names(x, y)) return x;
    const Attempt attempt(*this);
    if (attempt.is_one_too_many()) return nullptr;
    std::vector<Bound> kinds;
    if (relations & (kFits | kPasses)) kinds.push_back(Bound::kLeast);
    if (!(relations & kFitsBack)) kinds.push_back(Bound::kPassed);
    kinds.push_back(Bound::kGreatest);
    for (const Bound kind : kinds) {
      const TypeRef found = bound(x, y, kind);
      if (found && are_related(relations, x, found) && are_related(relations, y, found)) {
        return found;
      }
    }
    return nullptr;
  }

  // Functions: of both kinds what they take is widened, as far as they check its sizes themselves.
  TypeRef of_functions(const FunctionType& x, const FunctionType& y, Bound kind) const {
    if (x.params.size() != y.params.size()) return nullptr;
    if (!x.type_params.empty() || !y.type_params.empty()) return nullptr;
    const size_t first = free_number(x, y);
    const Ref<FunctionType> f = with_own_names(x, kOfGiven, first),
                            g = with_own_names(y, kOfTaken, first);
    // The one's own symbols as the other's sizes.
    Matching matching;
    matching.match_all(g->params, f->params);
    const DimSubstitution own = [&](std::string_view name) -> std::optional<Dim> {
      const Dim* size = name.starts_with(kOfTaken) ? matching.find(name) : nullptr;
      return size ? std::optional(*size) : std::nullopt;
    };
    auto t = make<FunctionType>();
    for (size_t i = 0; i < f->params.size(); ++i) {
      const TypeRef param = bound(f->params[i], substitute(g->params[i], own),
                                  kind == Bound::kLeast ? Bound::kPassed : Bound::kLeast);
      if (!param) return nullptr;
      t->params.push_back(param);
    }
    t->result = bound(f->result, substitute(g->result, own), kind);
    if (!t->result) return nullptr;
    const TypeRef found = with_written_names(*t, x, y);
    if (!found) return nullptr;
    const auto holds = [&](const FunctionType& given) {
      const TypeRef type = make<FunctionType>(given);
      return kind == Bound::kLeast ? is_subtype(type, found) : is_subtype(found, type);
    };
    return holds(x) && holds(y) ? found : nullptr;
  }

  // A type made of two functions' types with own names, in which sizes that no parameter binds any
  // more are unknown, and the others have names that may be written; null if such a size is part
  // of a function's type in it.
  static TypeRef with_written_names(const FunctionType& type, const FunctionType& x,
                                    const FunctionType& y) {
    const auto is_own = [](std::string_view name) {
      return name.starts_with(kOfGiven) || name.starts_with(kOfTaken);
    };
    SymbolSet bound_here, taken, left;
    for (const TypeRef& p : type.params) collect_binding_symbols(p, &bound_here);
    const auto erased = [&](const TypeRef& t) {
      return erase_symbols(
          t, [&](std::string_view name) { return !is_own(name) || bound_here.contains(name); });
    };
    auto out = make<FunctionType>();
    out->params = type.params.map(erased);
    out->result = erased(type.result);
    collect_symbols(TypeRef(out), &left);
    if (std::ranges::any_of(left, is_own)) return nullptr;
    for (const FunctionType* given : {&x, &y}) collect_symbols(make<FunctionType>(*given), &taken);
    std::unordered_map<std::string, Dim> names;
    for (const std::string& name : bound_here) {
      if (!is_own(name)) continue;
      std::string written = "n";
      for (int64_t i = 1; taken.contains(written) || bound_here.contains(written); ++i) {
        written = cat("n", i);
      }
      taken.add(written);
      names.emplace(name, Dim::symbol(written));
    }
    const DimSubstitution rename = [&](std::string_view name) -> std::optional<Dim> {
      const auto at = names.find(std::string(name));
      return at == names.end() ? std::nullopt : std::optional(at->second);
    };
    const auto renamed = [&](const TypeRef& t) { return substitute(t, rename); };
    out->params = out->params.map(renamed);
    out->result = renamed(out->result);
    return out;
  }

  // At relating two arguments, which may ask two relations, or try three kinds of bounds, in every
  // level of nesting: so many for each pair that isn't in another one.
  class Attempt {
   public:
    explicit Attempt(const Order& order) : order_(order) {
      if (order_.nesting_++ == 0) order_.attempts_ = 0;
      ++order_.attempts_;
    }
    ~Attempt() { --order_.nesting_; }
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    bool is_one_too_many() const { return order_.attempts_ > 1000; }

   private:
    const Order& order_;
  };

  const Variances& variances_;
  mutable int attempts_ = 0, nesting_ = 0;
};

}  // namespace

bool fits(const TypeRef& from, const TypeRef& to, const Variances& variances, Unproved* unproved) {
  return Order(variances).fits(from, to, unproved);
}

bool is_subtype(const TypeRef& from, const TypeRef& to, const Variances& variances) {
  return Order(variances).is_subtype(from, to);
}

bool may_pass(const TypeRef& given, const TypeRef& taken, const Variances& variances) {
  return Order(variances).may_pass(given, taken);
}

bool has_function(const TypeRef& type, const Variances& variances) {
  return Order(variances).has_function(type);
}

bool may_be_known_as(const TypeRef& stated, const TypeRef& known, const Variances& variances) {
  return Order(variances).may_be_known_as(stated, known);
}

TypeRef join(const TypeRef& a, const TypeRef& b, const Variances& variances) {
  return Order(variances).join(a, b);
}

}  // namespace tenon::graph
