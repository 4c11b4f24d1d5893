#include "codegen/llvm/link_error.h"

namespace tenon::codegen {

void raise(const Error& error) {
  throw Error(error);
}

}  // namespace tenon::codegen
