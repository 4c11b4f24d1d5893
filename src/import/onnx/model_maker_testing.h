// Builds small models for tests.
#pragma once

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "import/onnx/model.h"

namespace tenon::onnx {

struct ModelMaker {
  Model model;

  explicit ModelMaker(int64_t opset = 17) {
    model.file = "m.onnx";
    model.ir_version = 8;
    model.opsets[""] = opset;
    model.graph.name = "g";
  }

  // A dimension is a number, a symbol, or "" for unknown. `type` is a TensorProto.DataType.
  using Size = std::variant<int, const char*>;
  static Value value(const std::string& name, int32_t type, std::initializer_list<Size> shape) {
    Value v;
    v.name = name;
    v.type.kind = ValueType::kTensor;
    v.type.element = type;
    v.type.has_shape = true;
    for (const Size& s : shape) {
      Dimension d;
      if (const int* n = std::get_if<int>(&s))
        d.value = *n;
      else
        d.symbol = std::get<const char*>(s);
      v.type.shape.push_back(d);
    }
    return v;
  }
  // The value as a sequence of such values.
  static Value sequence_of(Value v) {
    auto held = std::make_shared<ValueType>(std::move(v.type));
    v.type = ValueType();
    v.type.kind = ValueType::kSequence;
    v.type.held = std::move(held);
    return v;
  }
  // A map from keys of a TensorProto.DataType to values of another one.
  static Value map_of(const std::string& name, int32_t key, int32_t value_type) {
    Value v;
    v.name = name;
    v.type.kind = ValueType::kMap;
    v.type.element = key;
    v.type.held = std::make_shared<ValueType>(value("", value_type, {}).type);
    return v;
  }
  ModelMaker& input(const std::string& name, std::initializer_list<Size> shape, int32_t type = 1) {
    model.graph.inputs.push_back(value(name, type, shape));
    return *this;
  }
  ModelMaker& output(const std::string& name) {
    Value v;
    v.name = name;
    model.graph.outputs.push_back(v);
    return *this;
  }
  static TensorData tensor(const std::string& name, const std::vector<int64_t>& values,
                           bool scalar = false) {
    TensorData t;
    t.name = name;
    t.type = 7;
    if (!scalar) t.dims = {static_cast<int64_t>(values.size())};
    t.tensor =
        Tensor::copy_of(std::span<const int64_t>(t.dims), i64, std::span<const int64_t>(values));
    return t;
  }
  ModelMaker& ints(const std::string& name, const std::vector<int64_t>& values,
                   bool scalar = false) {
    model.graph.initializers.push_back(tensor(name, values, scalar));
    return *this;
  }
  static Attribute integer(const std::string& name, int64_t v) {
    Attribute a;
    a.name = name;
    a.kind = Attribute::kInt;
    a.i = v;
    return a;
  }
  static Attribute number(const std::string& name, double v) {
    Attribute a;
    a.name = name;
    a.kind = Attribute::kFloat;
    a.f = v;
    return a;
  }
  static Attribute text(const std::string& name, const std::string& v) {
    Attribute a;
    a.name = name;
    a.kind = Attribute::kString;
    a.s = v;
    return a;
  }
  static Attribute texts(const std::string& name, const std::vector<std::string>& v) {
    Attribute a;
    a.name = name;
    a.kind = Attribute::kStrings;
    a.strings = v;
    return a;
  }
  static Attribute numbers(const std::string& name, const std::vector<double>& v) {
    Attribute a;
    a.name = name;
    a.kind = Attribute::kFloats;
    a.floats = v;
    return a;
  }
  static Attribute constant(const std::string& name, const TensorData& t) {
    Attribute a;
    a.name = name;
    a.kind = Attribute::kTensor;
    a.tensor = std::make_shared<TensorData>(t);
    return a;
  }
  static Attribute list(const std::string& name, const std::vector<int64_t>& v) {
    Attribute a;
    a.name = name;
    a.kind = Attribute::kInts;
    a.ints = v;
    return a;
  }
  static Attribute reference(const std::string& name, const std::string& to) {
    Attribute a;
    a.name = name;
    a.reference = to;
    return a;
  }
  static Attribute body(const std::string& name, const Graph& g) {
    Attribute a;
    a.name = name;
    a.kind = Attribute::kGraph;
    a.graph = std::make_shared<Graph>(g);
    return a;
  }
  static Node make_node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<Attribute>& attributes = {},
                        const std::string& domain = "") {
    Node n;
    n.op = op;
    n.domain = domain;
    n.name = "/" + op;
    n.inputs = inputs;
    n.outputs = outputs;
    n.attributes = attributes;
    return n;
  }
  ModelMaker& node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs,
                   const std::vector<Attribute>& attributes = {}, const std::string& domain = "") {
    model.graph.nodes.push_back(make_node(op, inputs, outputs, attributes, domain));
    return *this;
  }
};

}  // namespace tenon::onnx
