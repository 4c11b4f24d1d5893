// The packed functions that every runtime has: its own and those of library/core.
#pragma once

namespace tenon::vm {

// Registers them with the process's registry; further calls have no effect. Thread-safe. The
// machine's own begin with "vm."; each checks its arguments and allocates through the machine, so
// that files may link them.
void register_builtins();

}  // namespace tenon::vm
