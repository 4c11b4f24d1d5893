#include "import/onnx/node_context.h"

namespace tenon::onnx {

void register_control(OpTable&) {}

}  // namespace tenon::onnx
