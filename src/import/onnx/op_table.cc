#include "import/onnx/op_table.h"

#include "support/error.h"

namespace tenon::onnx {

namespace {

std::string key(std::string_view domain, std::string_view op) {
  return domain.empty() ? std::string(op) : cat(domain, ":", op);
}

}  // namespace

const OpTable& OpTable::global() {
  static const OpTable table = [] {
    OpTable t;
    register_elementwise(t);
    register_activation(t);
    register_reduce(t);
    register_norm(t);
    register_matmul(t);
    register_einsum(t);
    register_conv(t);
    register_pool(t);
    register_shape(t);
    register_slice(t);
    register_index(t);
    register_create(t);
    register_resize(t);
    register_quantize(t);
    register_control(t);
    register_sequence(t);
    register_loss(t);
    register_attention(t);
    register_recurrent(t);
    register_random(t);
    register_sampling(t);
    register_signal(t);
    register_text(t);
    register_microsoft_attention(t);
    register_microsoft_decoder(t);
    register_microsoft_fused(t);
    register_microsoft_norm(t);
    register_microsoft_quantized(t);
    register_microsoft_weights(t);
    register_ml_features(t);
    register_ml_linear(t);
    register_ml_maps(t);
    register_ml_trees(t);
    return t;
  }();
  return table;
}

void OpTable::add(std::string_view op, int64_t since, Translate translate,
                  std::string_view domain) {
  bool added = rows_[key(domain, op)].emplace(since, translate).second;
  TENON_ASSERT(added, "two rows for ", key(domain, op), " since ", since);
}

void OpTable::refuse(std::string_view op, const char* reason, std::string_view domain) {
  reasons_[key(domain, op)] = reason;
}

const char* OpTable::reason_against(std::string_view domain, std::string_view op) const {
  const auto found = reasons_.find(key(domain, op));
  return found == reasons_.end() ? "not implemented" : found->second;
}

Translate OpTable::find(std::string_view domain, std::string_view op, int64_t version) const {
  auto row = rows_.find(key(domain, op));
  if (row == rows_.end()) return nullptr;
  auto after = row->second.upper_bound(version);
  return after == row->second.begin() ? nullptr : std::prev(after)->second;
}

std::vector<std::pair<std::string, int64_t>> OpTable::all() const {
  std::vector<std::pair<std::string, int64_t>> out;
  for (const auto& [name, versions] : rows_) out.emplace_back(name, versions.begin()->first);
  return out;
}

}  // namespace tenon::onnx
