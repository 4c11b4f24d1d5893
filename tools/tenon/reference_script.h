// The program in python/tenon/_reference.py, which the build copies into the command.
#pragma once

namespace tenon::tool {

extern const char kReferenceScript[];

}  // namespace tenon::tool
