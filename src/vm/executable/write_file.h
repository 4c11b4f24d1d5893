// Writing a Unit as a .tnx file. The same unit gives the same bytes on every machine.
#pragma once

#include <string>

#include "support/output_file.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

// The file's bytes. The unit isn't verified. An Internal error for a constant that a file can't
// hold (an object other than Tensor, Shape or string; a tensor that isn't compact on the CPU).
std::string write_to_bytes(const Unit& unit);

// Verifies the unit (verify.h), then writes its bytes; the caller commits the file. `name` is the
// file's, for errors. Returns the bytes written.
size_t write(const Unit& unit, OutputFile& out, const std::string& name);

// The same as a shared object (model_abi.h). The unit has one target, whose object was made for it.
// A Usage error if the program is too large.
size_t write_shared(const Unit& unit, OutputFile& out, const std::string& name);
std::string write_shared_to_bytes(const Unit& unit);

// Verifies the unit, then writes the file whole or not at all (support/output_file.h;
// `-` is standard output; devices and pipes are written in place). Returns the number of bytes.
size_t save(const Unit& unit, const std::string& path);

}  // namespace tenon::vm
