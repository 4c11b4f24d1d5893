#include "driver/code_stats.h"

#include <map>
#include <string>
#include <string_view>

#include "driver/provenance.h"
#include "object/array.h"
#include "object/tensor.h"
#include "support/poll.h"
#include "support/text.h"

namespace tenon::driver {
namespace {

Array<Any> strings(const std::vector<std::string>& texts) {
  Array<Any> out;
  for (const std::string& text : texts) out.push_back(String(text));
  return out;
}

// How many instructions of each mnemonic the code has.
Map<String, Any> instruction_counts(const vm::FunctionUnit& function) {
  std::map<std::string_view, int64_t> counts;
  vm::Instruction in;
  Ticker ticker;
  for (uint32_t at = 0; vm::decode(function.code, at, &in); at += in.words()) {
    ticker.tick();
    ++counts[in.info->mnemonic];
  }
  Map<String, Any> out;
  for (const auto& [mnemonic, count] : counts) out.set(String(mnemonic), count);
  return out;
}

Map<String, Any> describe(const vm::FunctionUnit& function) {
  std::vector<std::string> params;
  for (const vm::Param& p : function.params) params.push_back(cat(p.name, ": ", to_text(p.type)));
  return {{"name", String(function.name)},
          {"exported", function.exported},
          {"signature", String(cat("(", join(params, ", "), ") -> ", to_text(function.result)))},
          {"registers", function.register_count},
          {"instructions", instruction_counts(function)}};
}

Map<String, Any> describe(const vm::Constant& constant) {
  std::string type;
  int64_t bytes = 0;
  if (constant.late) {
    type = tensor_type_text(constant.late->dtype, constant.late->shape);
    bytes = byte_count(constant.late->shape, constant.late->dtype).value_or(0);
  } else if (const auto tensor = constant.value.try_as<Tensor>()) {
    type = tensor_type_text(tensor->dtype(), tensor->shape());
    bytes = byte_count(tensor->shape(), tensor->dtype()).value_or(0);
  } else {
    type = type_name(constant.value.type_index);
  }
  return {{"name", String(constant.name)},
          {"type", String(type)},
          {"bytes", bytes},
          {"late", constant.late.has_value()}};
}

Map<String, Any> describe(const vm::KernelTarget& target, size_t bytes) {
  for (const vm::KernelImage& image : target.images) bytes += image.bytes.size();
  return {{"triple", String(target.triple)},
          {"cpu", String(target.cpu)},
          {"features", strings(target.cpu_features)},
          {"bytes", static_cast<int64_t>(bytes)}};
}

template <class T>
Array<Any> describe_all(const std::vector<T>& items) {
  Array<Any> out;
  for (const T& item : items) out.push_back(describe(item));
  return out;
}

}  // namespace

Map<String, Any> code_stats(const vm::Unit& unit, size_t file_bytes) {
  Array<Any> packed, kernels, targets;
  for (const vm::PackedName& p : unit.packed) {
    if (p.kernel) {
      kernels.push_back(String(p.name));
    } else {
      packed.push_back(
          Map<String, Any>{{"name", String(p.name)}, {"effect", String(to_text(p.effect))}});
    }
  }
  for (const vm::KernelTarget& t : unit.kernels) targets.push_back(describe(t, unit.shared_code));
  return {{"producer", String(unit.producer)},
          {"provenance", provenance_data(unit.provenance)},
          {"file_bytes", static_cast<int64_t>(file_bytes)},
          {"libraries", strings(unit.libraries)},
          {"functions", describe_all(unit.functions)},
          {"constants", describe_all(unit.constants)},
          {"packed", packed},
          {"kernels", kernels},
          {"targets", targets},
          {"computes_bytes", static_cast<int64_t>(unit.computes.size())}};
}

}  // namespace tenon::driver
