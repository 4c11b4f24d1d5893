// Reads and maps files as a FileBytes.
#pragma once

#include <string>
#include <string_view>

#include "object/file_bytes.h"

namespace tenon::vm {

// Maps the file. Truncating it while the bytes are in use ends the process (SIGBUS). Usage errors
// name the path and the system's reason.
Ref<FileBytes> map_file(const std::string& path);
// Reads the file into memory, so that later writes to it have no effect. The size counts for the
// memory of this thread's work (device/call_context.h), and reading is polled.
Ref<FileBytes> read_whole_file(const std::string& path);
// A copy, whose making is polled.
Ref<FileBytes> copy_bytes(std::string_view bytes);

}  // namespace tenon::vm
