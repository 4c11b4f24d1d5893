#include "import/onnx/node_context.h"

namespace tenon::onnx {

void register_resize(OpTable&) {}

}  // namespace tenon::onnx
