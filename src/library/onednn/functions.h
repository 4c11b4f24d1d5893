// The packed functions of this folder, as register.cc lists them.
#pragma once

#include "object/any.h"

namespace tenon::onednn {

// Arguments as register.h has them; errors are thrown.
void convolution(const AnyView* args, int32_t count, Any* result);
void matmul(const AnyView* args, int32_t count, Any* result);

}  // namespace tenon::onednn
