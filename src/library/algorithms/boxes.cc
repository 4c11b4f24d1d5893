// Non-maximum suppression of boxes, as in ONNX's operator.
#include "library/algorithms/functions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "device/scratch.h"
#include "library/argument/argument.h"
#include "support/bulk.h"

namespace tenon::algorithms {

namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.non_max_suppression";

struct Box {
  float y1, x1, y2, x2;

  float area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_of(const std::array<float, 4>& p, bool center) {
  if (center) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}

bool overlap(const Box& a, const Box& b, float threshold) {
  float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0) || !(width > 0)) return false;
  float common = height * width;
  return common > threshold * (a.area() + b.area() - common);
}

template <class T>
std::optional<T> scalar_of(std::string_view name, const Tensor& t, DataType dtype) {
  if (!t) return std::nullopt;
  require_host(kName, name, t);
  if (t.dtype() != dtype || t.count() != 1) {
    fail(kName, cat("'", name, "' is ", to_text(t), ", expected one ", to_text(dtype)));
  }
  T value;
  std::memcpy(&value, t.data(), sizeof value);
  return value;
}

// A tensor's elements, which may be unaligned.
class Floats {
 public:
  Floats(std::string_view name, const Tensor& t) {
    require_host(kName, name, t);
    if (t.dtype() != f32 || t.rank() != 3) {
      fail(kName, cat("'", name, "' is ", to_text(t), ", expected tensor[rank=3; f32]"));
    }
    data_ = t.data_as<char>();
  }
  float operator[](int64_t i) const {
    float value;
    std::memcpy(&value, data_ + i * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  }

 private:
  const char* data_;
};

// Boxes are f32[batches, n, 4], scores f32[batches, classes, n]; the result is i64[count, 3] of
// (batch, class, box). A box is two opposite corners (y1, x1, y2, x2) in any order, or centre and
// size (x, y, width, height). For each batch and class, up to `max_output` (default 0) boxes are
// selected by decreasing score, if it is above `score_threshold`, unless they overlap a selected
// box by more than the share `iou_threshold` (default 0) of their union. The last three tensors are
// null or have one element.
Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores, const Tensor& max_output,
                           const Tensor& iou_threshold, const Tensor& score_threshold,
                           int64_t center_point_box) {
  Floats corners("boxes", boxes), marks("scores", scores);
  int64_t batches = boxes.dim(0), n = boxes.dim(1), classes = scores.dim(1);
  if (boxes.dim(2) != 4 || scores.dim(0) != batches || scores.dim(2) != n) {
    fail(kName, cat("'scores' ", to_text(scores), " does not fit 'boxes' ", to_text(boxes)));
  }
  int64_t most = scalar_of<int64_t>("max_output", max_output, i64).value_or(0);
  float threshold = scalar_of<float>("iou_threshold", iou_threshold, f32).value_or(0);
  std::optional<float> least = scalar_of<float>("score_threshold", score_threshold, f32);
  if (scores.count() == 0) batches = n = 0;

  Scratch<std::array<int64_t, 3>> taken;
  // Of one batch and class, a heap whose first has the greatest score.
  struct Candidate {
    float score;
    int64_t place;
  };
  Scratch<Candidate> left;
  Scratch<Box> kept;
  Ticker ticker;
  const auto comes_later = [&](const Candidate& a, const Candidate& b) {
    ticker.tick();
    return a.score != b.score ? a.score < b.score : a.place > b.place;
  };
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t c = 0; c < classes; ++c) {
      const int64_t first = (b * classes + c) * n;
      left.clear();
      kept.clear();
      for (int64_t i = 0; i < n; ++i) {
        ticker.tick();
        const float mark = marks[first + i];
        if (least ? mark > *least : mark == mark) left.push_back({mark, i});
      }
      std::make_heap(left.begin(), left.end(), comes_later);
      while (!left.empty() && static_cast<int64_t>(kept.size()) < most) {
        std::pop_heap(left.begin(), left.end(), comes_later);
        const int64_t i = left.back().place;
        left.pop_back();
        std::array<float, 4> sides;
        for (int64_t k = 0; k < 4; ++k) {
          sides[static_cast<size_t>(k)] = corners[(b * n + i) * 4 + k];
        }
        Box box = box_of(sides, center_point_box != 0);
        bool hidden = std::any_of(kept.begin(), kept.end(), [&](const Box& other) {
          ticker.tick();
          return overlap(box, other, threshold);
        });
        if (hidden) continue;
        kept.push_back(box);
        taken.push_back({b, c, i});
      }
    }
  }
  Tensor y = allocate_tensor(std::vector<int64_t>{static_cast<int64_t>(taken.size()), 3}, i64);
  copy_memory(y.data(), taken.data(), taken.size() * sizeof(taken[0]));
  return y;
}

}  // namespace

void register_boxes(Registration& functions) {
  library::add_typed(functions, library::signature(kName), non_max_suppression);
}

}  // namespace tenon::algorithms
