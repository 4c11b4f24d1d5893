#include "object/any.h"

#include "object/reflect.h"
#include "object/string.h"
#include "support/failures.h"

namespace tenon {

[[gnu::cold]] [[gnu::cold]] std::string type_name(int32_t index) {
  switch (index) {
    case TypeIndex::None:
      return "None";
    case TypeIndex::Int:
      return "int";
    case TypeIndex::Bool:
      return "bool";
    case TypeIndex::Float:
      return "float";
    case TypeIndex::OpaquePtr:
      return "pointer";
    case TypeIndex::DataType:
      return "dtype";
    case TypeIndex::Device:
      return "device";
    case TypeIndex::DLTensorPtr:
      return "DLTensor*";
    case TypeIndex::RawStr:
    case TypeIndex::SmallStr:
    case TypeIndex::Str:
      return "string";
    case TypeIndex::ByteArrayPtr:
    case TypeIndex::SmallBytes:
    case TypeIndex::Bytes:
      return "bytes";
    case TypeIndex::Object:
      return "object";
    case TypeIndex::Error:
      return "error";
    case TypeIndex::Function:
      return "function";
    case TypeIndex::Shape:
      return "shape";
    case TypeIndex::Tensor:
      return "tensor";
    case TypeIndex::Array:
      return "array";
    case TypeIndex::Map:
      return "map";
    case TypeIndex::Storage:
      return "storage";
    case TypeIndex::Module:
      return "module";
    case TypeIndex::Opaque:
      return "opaque";
    case TypeIndex::Cell:
      return "cell";
    default:
      break;
  }
  if (const TypeInfo* info = find_type(index)) return std::string(info->type_key);
  return cat("type ", index);
}

[[gnu::cold]] void AnyView::fail(const std::string& wanted) const {
  throw_misuse(cat("a value is not of type ", wanted), type_name(type_index), wanted);
}

bool AnyView::same_slow(const AnyView& o) const {
  if (String::accepts(*this) && String::accepts(o)) {
    return payload_as<String>(*this).view() == payload_as<String>(o).view();
  }
  if (Bytes::accepts(*this) && Bytes::accepts(o)) {
    return payload_as<Bytes>(*this).view() == payload_as<Bytes>(o).view();
  }
  return false;
}

[[gnu::cold]] void Any::own_foreign() {
  AnyView view = *this;
  type_index = TypeIndex::None;
  v.bits = 0;
  switch (view.type_index) {
    case TypeIndex::RawStr:
      *this = String(view.v.c_str);
      return;
    case TypeIndex::ByteArrayPtr: {
      const auto* cell = static_cast<const StringCell*>(view.v.p);
      if (!cell->data && cell->size) {
        throw Error(ErrorKind::Usage, cat("the data of ", cell->size, " bytes is a null pointer"));
      }
      *this = Bytes(std::string_view(cell->data ? cell->data : "", cell->size));
      return;
    }
    default:
      throw Error(ErrorKind::Usage,
                  cat("a value of type ", type_name(view.type_index), " can't be kept"))
          .expected("an owning value, such as a DLPack tensor with its deleter");
  }
}

}  // namespace tenon
