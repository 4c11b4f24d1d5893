#include "object/device_name.h"

#include <charconv>

#include "support/text.h"

namespace tenon {

namespace {
struct KindName {
  DLDeviceType kind;
  std::string_view name;
};
constexpr KindName kKindNames[] = {
    {kDLCPU, "cpu"},       {kDLCUDA, "cuda"},          {kDLCUDAHost, "cuda_host"},
    {kDLOpenCL, "opencl"}, {kDLVulkan, "vulkan"},      {kDLMetal, "metal"},
    {kDLROCM, "rocm"},     {kDLROCMHost, "rocm_host"}, {kDLCUDAManaged, "cuda_managed"},
};
constexpr std::string_view kUnnamed = "device";
}  // namespace

std::string to_text(DLDevice device) {
  for (const auto& k : kKindNames) {
    if (k.kind == device.device_type) return cat(k.name, ':', device.device_id);
  }
  return cat(kUnnamed, static_cast<int>(device.device_type), ':', device.device_id);
}

std::optional<DLDevice> parse_device(std::string_view text) {
  size_t colon = text.find(':');
  int32_t id = 0;
  if (colon != std::string_view::npos) {
    const char* end = text.data() + text.size();
    auto [at, status] = std::from_chars(text.data() + colon + 1, end, id);
    if (status != std::errc() || at != end || id < 0) return std::nullopt;
  }
  std::string_view name = text.substr(0, colon);
  for (const auto& k : kKindNames) {
    if (k.name == name) return DLDevice{k.kind, id};
  }
  // A kind that has no name here is written by its number, as in device99:0.
  if (!name.starts_with(kUnnamed)) return std::nullopt;
  name.remove_prefix(kUnnamed.size());
  int kind = 0;
  auto [at, status] = std::from_chars(name.data(), name.data() + name.size(), kind);
  if (status != std::errc() || at != name.data() + name.size() || kind <= 0) return std::nullopt;
  return DLDevice{static_cast<DLDeviceType>(kind), id};
}

}  // namespace tenon
