#include "import/onnx/message_memory.h"

#include <cstdint>

#include "import/onnx/proto_tensor.h"
#include "import/onnx/read_model.h"
#include "support/poll.h"

namespace tenon::onnx {
namespace {

// What a field holds: a message, which is looked into, or what is counted by its length.
enum class Kind : uint8_t {
  kModel,
  kTraining,
  kGraph,
  kNode,
  kAttribute,
  kFunction,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kType,
  kTypeOfTensor,
  kTypeOfElements,
  kShape,
  kNumbers,  // packed: a byte can be a number of eight
  kNotes,    // messages that importing doesn't read: a message in two bytes
  kBytes,    // a string, floats, raw data
};

struct Field {
  Kind of;
  int number;
  Kind holds;
};

// Fields that aren't listed hold bytes.
constexpr Field kFields[] = {
    {Kind::kModel, schema::ModelProto::kGraphFieldNumber, Kind::kGraph},
    {Kind::kModel, schema::ModelProto::kFunctionsFieldNumber, Kind::kFunction},
    {Kind::kModel, schema::ModelProto::kTrainingInfoFieldNumber, Kind::kTraining},
    {Kind::kModel, schema::ModelProto::kOpsetImportFieldNumber, Kind::kNotes},
    {Kind::kModel, schema::ModelProto::kMetadataPropsFieldNumber, Kind::kNotes},
    {Kind::kModel, schema::ModelProto::kConfigurationFieldNumber, Kind::kNotes},
    {Kind::kTraining, schema::TrainingInfoProto::kInitializationFieldNumber, Kind::kGraph},
    {Kind::kTraining, schema::TrainingInfoProto::kAlgorithmFieldNumber, Kind::kGraph},
    {Kind::kTraining, schema::TrainingInfoProto::kInitializationBindingFieldNumber, Kind::kNotes},
    {Kind::kTraining, schema::TrainingInfoProto::kUpdateBindingFieldNumber, Kind::kNotes},
    {Kind::kGraph, schema::GraphProto::kNodeFieldNumber, Kind::kNode},
    {Kind::kGraph, schema::GraphProto::kInitializerFieldNumber, Kind::kTensor},
    {Kind::kGraph, schema::GraphProto::kSparseInitializerFieldNumber, Kind::kSparseTensor},
    {Kind::kGraph, schema::GraphProto::kInputFieldNumber, Kind::kValueInfo},
    {Kind::kGraph, schema::GraphProto::kOutputFieldNumber, Kind::kValueInfo},
    {Kind::kGraph, schema::GraphProto::kValueInfoFieldNumber, Kind::kValueInfo},
    {Kind::kGraph, schema::GraphProto::kQuantizationAnnotationFieldNumber, Kind::kNotes},
    {Kind::kGraph, schema::GraphProto::kMetadataPropsFieldNumber, Kind::kNotes},
    {Kind::kNode, schema::NodeProto::kAttributeFieldNumber, Kind::kAttribute},
    {Kind::kNode, schema::NodeProto::kMetadataPropsFieldNumber, Kind::kNotes},
    {Kind::kNode, schema::NodeProto::kDeviceConfigurationsFieldNumber, Kind::kNotes},
    {Kind::kAttribute, schema::AttributeProto::kTFieldNumber, Kind::kTensor},
    {Kind::kAttribute, schema::AttributeProto::kTensorsFieldNumber, Kind::kTensor},
    {Kind::kAttribute, schema::AttributeProto::kGFieldNumber, Kind::kGraph},
    {Kind::kAttribute, schema::AttributeProto::kGraphsFieldNumber, Kind::kGraph},
    {Kind::kAttribute, schema::AttributeProto::kSparseTensorFieldNumber, Kind::kSparseTensor},
    {Kind::kAttribute, schema::AttributeProto::kSparseTensorsFieldNumber, Kind::kSparseTensor},
    {Kind::kAttribute, schema::AttributeProto::kTpFieldNumber, Kind::kType},
    {Kind::kAttribute, schema::AttributeProto::kTypeProtosFieldNumber, Kind::kType},
    {Kind::kAttribute, schema::AttributeProto::kIntsFieldNumber, Kind::kNumbers},
    {Kind::kFunction, schema::FunctionProto::kNodeFieldNumber, Kind::kNode},
    {Kind::kFunction, schema::FunctionProto::kAttributeProtoFieldNumber, Kind::kAttribute},
    {Kind::kFunction, schema::FunctionProto::kValueInfoFieldNumber, Kind::kValueInfo},
    {Kind::kFunction, schema::FunctionProto::kOpsetImportFieldNumber, Kind::kNotes},
    {Kind::kFunction, schema::FunctionProto::kMetadataPropsFieldNumber, Kind::kNotes},
    {Kind::kTensor, schema::TensorProto::kDimsFieldNumber, Kind::kNumbers},
    {Kind::kTensor, schema::TensorProto::kInt32DataFieldNumber, Kind::kNumbers},
    {Kind::kTensor, schema::TensorProto::kInt64DataFieldNumber, Kind::kNumbers},
    {Kind::kTensor, schema::TensorProto::kUint64DataFieldNumber, Kind::kNumbers},
    {Kind::kTensor, schema::TensorProto::kExternalDataFieldNumber, Kind::kNotes},
    {Kind::kTensor, schema::TensorProto::kMetadataPropsFieldNumber, Kind::kNotes},
    {Kind::kSparseTensor, schema::SparseTensorProto::kValuesFieldNumber, Kind::kTensor},
    {Kind::kSparseTensor, schema::SparseTensorProto::kIndicesFieldNumber, Kind::kTensor},
    {Kind::kSparseTensor, schema::SparseTensorProto::kDimsFieldNumber, Kind::kNumbers},
    {Kind::kValueInfo, schema::ValueInfoProto::kTypeFieldNumber, Kind::kType},
    {Kind::kValueInfo, schema::ValueInfoProto::kMetadataPropsFieldNumber, Kind::kNotes},
    {Kind::kType, schema::TypeProto::kTensorTypeFieldNumber, Kind::kTypeOfTensor},
    {Kind::kType, schema::TypeProto::kSparseTensorTypeFieldNumber, Kind::kTypeOfTensor},
    {Kind::kType, schema::TypeProto::kSequenceTypeFieldNumber, Kind::kTypeOfElements},
    {Kind::kType, schema::TypeProto::kOptionalTypeFieldNumber, Kind::kTypeOfElements},
    {Kind::kType, schema::TypeProto::kMapTypeFieldNumber, Kind::kTypeOfElements},
    {Kind::kTypeOfTensor, schema::TypeProto::Tensor::kShapeFieldNumber, Kind::kShape},
    {Kind::kTypeOfElements, schema::TypeProto::Sequence::kElemTypeFieldNumber, Kind::kType},
    {Kind::kTypeOfElements, schema::TypeProto::Map::kValueTypeFieldNumber, Kind::kType},
    {Kind::kShape, schema::TensorShapeProto::kDimFieldNumber, Kind::kNotes},
};

// A message with its place in a list, and the importer's copy of it (model.h).
constexpr size_t kMessage = 640;
static_assert(sizeof(schema::NodeProto) + sizeof(Node) + 64 < kMessage);
static_assert(sizeof(schema::AttributeProto) + sizeof(Attribute) + 64 < kMessage);
static_assert(sizeof(schema::TensorProto) + sizeof(TensorData) + 64 < kMessage);
// A string with its place in a list, twice.
constexpr size_t kString = 96;

Kind held_by(Kind message, uint64_t number) {
  for (const Field& f : kFields) {
    if (f.of == message && static_cast<uint64_t>(f.number) == number) return f.holds;
  }
  return Kind::kBytes;
}

class Scan {
 public:
  size_t run(std::string_view model) {
    message(model, Kind::kModel, 0);
    return bytes_;
  }

