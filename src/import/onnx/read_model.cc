#include "import/onnx/read_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <exception>
#include <filesystem>
#include <limits>

#include "import/onnx/mapped_file.h"
#include "import/onnx/message_memory.h"
#include "import/onnx/proto_tensor.h"
#include "object/counted_bytes.h"
#include "support/poll.h"

namespace tenon::onnx {

namespace {

// Copies the messages' structure and moves their payloads. The parser's limit bounds the recursion.
class Reader {
 public:
  explicit Reader(ExternalFiles* external) : external_(external) {}

  Model model(schema::ModelProto& m, const std::string& file) {
    Model out;
    out.file = file;
    out.ir_version = m.ir_version();
    out.metadata = metadata(m);
    out.opsets = opsets(m.opset_import());
    out.graph = graph(*m.mutable_graph());
    for (auto& f : *m.mutable_functions()) out.functions.push_back(function(f));
    return out;
  }

 private:
  static ModelMetadata metadata(const schema::ModelProto& m) {
    ModelMetadata out;
    out.producer = m.producer_name();
    out.domain = m.domain();
    out.description = m.doc_string();
    out.graph_description = m.graph().doc_string();
    out.version = m.model_version();
    for (const auto& p : m.metadata_props()) out.properties[p.key()] = p.value();
    return out;
  }

  template <class F>
  static OpsetImports opsets(const F& field) {
    OpsetImports out;
    for (const auto& o : field) out[o.domain() == "ai.onnx" ? "" : o.domain()] = o.version();
    return out;
  }

  Graph graph(schema::GraphProto& g) {
    Graph out;
    out.name = g.name();
    out.nodes = nodes(*g.mutable_node());
    for (auto& t : *g.mutable_initializer()) {
      poll();
      out.initializers.push_back(take_tensor(t, t.name(), external_));
    }
    for (auto& t : *g.mutable_sparse_initializer()) {
      poll();
      out.sparse_initializers.push_back(sparse(t, t.values().name()));
    }
    for (const auto& v : g.input()) out.inputs.push_back(value(v));
    for (const auto& v : g.output()) out.outputs.push_back(value(v));
    return out;
  }

  SparseData sparse(schema::SparseTensorProto& t, const std::string& what) {
    SparseData out;
    out.values = take_tensor(*t.mutable_values(), what, external_);
    out.indices = take_tensor(*t.mutable_indices(), cat(what, ", indices"), external_);
    out.dims.assign(t.dims().begin(), t.dims().end());
    return out;
  }

  ModelFunction function(schema::FunctionProto& f) {
    ModelFunction out;
    out.domain = f.domain() == "ai.onnx" ? "" : f.domain();
    out.name = f.name();
    out.overload = f.overload();
    out.inputs.assign(f.input().begin(), f.input().end());
    out.outputs.assign(f.output().begin(), f.output().end());
    out.attributes.assign(f.attribute().begin(), f.attribute().end());
    for (auto& a : *f.mutable_attribute_proto()) out.defaults.push_back(attribute(a, f.name()));
    out.nodes = nodes(*f.mutable_node());
    out.opsets = opsets(f.opset_import());
    return out;
  }

  template <class F>
  std::vector<Node> nodes(F& field) {
    std::vector<Node> out;
    out.reserve(static_cast<size_t>(field.size()));
    for (auto& n : field) {
      poll();
      Node node;
      node.op = n.op_type();
      node.domain = n.domain() == "ai.onnx" ? "" : n.domain();
      node.overload = n.overload();
      node.name = n.name().empty() ? cat(node.op, "_", out.size()) : n.name();
      node.inputs.assign(n.input().begin(), n.input().end());
      node.outputs.assign(n.output().begin(), n.output().end());
      for (auto& a : *n.mutable_attribute()) node.attributes.push_back(attribute(a, node.name));
      out.push_back(std::move(node));
    }
    return out;
  }

