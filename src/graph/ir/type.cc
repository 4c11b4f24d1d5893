#include "graph/ir/type.h"

#include <algorithm>

#include "graph/ir/name_text.h"
#include "object/reflect.h"

namespace tenon::graph {

const TypeInfo& Type::type_info() {
  static const TypeInfo info = type_of<Type>("graph.Type", {});
  return info;
}

const TypeInfo& TensorType::type_info() {
  static const ::tenon::Field fields[] = {
      field("dtype", &TensorType::dtype),
      field("rank", &TensorType::rank),
      field("dims_known", &TensorType::dims_known),
      field("dims", &TensorType::dims),
      field("value_known", &TensorType::value_known),
      field("values", &TensorType::values),
      field("device", &TensorType::device),
  };
  static const TypeInfo info = type_of<TensorType>("graph.TensorType", fields, &Type::type_info());
  return info;
}

const TypeInfo& ScalarType::type_info() {
  static const ::tenon::Field fields[] = {
      field("dtype", &ScalarType::dtype),
      field("value_known", &ScalarType::value_known),
      field("value", &ScalarType::value),
  };
  static const TypeInfo info = type_of<ScalarType>("graph.ScalarType", fields, &Type::type_info());
  return info;
}

const TypeInfo& ShapeType::type_info() {
  static const ::tenon::Field fields[] = {
      field("rank", &ShapeType::rank),
      field("dims_known", &ShapeType::dims_known),
      field("dims", &ShapeType::dims),
  };
  static const TypeInfo info = type_of<ShapeType>("graph.ShapeType", fields, &Type::type_info());
  return info;
}

const TypeInfo& TupleType::type_info() {
  static const ::tenon::Field fields[] = {field("fields", &TupleType::fields)};
  static const TypeInfo info = type_of<TupleType>("graph.TupleType", fields, &Type::type_info());
  return info;
}

const TypeInfo& FunctionType::type_info() {
  static const ::tenon::Field fields[] = {
      field("type_params", &FunctionType::type_params),
      field("params", &FunctionType::params),
      field("result", &FunctionType::result),
  };
  static const TypeInfo info =
      type_of<FunctionType>("graph.FunctionType", fields, &Type::type_info());
  return info;
}

const TypeInfo& ArrayType::type_info() {
  static const ::tenon::Field fields[] = {field("element", &ArrayType::element)};
  static const TypeInfo info = type_of<ArrayType>("graph.ArrayType", fields, &Type::type_info());
  return info;
}

const TypeInfo& AdtType::type_info() {
  static const ::tenon::Field fields[] = {field("name", &AdtType::name),
                                          field("args", &AdtType::args)};
  static const TypeInfo info = type_of<AdtType>("graph.AdtType", fields, &Type::type_info());
  return info;
}

const TypeInfo& TypeVar::type_info() {
  static const ::tenon::Field fields[] = {field("name", &TypeVar::name)};
  static const TypeInfo info = type_of<TypeVar>("graph.TypeVar", fields, &Type::type_info());
  return info;
}

const TypeInfo& OpaqueType::type_info() {
  static const ::tenon::Field fields[] = {field("key", &OpaqueType::key)};
  static const TypeInfo info = type_of<OpaqueType>("graph.OpaqueType", fields, &Type::type_info());
  return info;
}

// ---- constructors ----

Ref<const TensorType> tensor_type(DataType dtype, const std::vector<Dim>& dims) {
  auto t = make<TensorType>();
  t->dtype = dtype;
  t->rank = static_cast<int64_t>(dims.size());
  t->dims_known = true;
  t->dims = Array<Dim>(dims);
  return t;
}

Ref<const TensorType> tensor_type_of_rank(DataType dtype, int64_t rank) {
  if (rank == 0) return tensor_type(dtype, {});
  auto t = make<TensorType>();
  t->dtype = dtype;
  t->rank = rank;
  return t;
}

Ref<const TensorType> tensor_type_unknown(DataType dtype) {
  return tensor_type_of_rank(dtype, kUnknownRank);
}

Ref<const TensorType> with_values(const Ref<const TensorType>& type,
                                  const std::vector<Dim>& values) {
  int64_t count = 1;
  for (const Dim& d : type->dims) {
    TENON_ASSERT(d.is_const(),
                 "element values of a tensor whose size is unknown: ", to_text(TypeRef(type)));
    count *= *d.as_const();
  }
  TENON_ASSERT(type->dims_known && type->rank <= 1 && count <= kMaxCarriedValues &&
                   count == static_cast<int64_t>(values.size()),
               values.size(), " values for ", to_text(TypeRef(type)));
  auto t = make<TensorType>(*type);
  t->value_known = true;
  t->values = Array<Dim>(values);
  return t;
}

Ref<const TensorType> without_values(const Ref<const TensorType>& type) {
  if (!type->value_known) return type;
  auto t = make<TensorType>(*type);
  t->value_known = false;
  t->values.clear();
  return t;
}

TypeRef scalar_type(DataType dtype) {
  auto t = make<ScalarType>();
  t->dtype = dtype;
  return t;
}

TypeRef shape_type(const std::vector<Dim>& dims) {
  auto t = make<ShapeType>();
  t->rank = static_cast<int64_t>(dims.size());
  t->dims_known = true;
  t->dims = Array<Dim>(dims);
  return t;
}

TypeRef tuple_type(const std::vector<TypeRef>& fields) {
  auto t = make<TupleType>();
  t->fields = Array<TypeRef>(fields);
  return t;
}

TypeRef unit_type() {
  static const TypeRef unit = make<TupleType>();
  return unit;
}

TypeRef array_type(TypeRef element) {
  auto t = make<ArrayType>();
  t->element = std::move(element);
  return t;
}

TypeRef adt_type(std::string_view name, const std::vector<TypeRef>& args) {
  auto t = make<AdtType>();
  t->name = name;
  t->args = Array<TypeRef>(args);
  return t;
}

TypeRef function_type(const std::vector<TypeRef>& params, TypeRef result) {
  auto t = make<FunctionType>();
  t->params = Array<TypeRef>(params);
  t->result = std::move(result);
  return t;
}

bool is_scalar_dtype(DataType dtype) {
  return dtype == boolean || dtype == i64 || dtype == f32 || dtype == f64;
}

// ---- walks ----

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

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> own_symbols(const FunctionType& type) {
  std::vector<std::string> own;
  for (const TypeRef& p : type.params) collect_binding_symbols(p, &own);
  return own;
}

void add_new(std::vector<std::string>* names, const std::vector<std::string>& more) {
  for (const std::string& n : more) {
    if (!contains(*names, n)) names->push_back(n);
  }
}

}  // namespace

