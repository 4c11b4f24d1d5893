// Walks over types: their symbols, substitution, erasure, size.
#include <algorithm>

#include "graph/ir/expr.h"
#include "object/tensor.h"

namespace tenon::graph {

namespace {

// `type` with the functions applied to its sizes and parts. May copy it even if nothing changes.
template <class OnDim, class OnType>
TypeRef rebuild(const TypeRef& type, const OnDim& on_dim, const OnType& on_type) {
  auto dims = [&](const Array<Dim>& list) {
    return list.map([&](const Dim& d) { return on_dim(d); });
  };
  auto types = [&](const Array<TypeRef>& list) {
    return list.map([&](const TypeRef& t) { return on_type(t); });
  };
  if (!type) return type;
  switch (type->type_index) {
    case TensorType::kTypeIndex: {
      auto t = make<TensorType>(*type.as<TensorType>());
      t->dims = dims(t->dims);
      t->values = dims(t->values);
      return t;
    }
    case ScalarType::kTypeIndex: {
      auto t = make<ScalarType>(*type.as<ScalarType>());
      if (t->value_known) t->value = on_dim(t->value);
      return t;
    }
    case ShapeType::kTypeIndex: {
      auto t = make<ShapeType>(*type.as<ShapeType>());
      t->dims = dims(t->dims);
      return t;
    }
    case TupleType::kTypeIndex: {
      auto t = make<TupleType>();
      t->fields = types(type.as<TupleType>()->fields);
      return t;
    }
    case FunctionType::kTypeIndex: {
      const auto* f = type.as<FunctionType>();
      auto t = make<FunctionType>();
      t->type_params = f->type_params;
      t->params = types(f->params);
      t->result = on_type(f->result);
      return t;
    }
    case ArrayType::kTypeIndex:
      return array_type(on_type(type.as<ArrayType>()->element));
    case AdtType::kTypeIndex: {
      const auto* a = type.as<AdtType>();
      auto t = make<AdtType>();
      t->name = a->name;
      t->args = types(a->args);
      return t;
    }
    default:
      return type;
  }
}

// Calls `f` on each direct part of the type.
template <class F>
void for_each_part(const TypeRef& type, const F& f) {
  rebuild(
      type, [](const Dim& d) { return d; },
      [&](const TypeRef& part) {
        f(part);
        return part;
      });
}

SymbolSet own_symbols(const FunctionType& type) {
  SymbolSet own;
  for (const TypeRef& p : type.params) collect_binding_symbols(p, &own);
  return own;
}

}  // namespace

TypeRef substitute(const TypeRef& type, const DimSubstitution& map) {
  if (const auto* f = type_as<FunctionType>(type)) {
    const SymbolSet own = own_symbols(*f);
    DimSubstitution outer = [&](std::string_view name) -> std::optional<Dim> {
      return own.contains(name) ? std::nullopt : map(name);
    };
    return rebuild(
        type, [](const Dim& d) { return d; },
        [&](const TypeRef& t) { return substitute(t, outer); });
  }
  return rebuild(
      type, [&](const Dim& d) { return tenon::substitute(d, map); },
      [&](const TypeRef& t) { return substitute(t, map); });
}

TypeRef without_known_values(const TypeRef& type) {
  if (const auto tensor = type.cast<TensorType>()) return without_values(tensor);
  if (const auto* scalar = type.as<ScalarType>()) {
    return scalar->value_known ? scalar_type(scalar->dtype) : type;
  }
  return rebuild(
      type, [](const Dim& d) { return d; }, without_known_values);
}

bool mentions_type_var(const TypeRef& type, const std::function<bool(std::string_view)>& which) {
  if (const auto* v = type_as<TypeVar>(type)) return which(v->name.view());
  bool found = false;
  for_each_part(type, [&](const TypeRef& t) { found = found || mentions_type_var(t, which); });
  return found;
}

TypeRef substitute_type_vars(const TypeRef& type, const Map<String, TypeRef>& map) {
  if (const auto* v = type_as<TypeVar>(type)) {
    const TypeRef* t = map.find(v->name);
    return t ? *t : type;
  }
  if (const auto* f = type_as<FunctionType>(type); f && !f->type_params.empty()) {
    Map<String, TypeRef> outer = map;
    for (const String& name : f->type_params) outer.erase(name);
    return rebuild(
        type, [](const Dim& d) { return d; },
        [&](const TypeRef& t) { return substitute_type_vars(t, outer); });
  }
  return rebuild(
      type, [](const Dim& d) { return d; },
      [&](const TypeRef& t) { return substitute_type_vars(t, map); });
}

void collect_symbols(const TypeRef& type, SymbolSet* symbols) {
  if (!type) return;
  if (const auto* f = type_as<FunctionType>(type)) {
    const SymbolSet own = own_symbols(*f);
    SymbolSet inside;
    for (const TypeRef& p : f->params) collect_symbols(p, &inside);
    collect_symbols(f->result, &inside);
    for (const std::string& name : inside) {
      if (!own.contains(name)) symbols->add(name);
    }
    return;
  }
  rebuild(
      type,
      [&](const Dim& d) {
        tenon::collect_symbols(d, symbols);
        return d;
      },
      [&](const TypeRef& t) {
        collect_symbols(t, symbols);
        return t;
      });
}

int64_t other_device(const TypeRef& type) {
  if (const auto* tensor = type_as<TensorType>(type)) return tensor->device;
  int64_t found = 0;
  for_each_part(type, [&](const TypeRef& part) {
    if (found == 0) found = other_device(part);
  });
  return found;
}

bool has_type_parameters(const TypeRef& type) {
  const auto* f = type_as<FunctionType>(type);
  bool found = f && !f->type_params.empty();
  for_each_part(type, [&](const TypeRef& part) { found = found || has_type_parameters(part); });
  return found;
}

void collect_binding_symbols(const TypeRef& type, SymbolSet* symbols) {
  auto one = [&](const Dim& d) {
    if (d.kind() == DimKind::kSymbol) symbols->add(d.node().name.view());
  };
  if (const auto* t = type_as<TensorType>(type)) {
    for (const Dim& d : t->dims) one(d);
    for (const Dim& d : t->values) one(d);
  } else if (const auto* s = type_as<ScalarType>(type)) {
    if (s->value_known) one(s->value);
  } else if (const auto* h = type_as<ShapeType>(type)) {
    for (const Dim& d : h->dims) one(d);
  } else if (const auto* u = type_as<TupleType>(type)) {
    for (const TypeRef& f : u->fields) collect_binding_symbols(f, symbols);
  }
}

TypeRef erase_symbols(const TypeRef& type, const std::function<bool(std::string_view)>& keep) {
  auto keeps_all = [&](const Array<Dim>& dims) {
    SymbolSet symbols;
    for (const Dim& d : dims) tenon::collect_symbols(d, &symbols);
    return std::all_of(symbols.begin(), symbols.end(), [&](const auto& n) { return keep(n); });
  };
  if (const auto* t = type_as<TensorType>(type)) {
    if (keeps_all(t->dims) && keeps_all(t->values)) return type;
    auto out = make<TensorType>(*t);
    out->value_known = false;
    out->values.clear();
    if (!keeps_all(t->dims)) {
      out->dims_known = false;
      out->dims.clear();
    }
    return out;
  }
  if (const auto* s = type_as<ScalarType>(type)) {
    return !s->value_known || keeps_all({s->value}) ? type : scalar_type(s->dtype);
  }
  if (const auto* h = type_as<ShapeType>(type)) {
    if (keeps_all(h->dims)) return type;
    auto out = make<ShapeType>();
    out->rank = h->rank;
    return out;
  }
  if (type_as<FunctionType>(type)) return type;
  return rebuild(
      type, [](const Dim& d) { return d; },
      [&](const TypeRef& t) { return erase_symbols(t, keep); });
}

TypeMeasure measure(const TypeRef& type) {
  TypeMeasure m{1, 1};
  auto part = [&](const TypeRef& t) {
    if (!t || m.size > kMaxTypeSize) return;
    TypeMeasure inner = measure(t);
    m.size += inner.size;
    m.depth = std::max(m.depth, inner.depth + 1);
  };
  if (const auto* u = type_as<TupleType>(type)) {
    for (const TypeRef& f : u->fields) part(f);
  } else if (const auto* f = type_as<FunctionType>(type)) {
    for (const TypeRef& p : f->params) part(p);
    part(f->result);
  } else if (const auto* a = type_as<ArrayType>(type)) {
    part(a->element);
  } else if (const auto* d = type_as<AdtType>(type)) {
    for (const TypeRef& t : d->args) part(t);
  }
  return m;
}

void require_bounded(const TypeRef& type) {
  const TypeMeasure m = measure(type);
  if (m.size <= kMaxTypeSize && m.depth <= kMaxNesting) return;
  throw Error(ErrorKind::Usage, "a type is too large")
      .expected(cat("at most ", kMaxTypeSize, " parts, ", kMaxNesting, " levels deep"));
}

void require_consistent(const TypeRef& type) {
  const auto require = [&](bool holds) {
    if (!holds)
      throw Error(ErrorKind::Usage, cat("the type ", to_text(type), " contradicts itself"));
  };
  const auto require_shape = [&](const auto& of, const char* what) {
    if (of.rank > kMaxRank) {
      throw Error(ErrorKind::Usage, cat(what, " has too many dimensions"))
          .found(cat(of.rank))
          .expected(cat("at most ", kMaxRank));
    }
    const auto count = static_cast<int64_t>(of.dims.size());
    require(of.rank >= kUnknownRank && count == (of.dims_known ? of.rank : 0));
  };
  if (const auto* t = type_as<TensorType>(type)) {
    require_shape(*t, "a tensor");
    require(std::ranges::all_of(t->dims, may_be_size));
    if (t->value_known) {
      require(t->dims_known && t->rank <= 1);
      const std::optional<int64_t> count = t->rank == 0 ? 1 : t->dims[0].as_const();
      require(count && *count == static_cast<int64_t>(t->values.size()));
    } else {
      require(t->values.empty());
    }
    if (!is_tensor_dtype(t->dtype) && t->dtype != string_elements) {
      throw Error(ErrorKind::Usage, cat("there are no tensors of ", to_text(t->dtype)));
    }
  } else if (const auto* s = type_as<ScalarType>(type)) {
    require(s->value_known || s->value.is_const());
    if (!is_scalar_dtype(s->dtype)) {
      throw Error(ErrorKind::Usage, cat("there are no scalars of ", to_text(s->dtype)));
    }
  } else if (const auto* h = type_as<ShapeType>(type)) {
    require_shape(*h, "a shape");
  }
}

}  // namespace tenon::graph
