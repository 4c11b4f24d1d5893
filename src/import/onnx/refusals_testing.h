// For tests of errors of nodes that break ONNX's rules or aren't implemented: one row for each such
// message of the ops_*.cc files.
#pragma once

#include <gtest/gtest.h>

#include "graph/op/register.h"
#include "import/onnx/import_model.h"
#include "import/onnx/model_maker_testing.h"

namespace tenon::onnx {
using M = ModelMaker;

// An operand is a float32 input "f 2 n *", an int64 input "i 2", a bool input "b 2", a uint8 input
// "u 2", a string input "s 2", an input of unknown rank "f ?", a sequence of such values "[f 2", a
// map from such keys to such values "{s f", an integer constant "= 0 -1", a float constant "~ 0.5
// 2" or of rank 0 "~ 0.5", or "" for none.
struct Refusal {
  const char* op;
  int64_t opset;
  std::vector<std::string> operands;
  std::vector<Attribute> attributes;
  std::string found;
  std::string expected = "";
  size_t outputs = 1;
  const char* domain = "";
  int64_t domain_version = 1;
};

inline std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Adds the operand to the model and returns its name.
inline std::string add_operand(M& m, const std::string& text, size_t index) {
  if (text.empty()) return "";
  std::string name = cat("x", index);
  std::vector<std::string> words = words_of(text);
  const auto type_of = [](char kind) {
    return kind == 'i' ? 7 : kind == 'b' ? 9 : kind == 'u' ? 2 : kind == 's' ? 8 : 1;
  };
  if (words[0][0] == '{') {
    m.model.graph.inputs.push_back(M::map_of(name, type_of(words[0][1]), type_of(words[1][0])));
    return name;
  }
  const bool sequence = words[0][0] == '[';
  const char kind = words[0][sequence ? 1 : 0];
  words.erase(words.begin());
  if (kind == '=') {
    std::vector<int64_t> values;
    values.reserve(words.size());
    for (const std::string& w : words) values.push_back(std::stoll(w));
    m.ints(name, values);
    return name;
  }
  if (kind == '~') {
    std::vector<float> values;
    values.reserve(words.size());
    for (const std::string& w : words) values.push_back(std::stof(w));
    TensorData t;
    t.name = name;
    t.type = 1;
    if (values.size() != 1) t.dims = {static_cast<int64_t>(values.size())};
    t.tensor =
        Tensor::copy_of(std::span<const int64_t>(t.dims), f32, std::span<const float>(values));
    m.model.graph.initializers.push_back(t);
    return name;
  }
  Value v = M::value(name, type_of(kind), {});
  for (const std::string& w : words) {
    if (w == "?") {
      v.type.has_shape = false;
      break;
    }
    Dimension d;
    if (std::isdigit(static_cast<unsigned char>(w[0]))) {
      d.value = std::stoll(w);
    } else {
      d.symbol = w;
    }
    v.type.shape.push_back(d);
  }
  m.model.graph.inputs.push_back(sequence ? M::sequence_of(v) : v);
  return name;
}

inline M model_of(const Refusal& r) {
  M m(r.opset);
  if (*r.domain != '\0') m.model.opsets[r.domain] = r.domain_version;
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < r.operands.size(); ++i) {
    inputs.push_back(add_operand(m, r.operands[i], i));
  }
  for (size_t i = 0; i < r.outputs; ++i) outputs.push_back(cat("y", i));
  m.node(r.op, inputs, outputs, r.attributes, r.domain).output("y0");
  return m;
}

inline Graph body(size_t inputs, const std::vector<Node>& nodes,
                  const std::vector<std::string>& outputs) {
  Graph g;
  const int32_t types[] = {7, 9, 1};
  for (size_t i = 0; i < inputs; ++i) {
    g.inputs.push_back(M::value(cat("in", i), types[std::min<size_t>(i, 2)], {}));
  }
  g.nodes = nodes;
  for (const std::string& name : outputs) {
    Value v;
    v.name = name;
    g.outputs.push_back(v);
  }
  return g;
}

inline Attribute empty_tensor() {
  Attribute a = M::constant("value", {});
  a.tensor = nullptr;
  return a;
}

inline Node identity(const std::string& from, const std::string& to) {
  return M::make_node("Identity", {from}, {to});
}

class Refusals : public testing::Test {
 protected:
  static void broken(const std::vector<Refusal>& refusals) {
    for (const Refusal& r : refusals) {
      SCOPED_TRACE(cat(r.op, "-", r.opset, ": ", r.found));
      try {
        import_model(model_of(r).model);
        ADD_FAILURE() << "it was imported";
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Usage) << e.render();
        EXPECT_EQ(e.message(), cat("the ", r.op, " node breaks ONNX's rules"));
        std::string found, expected, where;
        for (const Error::Row& row : e.rows()) {
          if (row.label == "found") found = row.text;
          if (row.label == "expected") expected = row.text;
          if (row.label == "where") where = row.text;
        }
        EXPECT_EQ(found, r.found);
        EXPECT_EQ(expected, r.expected);
        EXPECT_TRUE(where.starts_with(cat("node '/", r.op, "' ("))) << where;
      }
    }
  }

  static void unsupported(const std::vector<Refusal>& refusals) {
    for (const Refusal& r : refusals) {
      SCOPED_TRACE(cat(r.op, "-", r.opset, ": ", r.found));
      ModelReport report = inspect_model(model_of(r).model);
      EXPECT_EQ(report.problem, "");
      ASSERT_EQ(report.unsupported.size(), 1u);
      EXPECT_EQ(report.unsupported[0].name, cat("/", r.op));
      EXPECT_EQ(report.unsupported[0].reason, r.found);
    }
  }
};

inline const std::string kX = "f 1 4 8 8";

// A row for an operator of another domain than ONNX's, whose opset is 17 then.
struct DomainRefusal {
  const char* op;
  std::vector<std::string> operands;
  std::vector<Attribute> attributes;
  std::string found, expected = "";
  int64_t version = 1;
  size_t outputs = 1;
};

// Refusals of operators of the domain Self::kDomain.
template <class Self>
class RefusalsOfDomain : public Refusals {
 protected:
  static void SetUpTestSuite() { graph::register_operators(); }

  static void broken(const std::vector<DomainRefusal>& rows) { Refusals::broken(refusals(rows)); }
  static void unsupported(const std::vector<DomainRefusal>& rows) {
    Refusals::unsupported(refusals(rows));
  }

 private:
  static std::vector<Refusal> refusals(const std::vector<DomainRefusal>& rows) {
    std::vector<Refusal> out;
    out.reserve(rows.size());
    for (const DomainRefusal& r : rows) {
      out.push_back({r.op, 17, r.operands, r.attributes, r.found, r.expected, r.outputs,
                     Self::kDomain, r.version});
    }
    return out;
  }
};

}  // namespace tenon::onnx
