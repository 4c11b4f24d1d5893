#include "import/onnx/node_context.h"

namespace tenon::onnx {

void register_attention(OpTable&) {}

}  // namespace tenon::onnx