TypeRef substitute(const TypeRef& type, const DimSubstitution& map) {
  if (const auto* f = type_as<FunctionType>(type)) {
    std::vector<std::string> own = own_symbols(*f);
    DimSubstitution outer = [&](std::string_view name) -> std::optional<Dim> {
      return contains(own, name) ? std::nullopt : map(name);
    };
    return rebuild(
        type, [](const Dim& d) { return d; },
        [&](const TypeRef& t) { return substitute(t, outer); });
  }
  return rebuild(
      type, [&](const Dim& d) { return tenon::substitute(d, map); },
      [&](const TypeRef& t) { return substitute(t, map); });
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

void collect_symbols(const TypeRef& type, std::vector<std::string>* names) {
  if (!type) return;
  if (const auto* f = type_as<FunctionType>(type)) {
    std::vector<std::string> inside, own = own_symbols(*f), free;
    for (const TypeRef& p : f->params) collect_symbols(p, &inside);
    collect_symbols(f->result, &inside);
    for (const std::string& n : inside) {
      if (!contains(own, n)) free.push_back(n);
    }
    add_new(names, free);
    return;
  }
  rebuild(
      type,
      [&](const Dim& d) {
        std::vector<std::string> of_dim;
        tenon::collect_symbols(d, &of_dim);
        add_new(names, of_dim);
        return d;
      },
      [&](const TypeRef& t) {
        collect_symbols(t, names);
        return t;
      });
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

void collect_binding_symbols(const TypeRef& type, std::vector<std::string>* names) {
  auto one = [&](const Dim& d) {
    if (d.kind() == DimKind::kSymbol && !contains(*names, d.node().name.view())) {
      names->push_back(d.node().name.str());
    }
  };
  if (const auto* t = type_as<TensorType>(type)) {
    for (const Dim& d : t->dims) one(d);
    for (const Dim& d : t->values) one(d);
  } else if (const auto* s = type_as<ScalarType>(type)) {
    if (s->value_known) one(s->value);
  } else if (const auto* h = type_as<ShapeType>(type)) {
    for (const Dim& d : h->dims) one(d);
  } else if (const auto* u = type_as<TupleType>(type)) {
    for (const TypeRef& f : u->fields) collect_binding_symbols(f, names);
  }
}

TypeRef erase_symbols(const TypeRef& type, const std::function<bool(std::string_view)>& keep) {
  auto told = [&](const Array<Dim>& dims) {
    std::vector<std::string> names;
    for (const Dim& d : dims) tenon::collect_symbols(d, &names);
    return std::all_of(names.begin(), names.end(), [&](const auto& n) { return keep(n); });
  };
  if (const auto* t = type_as<TensorType>(type)) {
    if (told(t->dims) && told(t->values)) return type;
    auto out = make<TensorType>(*t);
    out->value_known = false;
    out->values.clear();
    if (!told(t->dims)) {
      out->dims_known = false;
      out->dims.clear();
    }
    return out;
  }
  if (const auto* s = type_as<ScalarType>(type)) {
    return !s->value_known || told({s->value}) ? type : scalar_type(s->dtype);
  }
  if (const auto* h = type_as<ShapeType>(type)) {
    if (told(h->dims)) return type;
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

// ---- text ----

std::string short_name(DataType dtype) {
  if (dtype == boolean) return "bool";
  if (dtype.lanes == 1) {
    switch (dtype.code) {
      case kDLInt:
        return cat("i", int{dtype.bits});
      case kDLUInt:
        return cat("u", int{dtype.bits});
      case kDLFloat:
        return cat("f", int{dtype.bits});
      case kDLBfloat:
        return cat("bf", int{dtype.bits});
      default:
        break;
    }
  }
  return to_text(dtype);
}

std::string dims_text(const Array<Dim>& dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ", ";
    out += dim_text(dims[i]);
  }
  return out + "]";
}

namespace {

std::string list_text(const Array<TypeRef>& types) {
  std::string out;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i) out += ", ";
    out += to_text(types[i]);
  }
  return out;
}

std::string tensor_text(const TensorType& t) {
  std::string out = "tensor[";
  if (t.dims_known) {
    for (size_t i = 0; i < t.dims.size(); ++i) {
      if (i) out += ", ";
      out += dim_text(t.dims[i]);
    }
    if (!t.dims.empty()) out += "; ";
  } else if (t.rank == kUnknownRank) {
    out += "*; ";
  } else {
    out += cat("rank=", t.rank, "; ");
  }
  out += short_name(t.dtype);
  if (t.device != 0) out += cat("; device=", t.device);
  out += "]";
  if (t.value_known) out += " = " + dims_text(t.values);
  return out;
}

}  // namespace

std::string to_text(const TypeRef& type) {
  if (!type) return "?";
  switch (type->type_index) {
    case TensorType::kTypeIndex:
      return tensor_text(*type.as<TensorType>());
    case ScalarType::kTypeIndex: {
      const auto* s = type.as<ScalarType>();
      return s->value_known ? cat(short_name(s->dtype), " = [", dim_text(s->value), "]")
                            : short_name(s->dtype);
    }
    case ShapeType::kTypeIndex: {
      const auto* s = type.as<ShapeType>();
      if (s->dims_known) return "shape" + dims_text(s->dims);
      return s->rank == kUnknownRank ? "shape[*]" : cat("shape[rank=", s->rank, "]");
    }
    case TupleType::kTypeIndex: {
      const auto* t = type.as<TupleType>();
      return cat("(", list_text(t->fields), t->fields.size() == 1 ? ",)" : ")");
    }
    case FunctionType::kTypeIndex: {
      const auto* f = type.as<FunctionType>();
      std::string out = "fn";
      if (!f->type_params.empty()) {
        out += "[";
        for (size_t i = 0; i < f->type_params.size(); ++i) {
          if (i) out += ", ";
          out += f->type_params[i].view();
        }
        out += "]";
      }
      return cat(out, "(", list_text(f->params), ") -> ", to_text(f->result));
    }
    case ArrayType::kTypeIndex:
      return cat("array[", to_text(type.as<ArrayType>()->element), "]");
    case AdtType::kTypeIndex: {
      const auto* a = type.as<AdtType>();
      return a->args.empty() ? a->name.str() : cat(a->name, "[", list_text(a->args), "]");
    }
    case TypeVar::kTypeIndex:
      return type.as<TypeVar>()->name.str();
    case OpaqueType::kTypeIndex:
      return cat("opaque[", quoted(type.as<OpaqueType>()->key), "]");
    default:
      return "?";
  }
}

}  // namespace tenon::graph
