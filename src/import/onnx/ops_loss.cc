#include "import/onnx/node_context.h"

namespace tenon::onnx {

void register_loss(OpTable&) {}

}  // namespace tenon::onnx
