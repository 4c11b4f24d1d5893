// The error of what the host provides and Tenon calls: instruments, checks, libraries.
#pragma once

namespace tenon {

// Throws the waiting error; if none waits, one that says that the host failed without setting it.
[[noreturn]] void throw_host_error();

}  // namespace tenon
