#include "import/onnx/node_context.h"

namespace tenon::onnx {

void register_recurrent(OpTable&) {}

}  // namespace tenon::onnx
