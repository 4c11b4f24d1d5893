#include "graph/ir/name_text.h"
#include "graph/ir/type.h"

namespace tenon::graph {

namespace {

std::string sizes_text(const Array<Dim>& dims) {
  std::string out;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ", ";
    out += dim_text(dims[i]);
  }
  return out;
}

std::string list_text(const Array<TypeRef>& types) {
  std::string out;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i) out += ", ";
    out += to_text(types[i]);
  }
  return out;
}

std::string tensor_text(const TensorType& t) {
  std::string sizes;
  if (t.dims_known) {
    sizes = sizes_text(t.dims);
  } else {
    sizes = t.rank == kUnknownRank ? "*" : cat("rank=", t.rank);
  }
  std::string out = tensor_type_text(sizes, t.dtype);
  if (t.device != 0) {
    out.pop_back();
    out += cat("; device=", t.device, "]");
  }
  if (t.value_known) out += " = " + dims_text(t.values);
  return out;
}

}  // namespace

std::string dims_text(const Array<Dim>& dims) {
  return cat("[", sizes_text(dims), "]");
}

std::string to_text(const TypeRef& type) {
  if (!type) return "?";
  switch (type->type_index) {
    case TensorType::kTypeIndex:
      return tensor_text(*type.as<TensorType>());
    case ScalarType::kTypeIndex: {
      const auto* s = type.as<ScalarType>();
      return s->value_known ? cat(to_text(s->dtype), " = [", dim_text(s->value), "]")
                            : to_text(s->dtype);
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
      return same_type(type, string_type())
                 ? "string"
                 : cat("opaque[", quoted(type.as<OpaqueType>()->key), "]");
    default:
      return "?";
  }
}

}  // namespace tenon::graph
