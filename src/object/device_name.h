// Names of devices: DLPack's kind and id as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tenon/dlpack.h"

namespace tenon {

std::string to_text(DLDevice device);                         // "cpu:0"
std::optional<DLDevice> parse_device(std::string_view text);  // "cpu" or "cpu:0"

}  // namespace tenon
