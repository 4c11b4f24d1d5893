// The importer's table of translations of ONNX operators, by domain, name and first version.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/expr.h"

namespace tenon::onnx {

class NodeContext;

// Builds what a node computes and returns all of its outputs; a null output is absent.
using Translate = std::vector<graph::Operand> (*)(NodeContext& cx);

inline constexpr int64_t kNewestOpset = 28;
inline constexpr const char* kMicrosoft = "com.microsoft";
inline constexpr const char* kMl = "ai.onnx.ml";

class OpTable {
 public:
  // The table of all families, which is built on first use.
  static const OpTable& global();

  // Adds an operator for versions of its domain from `since` to the next row of the same name.
  void add(std::string_view op, int64_t since, Translate translate, std::string_view domain = "");
  // Says why an operator, or its versions before the first row, isn't implemented.
  void refuse(std::string_view op, const char* reason, std::string_view domain = "");
  // Null if there is no such operator in that version.
  Translate find(std::string_view domain, std::string_view op, int64_t version) const;
  // Why there isn't: "not implemented", or more if that is known.
  const char* reason_against(std::string_view domain, std::string_view op) const;
  // "Conv" and "com.microsoft:Gelu" with their first versions, in order.
  std::vector<std::pair<std::string, int64_t>> all() const;

 private:
  std::map<std::string, std::map<int64_t, Translate>, std::less<>> rows_;
  std::map<std::string, const char*, std::less<>> reasons_;
};

// One function per family.
void register_elementwise(OpTable& table);
void register_activation(OpTable& table);
void register_reduce(OpTable& table);
void register_norm(OpTable& table);
void register_matmul(OpTable& table);
void register_einsum(OpTable& table);
void register_conv(OpTable& table);
void register_pool(OpTable& table);
void register_shape(OpTable& table);
void register_slice(OpTable& table);
void register_index(OpTable& table);
void register_create(OpTable& table);
void register_resize(OpTable& table);
void register_quantize(OpTable& table);
void register_control(OpTable& table);
void register_sequence(OpTable& table);
void register_loss(OpTable& table);
void register_attention(OpTable& table);
void register_recurrent(OpTable& table);
void register_random(OpTable& table);
void register_sampling(OpTable& table);
void register_signal(OpTable& table);
void register_text(OpTable& table);
void register_microsoft_attention(OpTable& table);
void register_microsoft_decoder(OpTable& table);
void register_microsoft_fused(OpTable& table);
void register_microsoft_norm(OpTable& table);
void register_microsoft_quantized(OpTable& table);
void register_microsoft_weights(OpTable& table);
void register_ml_features(OpTable& table);
void register_ml_linear(OpTable& table);
void register_ml_maps(OpTable& table);
void register_ml_trees(OpTable& table);

}  // namespace tenon::onnx
