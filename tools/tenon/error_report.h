// How a process of the command ends: what was thrown as text on standard error, and the exit code.
#pragma once

#include "support/error.h"

namespace tenon::tool {

// Prints the error, with --json also as a document on standard output; returns its exit code.
int report_error(const Error& error);
// The same for whatever is being handled: call it in a catch block.
int report_exception();

// Writes out what was printed. Returns `exit_code`, or that of the error when standard output can't
// take it, which a full disk shows only now.
int finish(int exit_code);

}  // namespace tenon::tool
