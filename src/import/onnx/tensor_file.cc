#include "import/onnx/tensor_file.h"

#include <filesystem>
#include <limits>

#include "import/onnx/mapped_file.h"
#include "import/onnx/proto_tensor.h"
#include "object/array.h"
#include "object/cell.h"
#include "object/packed_elements.h"
#include "object/string_tensor.h"
#include "support/poll.h"

namespace tenon::onnx {

namespace {

// Serialized sequences and optional values have no marker that distinguishes them from a tensor or
// from each other. But their fields 3 and 5 hold messages with an element type, whereas those of a
// tensor hold a segment and numbers.
bool holds_sequence_or_optional(std::string_view bytes) {
  schema::SequenceProto s;
  if (!s.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  for (const auto& t : s.tensor_values()) {
    if (t.data_type() != schema::TensorProto::UNDEFINED) return true;
  }
  for (const auto& inner : s.sequence_values()) {
    if (inner.elem_type() != schema::SequenceProto::UNDEFINED) return true;
  }
  return false;
}

// The error for bytes that are not a message of that kind.
Error damaged(std::string_view name, const char* what) {
  return Error(ErrorKind::Damaged, cat(printable(name), " is not a serialized ONNX ", what));
}

template <class Message>
bool parse(std::string_view bytes, std::string_view name, const char* what, Message* out) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw damaged(name, what).found(cat(bytes.size(), " bytes")).expected("less than 2 GiB");
  }
  return out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

template <class Message>
void require_parse(std::string_view bytes, std::string_view name, const char* what,
                   const char* message, Message* out) {
  if (parse(bytes, name, what, out)) return;
  throw damaged(name, what)
      .found(cat(bytes.size(), " bytes that are not a message of type ", message));
}

Tensor taken(schema::TensorProto& proto, std::string_view name) {
  TensorData data = take_tensor(proto, std::string(name), nullptr);
  if (data.tensor) return data.tensor;
  if (data.type == schema::TensorProto::UNDEFINED) {
    throw damaged(name, "tensor").found("no element type");
  }
  throw Error(ErrorKind::Unsupported, cat(printable(name), ": ", data.problem));
}

Any taken(schema::SequenceProto& proto, std::string_view name, const ValueType& type);
Any taken(schema::OptionalProto& proto, std::string_view name, const ValueType& type);

template <class Messages>
Array<Any> each_taken(Messages& messages, std::string_view name, const ValueType& type) {
  Array<Any> out;
  for (auto& message : messages) {
    poll();
    out.push_back(taken(message, name, type));
  }
  return out;
}

// The kind of values that a value of the type holds.
ValueType::Kind held_kind(const ValueType& type, std::string_view name) {
  const ValueType::Kind kind = type.held ? type.held->kind : ValueType::kNone;
  const bool known =
      kind == ValueType::kTensor || kind == ValueType::kSequence || kind == ValueType::kOptional;
  if (known) return kind;
  throw Error(ErrorKind::Unsupported,
              cat(printable(name), ": only tensors, sequences and optional values are read"));
}

Any taken(schema::SequenceProto& proto, std::string_view name, const ValueType& type) {
  const ValueType::Kind kind = held_kind(type, name);
  const auto all = proto.tensor_values_size() + proto.sequence_values_size() +
                   proto.optional_values_size() + proto.map_values_size() +
                   proto.sparse_tensor_values_size();
  Array<Any> out;
  if (kind == ValueType::kTensor) {
    for (auto& tensor : *proto.mutable_tensor_values()) {
      poll();
      out.push_back(taken(tensor, name));
    }
  } else if (kind == ValueType::kSequence) {
    out = each_taken(*proto.mutable_sequence_values(), name, *type.held);
  } else {
    out = each_taken(*proto.mutable_optional_values(), name, *type.held);
  }
  if (out.size() == static_cast<size_t>(all)) return out;
  throw Error(ErrorKind::Usage, cat(printable(name), " holds elements of another kind"))
      .found(cat(all - static_cast<int>(out.size()), " of ", all, " elements"))
      .expected(kind == ValueType::kTensor     ? "tensors"
                : kind == ValueType::kSequence ? "sequences"
                                               : "optional values");
}

Any taken(schema::OptionalProto& proto, std::string_view name, const ValueType& type) {
  constexpr int64_t kNone = 0, kSome = 1;  // the places of option[T]'s constructors
  const ValueType::Kind kind = held_kind(type, name);
  Any value;
  if (kind == ValueType::kTensor && proto.has_tensor_value()) {
    value = taken(*proto.mutable_tensor_value(), name);
  } else if (kind == ValueType::kSequence && proto.has_sequence_value()) {
    value = taken(*proto.mutable_sequence_value(), name, *type.held);
  } else if (kind == ValueType::kOptional && proto.has_optional_value()) {
    value = taken(*proto.mutable_optional_value(), name, *type.held);
  } else {
    return CellObj::of(kNone, size_t{0});
  }
  return CellObj::of(kSome, std::span<const Any>(&value, 1));
}

}  // namespace

Tensor decode_tensor(std::string_view bytes, std::string_view name) {
  schema::TensorProto proto;
  const bool parsed = parse(bytes, name, "tensor", &proto);
  if ((!parsed || proto.has_segment() || dtype_of(proto.data_type()) == i8) &&
      holds_sequence_or_optional(bytes)) {
    throw Error(ErrorKind::Usage, cat(printable(name), " holds a sequence or an optional value"))
        .expected("a tensor");
  }
  if (!parsed) {
    throw damaged(name, "tensor").found(cat(bytes.size(), " bytes that are not a TensorProto"));
  }
  return taken(proto, name);
}

Any decode_value(std::string_view bytes, std::string_view name, const ValueType& type) {
  if (type.kind == ValueType::kSequence) {
    schema::SequenceProto proto;
    require_parse(bytes, name, "sequence", "SequenceProto", &proto);
    return taken(proto, name, type);
  }
  if (type.kind == ValueType::kOptional) {
    schema::OptionalProto proto;
    require_parse(bytes, name, "optional value", "OptionalProto", &proto);
    return taken(proto, name, type);
  }
  return decode_tensor(bytes, name);
}

std::string encode_tensor(const Tensor& tensor, std::string_view tensor_name) {
  schema::TensorProto proto;
  for (int64_t d : tensor.shape()) proto.add_dims(d);
  int32_t type = data_type_of(tensor.dtype());
  if (type == 0) {
    throw Error(ErrorKind::Unsupported, cat("ONNX has no type for ", to_text(tensor.dtype())));
  }
  proto.set_data_type(type);
  if (!tensor_name.empty()) proto.set_name(std::string(tensor_name));
  if (is_string_tensor(tensor)) {
    const Strings strings(tensor);
    for (int64_t i = 0; i < strings.size(); ++i) proto.add_string_data(std::string(strings[i]));
  } else if (tensor.dtype().bits < 8) {
    proto.set_raw_data(pack_elements(tensor));
  } else {
    proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
  }
  std::string out;
  if (!proto.SerializeToString(&out)) {
    throw Error(ErrorKind::Unsupported, "a tensor of 2 GiB or more does not fit a TensorProto");
  }
  return out;
}

namespace {

template <class Decode>
auto read_file(const std::string& path, const Decode& decode) {
  const std::string name = std::filesystem::path(path).filename().string();
  const Ref<StorageObj> file = map_file(path);
  return decode(std::string_view(static_cast<const char*>(file->data), file->size), name);
}

}  // namespace

Tensor read_tensor_file(const std::string& path) {
  return read_file(path, decode_tensor);
}

Any read_value_file(const std::string& path, const ValueType& type) {
  return read_file(path, [&](std::string_view bytes, const std::string& name) {
    return decode_value(bytes, name, type);
  });
}

}  // namespace tenon::onnx
