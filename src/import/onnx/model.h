// An ONNX model as plain data, freed of protobuf: what read_model makes and the importer walks.
//
// Nothing here has been checked beyond its own well-formedness: names may clash, graphs may have
// cycles, operators may not exist. Tensor data is shared, never copied: it lies in the mapping of
// an external file or in the bytes that parsing made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "object/tensor.h"

namespace tenon::onnx {

// A constant tensor. One whose elements the importer has no type for holds no tensor and says why.
struct TensorData {
  std::string name;
  int32_t type = 0;  // TensorProto.DataType
  std::vector<int64_t> dims;
  Tensor tensor;                     // null when `problem` is set
  std::string problem;               // "float8e4m3fn is not implemented"
  std::vector<std::string> strings;  // of a string tensor, whose `problem` is set too
};

struct Dimension {
  int64_t value = -1;  // -1: symbolic or unknown
  std::string symbol;  // empty: unknown
};

// The declared type of a value.
struct ValueType {
  enum Kind { kNone, kTensor, kSequence, kMap, kOptional, kSparse, kOpaque };
  Kind kind = kNone;
  int32_t element = 0;  // TensorProto.DataType of a tensor
  bool has_shape = false;
  std::vector<Dimension> shape;
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
  std::string reference;  // inside a function: the caller's attribute that gives the value
  Kind kind = kUndefined;
  double f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::shared_ptr<const TensorData> tensor;
  std::shared_ptr<const Graph> graph;
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
  std::vector<std::string> sparse_initializers;  // names; sparse tensors are refused
  std::vector<Value> inputs, outputs;
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

struct Model {
  std::string file;  // its name in errors
  int64_t ir_version = 0;
  std::string producer;
  OpsetImports opsets;
  Graph graph;
  std::vector<ModelFunction> functions;
};

// "float8e4m3fn", or "type 77" for a number that the format doesn't know.
std::string data_type_name(int32_t type);
// The type as a tensor's; nothing for those that aren't implemented.
std::optional<DataType> dtype_of(int32_t type);
// The inverse; 0 for a type that ONNX has no number for.
int32_t data_type_of(DataType dtype);

}  // namespace tenon::onnx