  Attribute attribute(schema::AttributeProto& a, const std::string& owner) {
    Attribute out;
    out.name = a.name();
    out.reference = a.ref_attr_name();
    out.kind = kind_of(a);
    out.f = a.f();
    out.i = a.i();
    out.s = a.s();
    out.floats.assign(a.floats().begin(), a.floats().end());
    out.ints.assign(a.ints().begin(), a.ints().end());
    out.strings.assign(a.strings().begin(), a.strings().end());
    if (a.has_t()) {
      out.tensor = std::make_shared<TensorData>(
          take_tensor(*a.mutable_t(), cat(owner, ", attribute ", a.name()), external_));
    }
    if (a.has_sparse_tensor()) {
      out.sparse = std::make_shared<SparseData>(
          sparse(*a.mutable_sparse_tensor(), cat(owner, ", attribute ", a.name())));
    }
    if (a.has_g()) out.graph = std::make_shared<Graph>(graph(*a.mutable_g()));
    if (a.has_tp()) out.type = std::make_shared<ValueType>(type(a.tp()));
    return out;
  }

  // IR version 1 has no type field; the field that has a value determines the type.
  static Attribute::Kind kind_of(const schema::AttributeProto& a) {
    if (a.type() != schema::AttributeProto::UNDEFINED || !a.ref_attr_name().empty()) {
      switch (a.type()) {
        case schema::AttributeProto::UNDEFINED:
          return Attribute::kUndefined;
        case schema::AttributeProto::FLOAT:
          return Attribute::kFloat;
        case schema::AttributeProto::INT:
          return Attribute::kInt;
        case schema::AttributeProto::STRING:
          return Attribute::kString;
        case schema::AttributeProto::TENSOR:
          return Attribute::kTensor;
        case schema::AttributeProto::GRAPH:
          return Attribute::kGraph;
        case schema::AttributeProto::FLOATS:
          return Attribute::kFloats;
        case schema::AttributeProto::INTS:
          return Attribute::kInts;
        case schema::AttributeProto::STRINGS:
          return Attribute::kStrings;
        case schema::AttributeProto::TENSORS:
          return Attribute::kTensors;
        case schema::AttributeProto::GRAPHS:
          return Attribute::kGraphs;
        case schema::AttributeProto::SPARSE_TENSOR:
          return Attribute::kSparse;
        case schema::AttributeProto::SPARSE_TENSORS:
          return Attribute::kSparses;
        case schema::AttributeProto::TYPE_PROTO:
          return Attribute::kType;
        case schema::AttributeProto::TYPE_PROTOS:
          return Attribute::kTypes;
      }
    }
    if (a.has_f()) return Attribute::kFloat;
    if (a.has_i()) return Attribute::kInt;
    if (a.has_s()) return Attribute::kString;
    if (a.has_t()) return Attribute::kTensor;
    if (a.has_g()) return Attribute::kGraph;
    if (a.floats_size() > 0) return Attribute::kFloats;
    if (a.ints_size() > 0) return Attribute::kInts;
    if (a.strings_size() > 0) return Attribute::kStrings;
    return Attribute::kUndefined;
  }

  static Value value(const schema::ValueInfoProto& v) { return {v.name(), type(v.type())}; }

  static ValueType type(const schema::TypeProto& t) {
    ValueType out;
    switch (t.value_case()) {
      case schema::TypeProto::kTensorType:
        out.kind = ValueType::kTensor;
        out.element = t.tensor_type().elem_type();
        out.has_shape = t.tensor_type().has_shape();
        for (const auto& d : t.tensor_type().shape().dim()) {
          Dimension dim;
          if (d.has_dim_value()) dim.value = d.dim_value() < 0 ? -1 : d.dim_value();
          if (d.has_dim_param()) dim.symbol = d.dim_param();
          out.shape.push_back(std::move(dim));
        }
        break;
      case schema::TypeProto::kSequenceType:
        out.kind = ValueType::kSequence;
        out.held = std::make_shared<ValueType>(type(t.sequence_type().elem_type()));
        break;
      case schema::TypeProto::kMapType:
        out.kind = ValueType::kMap;
        out.element = t.map_type().key_type();
        out.held = std::make_shared<ValueType>(type(t.map_type().value_type()));
        break;
      case schema::TypeProto::kOptionalType:
        out.kind = ValueType::kOptional;
        out.held = std::make_shared<ValueType>(type(t.optional_type().elem_type()));
        break;
      case schema::TypeProto::kSparseTensorType:
        out.kind = ValueType::kSparse;
        break;
      case schema::TypeProto::kOpaqueType:
        out.kind = ValueType::kOpaque;
        break;
      case schema::TypeProto::VALUE_NOT_SET:
        break;
    }
    return out;
  }

