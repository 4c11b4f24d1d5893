// The runtime's own packed functions, by explicit call.
#pragma once

namespace tenon::vm {

// Registers them with the process's registry; again does nothing. Thread-safe. Their names begin
// with "vm."; each checks its arguments and allocates through the machine, so files may link them.
void register_builtins();

}  // namespace tenon::vm
