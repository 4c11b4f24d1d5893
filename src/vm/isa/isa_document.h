// Generates docs/isa.md from the tables.
#pragma once

#include <string>

namespace tenon::vm {

std::string isa_document();

}  // namespace tenon::vm