  ExternalFiles* external_;
};

// The bytes in blocks, between which it asks whether to stop. Protobuf can't be left by an
// exception, but the input can end.
class PolledInput final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PolledInput(std::string_view bytes)
      : blocks_(bytes.data(), static_cast<int>(bytes.size()), kBlock) {}

  bool Next(const void** data, int* size) override {
    if (stopped_) return false;
    try {
      poll();
    } catch (...) {
      stopped_ = std::current_exception();
      return false;
    }
    return blocks_.Next(data, size);
  }
  void BackUp(int count) override { blocks_.BackUp(count); }
  bool Skip(int count) override { return blocks_.Skip(count); }
  int64_t ByteCount() const override { return blocks_.ByteCount(); }

  void rethrow() const {
    if (stopped_) std::rethrow_exception(stopped_);
  }

 private:
  static constexpr int kBlock = 1 << 20;
  google::protobuf::io::ArrayInputStream blocks_;
  std::exception_ptr stopped_;
};

}  // namespace

Model parse_model(std::string_view bytes, const std::string& name, const std::string& directory) {
  Error damaged(ErrorKind::Damaged, cat(printable(name), " is not an ONNX model"));
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw damaged.found(cat(bytes.size(), " bytes"))
        .expected("less than 2 GiB")
        .help("export it with external data");
  }
  const CountedBytes parsing(message_memory(bytes));
  schema::ModelProto proto;
  PolledInput input(bytes);
  google::protobuf::io::CodedInputStream coded(&input);
  coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
  coded.SetRecursionLimit(kMaxMessageDepth);
  const bool parsed = proto.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
  input.rethrow();
  if (!parsed) {
    throw damaged.found(cat(bytes.size(), " bytes that are not a ModelProto"))
        .help("the file may be cut off; compare its size with the original's");
  }
  if (!proto.has_graph()) {
    throw damaged.found(bytes.empty() ? "an empty file" : "a message without a graph")
        .expected("a ModelProto with a graph")
        .help("the file may be cut off; compare its size with the original's");
  }
  if (proto.ir_version() > kNewestIrVersion) {
    throw Error(ErrorKind::Unsupported, cat(printable(name), " has a later ONNX format version"))
        .found(cat("IR version ", proto.ir_version()))
        .expected(cat("at most ", kNewestIrVersion))
        .help("export it with an earlier version of the onnx package");
  }
  ExternalFiles external(directory);
  try {
    return Reader(directory.empty() ? nullptr : &external).model(proto, name);
  } catch (Error& e) {
    e.first_row("model", printable(name));
    throw;
  }
}

Model read_model(const std::string& path) {
  std::filesystem::path p(path);
  std::string name = p.filename().string();
  Ref<StorageObj> file = map_file(path);
  std::string directory = p.has_parent_path() ? p.parent_path().string() : ".";
  return parse_model({static_cast<const char*>(file->data), file->size}, name, directory);
}

bool begins_like_model(std::string_view bytes) {
  using Proto = schema::ModelProto;
  if (bytes.empty()) return false;
  constexpr int kVarint = 0, kLengthDelimited = 2;  // protobuf's wire types
  const auto tag = static_cast<unsigned char>(bytes[0]);
  const int field = tag >> 3, wire_type = tag & 7;
  switch (field) {
    case Proto::kIrVersionFieldNumber:
    case Proto::kModelVersionFieldNumber:
      return wire_type == kVarint;
    case Proto::kProducerNameFieldNumber:
    case Proto::kProducerVersionFieldNumber:
    case Proto::kDomainFieldNumber:
    case Proto::kDocStringFieldNumber:
    case Proto::kGraphFieldNumber:
    case Proto::kOpsetImportFieldNumber:
    case Proto::kMetadataPropsFieldNumber:
      return wire_type == kLengthDelimited;
    default:
      return false;
  }
}

}  // namespace tenon::onnx
