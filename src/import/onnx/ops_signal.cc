#include "import/onnx/node_context.h"

namespace tenon::onnx {

void register_signal(OpTable&) {}

}  // namespace tenon::onnx
