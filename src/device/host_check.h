// The host's check: how a host that has reasons of its own to stop work has a say in it, such as a
// Python interpreter whose signal handlers must run on a certain thread.
#pragma once

namespace tenon {

// Called by threads that work. Returns 0 to go on, -1 to stop (after set_error), and 1 if another
// thread that helps with the work must be asked. May be called by several threads at once.
using HostCheck = int (*)();

// One for the process; null for none.
void set_host_check(HostCheck check);
bool has_host_check();

// Calls the host's check. Throws the error that it set if the work is to stop; returns false if
// another thread must be asked.
bool check_host();

}  // namespace tenon
