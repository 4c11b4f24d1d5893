// An ONNX model as plain data without protobuf: read_model makes it and the importer walks it.
//
// Only the well-formedness of the data is checked: names may clash, graphs may have cycles,
// operators may not exist. Tensor data is shared, never copied: it lies in a mapped external file
// or in the parsed bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "object/tensor.h"

namespace tenon::onnx {

// A constant tensor. If its element type isn't implemented, it holds no tensor but a problem.
struct TensorData {
  std::string name;
  int32_t type = 0;  // TensorProto.DataType
  std::vector<int64_t> dims;
  Tensor tensor;        // null if `problem` is set
  std::string problem;  // "float6e2m3 is not implemented"
};

// A constant of which most elements are 0.
struct SparseData {
  TensorData values;          // a list; its name is that of the constant
  TensorData indices;         // [n] of places in row-major order, or [n, rank]
  std::vector<int64_t> dims;  // of the dense tensor
};

struct Dimension {
  int64_t value = -1;  // -1: symbolic or unknown
  std::string symbol;  // empty: unknown
};

// The declared type of a value.
struct ValueType {
  enum Kind { kNone, kTensor, kSequence, kMap, kOptional, kSparse, kOpaque };
  Kind kind = kNone;
  int32_t element = 0;  // TensorProto.DataType of a tensor, or of a map's keys
  bool has_shape = false;
  std::vector<Dimension> shape;
  std::shared_ptr<const ValueType> held;  // what a sequence, a map or an optional value holds
};

struct Value {
  std::string name;
  ValueType type;
};

struct Graph;

struct Attribute {
  // As AttributeProto.AttributeType.
  enum Kind {
    kUndefined,
    kFloat,
    kInt,
    kString,
    kTensor,
    kGraph,
    kFloats,
    kInts,
    kStrings,
    kTensors,
    kGraphs,
    kSparse,
    kSparses,
    kType,
    kTypes,
  };
  std::string name;
  std::string reference;  // inside a function: the call's attribute that has the value
  Kind kind = kUndefined;
  double f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::shared_ptr<const TensorData> tensor;
  std::shared_ptr<const SparseData> sparse;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const ValueType> type;
};

struct Node {
  std::string name;  // never empty: an unnamed node is "<operator>_<index in its graph>"
  std::string op, domain, overload;
  std::vector<std::string> inputs, outputs;  // "": absent
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<TensorData> initializers;
  std::vector<SparseData> sparse_initializers;
  std::vector<Value> inputs, outputs;

  // Of dense and sparse ones. An input of such a name is a constant.
  std::set<std::string> initializer_names() const;
};

// Versions of operators by domain; "" is ai.onnx.
using OpsetImports = std::map<std::string, int64_t>;

struct ModelFunction {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // without default
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  OpsetImports opsets;
};

// What a model says about itself. Nothing of it changes what the model computes.
struct ModelMetadata {
  std::string producer, domain, description, graph_description;
  int64_t version = 0;
  std::map<std::string, std::string> properties;
};

struct Model {
  std::string file;  // its name in errors
  int64_t ir_version = 0;
  ModelMetadata metadata;
  OpsetImports opsets;
  Graph graph;
  std::vector<ModelFunction> functions;
};

// "float8e4m3fn", or "type 77" for an unknown number.
std::string data_type_name(int32_t type);
// The dtype of tensors of this type; nullopt if it isn't implemented.
std::optional<DataType> dtype_of(int32_t type);
// The inverse of dtype_of; 0 if ONNX has no such type.
int32_t data_type_of(DataType dtype);

}  // namespace tenon::onnx