 private:
  // What is not a message ends its scan: protobuf will refuse it there.
  void message(std::string_view in, Kind kind, int depth) {
    if (depth > kMaxMessageDepth) return;
    bytes_ += kMessage;
    while (!in.empty()) {
      ticker_.tick();
      uint64_t tag = 0, length = 0;
      if (!varint(&in, &tag)) return;
      bytes_ += 8;
      switch (tag & 7) {
        case 0:
          if (!varint(&in, &length)) return;
          break;
        case 1:
          if (!skip(&in, 8)) return;
          break;
        case 5:
          if (!skip(&in, 4)) return;
          break;
        case 2: {
          if (!varint(&in, &length) || length > in.size()) return;
          held(in.substr(0, length), held_by(kind, tag >> 3), depth);
          in.remove_prefix(length);
          break;
        }
        default:
          return;
      }
    }
  }

  void held(std::string_view value, Kind kind, int depth) {
    constexpr size_t kOfNumber = 8, kOfNote = 64;
    switch (kind) {
      case Kind::kBytes:
        bytes_ += kString + value.size();
        return;
      case Kind::kNumbers:
        bytes_ += kOfNumber * value.size();
        return;
      case Kind::kNotes:
        bytes_ += 2 * kString + kOfNote * value.size();
        return;
      default:
        message(value, kind, depth + 1);
    }
  }

  static bool varint(std::string_view* in, uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(in->front());
      in->remove_prefix(1);
      *value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  static bool skip(std::string_view* in, size_t bytes) {
    if (bytes > in->size()) return false;
    in->remove_prefix(bytes);
    return true;
  }

  size_t bytes_ = 0;
  Ticker ticker_;
};

}  // namespace

size_t message_memory(std::string_view model) {
  return Scan().run(model);
}

}  // namespace tenon::onnx
