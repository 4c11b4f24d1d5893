// Non-maximum suppression of boxes, as ONNX's operator has it.
#pragma once

#include "object/tensor.h"

namespace tenon::core {

// boxes f32[batches, n, 4], scores f32[batches, classes, n]; the result is i64[count, 3] of (batch,
// class, box). Boxes are two opposite corners (y1, x1, y2, x2) in any order, or centre and size (x,
// y, width, height). Per batch and class, boxes are taken by falling score (above the threshold, if
// there is one) unless they overlap a taken one by more than the share `iou_threshold` (0) of their
// union, up to `max_output` (none). The last three are null or have one element.
Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores, const Tensor& max_output,
                           const Tensor& iou_threshold, const Tensor& score_threshold,
                           int64_t center_point_box);

}  // namespace tenon::core
