#include "vm/isa/unit.h"

#include "support/text.h"
#include "vm/isa/limits.h"

namespace tenon::vm {

std::string name_rule() {
  return cat("1 to ", kMaxNameBytes, " bytes, none of them a control byte");
}

std::optional<std::string> name_fault(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes) return cat("a name of ", text.size(), " bytes");
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return cat("a name with byte ", hex(byte));
  }
  return std::nullopt;
}

std::span<const ImageKind> all_image_kinds() {
  static constexpr ImageKind kKinds[] = {
#define TENON_IMAGE_KIND(identifier, ...) ImageKind::identifier,
#include "vm/isa/image_kinds.def"
  };
  return kKinds;
}

std::string_view to_text(ImageKind kind) {
  switch (kind) {
#define TENON_IMAGE_KIND(identifier, number, name) \
  case ImageKind::identifier:                      \
    return name;
#include "vm/isa/image_kinds.def"
  }
  return {};
}

int64_t Unit::find_exported(std::string_view name) const {
  for (size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].exported && functions[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

std::vector<std::string> Unit::exported_names() const {
  std::vector<std::string> names;
  for (const FunctionUnit& f : functions) {
    if (f.exported) names.push_back(f.name);
  }
  return names;
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
