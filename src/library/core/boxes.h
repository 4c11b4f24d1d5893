// Non-maximum suppression of boxes, as in ONNX's operator.
#pragma once

#include "object/tensor.h"

namespace tenon::core {

// Boxes are f32[batches, n, 4], scores f32[batches, classes, n]; the result is i64[count, 3] of
// (batch, class, box). A box is two opposite corners (y1, x1, y2, x2) in any order, or centre and
// size (x, y, width, height). For each batch and class, up to `max_output` (default 0) boxes are
// selected by decreasing score, if it is above `score_threshold`, unless they overlap a selected
// box by more than the share `iou_threshold` (default 0) of their union. The last three tensors are
// null or have one element.
Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores, const Tensor& max_output,
                           const Tensor& iou_threshold, const Tensor& score_threshold,
                           int64_t center_point_box);

}  // namespace tenon::core
