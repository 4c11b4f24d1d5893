#include "import/onnx/tensor_file.h"

#include <filesystem>
#include <limits>

#include "import/onnx/mapped_file.h"
#include "import/onnx/proto_tensor.h"

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

}  // namespace

Tensor decode_tensor(std::string_view bytes, std::string_view name) {
  Error damaged(ErrorKind::Damaged, cat(printable(name), " is not a serialized ONNX tensor"));
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw damaged.found(cat(bytes.size(), " bytes")).expected("less than 2 GiB");
  }
  schema::TensorProto proto;
  bool parsed = proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if ((!parsed || proto.has_segment() || dtype_of(proto.data_type()) == i8) &&
      holds_sequence_or_optional(bytes)) {
    throw Error(ErrorKind::Unsupported,
                cat(printable(name), " holds a sequence or an optional value"))
        .help("sequences and optional values are not implemented");
  }
  if (!parsed) throw damaged.found(cat(bytes.size(), " bytes that are not a TensorProto"));
  TensorData data = take_tensor(proto, std::string(name), nullptr);
  if (!data.tensor) {
    if (data.type == schema::TensorProto::UNDEFINED) {
      throw damaged.found("no element type");
    }
    throw Error(ErrorKind::Unsupported, cat(printable(name), ": ", data.problem));
  }
  return data.tensor;
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
  proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
  std::string out;
  if (!proto.SerializeToString(&out)) {
    throw Error(ErrorKind::Unsupported, "a tensor of 2 GiB or more does not fit a TensorProto");
  }
  return out;
}

Tensor read_tensor_file(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  Ref<StorageObj> file = map_file(path);
  return decode_tensor({static_cast<const char*>(file->data), file->size}, name);
}

}  // namespace tenon::onnx
