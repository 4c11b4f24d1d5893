#include "graph/ir/name_text.h"
#include "graph/ir/type.h"

namespace tenon::graph {

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
