// Puts a .tnx file into the shared object that code generation made for it (model_abi.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::vm {

// The object's bytes, up to where the file's must follow: `object` with a segment for a file of
// that size. The linker reserved its headers by a note section, kModelSection, which no longer is
// one afterwards; its section header still describes the segment, so that tools that copy sections
// keep it. A Usage error if the file is too large; Internal for any other object.
std::string place_model(std::string_view object, uint64_t file_bytes);

}  // namespace tenon::vm
