#include "support/nested_call.h"

#include "support/error.h"
#include "support/failures.h"
#include "support/native_stack.h"
#include "support/text.h"

namespace tenon {

NestedCall::NestedCall(int* depth, size_t stack) : depth_(depth) {
  constexpr int kMost = 200;
  if (*depth >= kMost) {
    throw Error(ErrorKind::Runtime, "calls between the host and programs are nested too deep")
        .stopped_by(StopCause::Depth)
        .expected(cat("at most ", kMost, " within each other"))
        .help("call functions directly, within the host or within the program");
  }
  if (const size_t left = native_stack_left(); left < stack) {
    throw failure(
        "the thread's native stack is too small for the call",
        cat(bytes_text(left), " left, within ", counted(static_cast<uint64_t>(*depth), "call")),
        bytes_text(stack))
        .help("nest fewer calls between the host and programs, or give the thread a larger stack");
  }
  ++*depth;
}

}  // namespace tenon
