#include "vm/isa/unit.h"

namespace tenon::vm {

int64_t Unit::find_function(std::string_view name) const {
  for (size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

const KernelImage* KernelTarget::host_object() const {
  for (const KernelImage& image : images) {
    if (image.kind == ImageKind::Elf && image.architecture.empty()) return &image;
  }
  return nullptr;
}

uint32_t Unit::add_constant(Any value, std::string name) {
  constants.push_back({std::move(name), std::move(value), std::nullopt});
  return static_cast<uint32_t>(constants.size() - 1);
}

uint32_t Unit::add_span(const Span& span) {
  if (spans.empty() || spans.back() != span) spans.push_back(span);
  return static_cast<uint32_t>(spans.size() - 1);
}

}  // namespace tenon::vm
