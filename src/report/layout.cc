#include "report/layout.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "support/poll.h"

namespace tenon::report {
namespace {

constexpr double kGap = 24;       // between neighbours
constexpr double kLayerGap = 44;  // between layers
constexpr double kMargin = 16;
constexpr double kBendWidth = 4;  // of an edge that passes a layer
constexpr int kOrderSweeps = 8, kPlaceSweeps = 24;

// A box, a bend where edges from a box pass a layer, or a label where an edge is cut.
struct Vertex {
  size_t layer = 0;
  double width = 0, height = 0;
  std::vector<size_t> above, below;  // neighbours in the layers next to its own
  double x = 0;
};

class Layering {
 public:
  explicit Layering(const std::vector<Box>& boxes) : boxes_(boxes) {
    place_in_layers();
    add_edges();
    order();
    place();
  }

  Layout result() const {
    Layout out;
    std::vector<double> tops(layers_.size()), heights(layers_.size());
    double y = kMargin;
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (const size_t v : layers_[i]) heights[i] = std::max(heights[i], vertices_[v].height);
      tops[i] = y;
      y += heights[i] + kLayerGap;
    }
    out.height = y - kLayerGap + kMargin;
    double left = 0, right = 0;
    for (const Vertex& v : vertices_) {
      left = std::min(left, v.x - v.width / 2);
      right = std::max(right, v.x + v.width / 2);
    }
    out.width = right - left + 2 * kMargin;
    const auto centre = [&](size_t v) {
      const size_t layer = vertices_[v].layer;
      return Point{vertices_[v].x - left + kMargin, tops[layer] + heights[layer] / 2};
    };
    const auto top = [&](size_t v) {
      const Point at = centre(v);
      return Point{at.x, at.y - vertices_[v].height / 2};
    };
    const auto bottom = [&](size_t v) {
      const Point at = centre(v);
      return Point{at.x, at.y + vertices_[v].height / 2};
    };
    for (size_t i = 0; i < boxes_.size(); ++i) {
      poll();
      Placed placed;
      placed.centre = centre(i);
      for (size_t n = 0; n < boxes_[i].inputs.size(); ++n) {
        const size_t input = boxes_[i].inputs[n];
        Edge edge;
        if (const size_t label = labels_above_[first_edge_[i] + n]; label != kNone) {
          edge.label = centre(label);
          edge.points = {bottom(label), top(i)};
        } else {
          edge.points.push_back(bottom(input));
          for (size_t layer = vertices_[input].layer + 1; layer < vertices_[i].layer; ++layer) {
            const double x = centre(bends_.at({input, layer})).x;
            edge.points.push_back({x, tops[layer]});
            edge.points.push_back({x, tops[layer] + heights[layer]});
          }
          edge.points.push_back(top(i));
        }
        placed.edges.push_back(std::move(edge));
      }
      if (const size_t label = label_below_[i]; label != kNone) {
        placed.leaves = Edge{{bottom(i), top(label)}, centre(label)};
      }
      out.boxes.push_back(std::move(placed));
    }
    return out;
  }

 private:
  // A box goes below its lowest input; one without inputs just above its first user.
  void place_in_layers() {
    const size_t n = boxes_.size();
    vertices_.resize(n);
    std::vector<size_t> first_user(n, SIZE_MAX);
    for (size_t i = 0; i < n; ++i) {
      vertices_[i].width = boxes_[i].width;
      vertices_[i].height = boxes_[i].height;
      for (const size_t input : boxes_[i].inputs) {
        vertices_[i].layer = std::max(vertices_[i].layer, vertices_[input].layer + 1);
      }
    }
    for (size_t i = n; i-- > 0;) {
      if (boxes_[i].inputs.empty() && first_user[i] != SIZE_MAX) {
        vertices_[i].layer = first_user[i] - 1;
      }
      for (const size_t input : boxes_[i].inputs) {
        first_user[input] = std::min(first_user[input], vertices_[i].layer);
      }
    }
  }

  // The edges from a box share their bends, and the label below it.
  void add_edges() {
    label_below_.assign(boxes_.size(), kNone);
    for (size_t i = 0; i < boxes_.size(); ++i) {
      poll();
      first_edge_.push_back(labels_above_.size());
      for (const size_t input : boxes_[i].inputs) {
        labels_above_.push_back(kNone);
        if (vertices_[i].layer - vertices_[input].layer > kMostPassed + 1) {
          const size_t above = add(vertices_[i].layer - 1, boxes_[input].label_width, kLabelHeight);
          labels_above_.back() = above;
          connect(above, i);
          if (label_below_[input] != kNone) continue;
          label_below_[input] =
              add(vertices_[input].layer + 1, boxes_[input].label_width, kLabelHeight);
          connect(input, label_below_[input]);
          continue;
        }
        size_t from = input;
        for (size_t layer = vertices_[input].layer + 1; layer < vertices_[i].layer; ++layer) {
          const auto [bend, is_new] = bends_.try_emplace({input, layer}, vertices_.size());
          if (is_new) connect(from, add(layer, kBendWidth, 0));
          from = bend->second;
        }
        connect(from, i);
      }
    }
    size_t count = 0;
    for (const Vertex& v : vertices_) count = std::max(count, v.layer + 1);
    layers_.resize(count);
    for (size_t v = 0; v < vertices_.size(); ++v) layers_[vertices_[v].layer].push_back(v);
  }

  size_t add(size_t layer, double width, double height) {
    Vertex vertex;
    vertex.layer = layer;
    vertex.width = width;
    vertex.height = height;
    vertices_.push_back(std::move(vertex));
    return vertices_.size() - 1;
  }

  void connect(size_t above, size_t below) {
    vertices_[above].below.push_back(below);
    vertices_[below].above.push_back(above);
  }

  // Sorts each layer by the middle of its neighbours' places, down and up in turn, which leaves
  // few edges crossing.
  void order() {
    std::vector<double> place(vertices_.size());
    const auto number = [&](const std::vector<size_t>& layer) {
      for (size_t i = 0; i < layer.size(); ++i) {
        place[layer[i]] = static_cast<double>(i) / static_cast<double>(layer.size());
      }
    };
    for (const auto& layer : layers_) number(layer);
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      for_each_layer(sweep % 2 == 0, [&](std::vector<size_t>& layer, auto neighbours) {
        std::vector<std::pair<double, size_t>> wanted;
        for (const size_t v : layer) {
          wanted.emplace_back(mean(vertices_[v].*neighbours, place, place[v]), v);
        }
        std::ranges::stable_sort(wanted, {}, &std::pair<double, size_t>::first);
        for (size_t i = 0; i < layer.size(); ++i) layer[i] = wanted[i].second;
        number(layer);
      });
    }
  }

  // Moves each vertex to the mean of its neighbours, as far as the order and the gaps allow.
  void place() {
    std::vector<double> x(vertices_.size());
    for (const auto& layer : layers_) {
      double right = 0;
      for (const size_t v : layer) {
        x[v] = right + vertices_[v].width / 2;
        right += vertices_[v].width + kGap;
      }
      for (const size_t v : layer) x[v] -= right / 2;
    }
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      for_each_layer(sweep % 2 == 0, [&](std::vector<size_t>& layer, auto neighbours) {
        std::vector<double> wanted;
        for (const size_t v : layer) {
          wanted.push_back(mean(vertices_[v].*neighbours, x, x[v]));
        }
        separate(layer, wanted, &x);
      });
    }
    for (size_t v = 0; v < vertices_.size(); ++v) vertices_[v].x = x[v];
  }

  // The places nearest to the wanted ones (least squares) with gaps between neighbours: runs of
  // neighbours that would overlap move together (pool adjacent violators).
  void separate(const std::vector<size_t>& layer, const std::vector<double>& wanted,
                std::vector<double>* x) const {
    struct Run {
      double sum;
      size_t count;
      double mean() const { return sum / static_cast<double>(count); }
    };
    std::vector<double> offsets;
    std::vector<Run> runs;
    double offset = 0;
    for (size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) {
        offset += (vertices_[layer[i - 1]].width + vertices_[layer[i]].width) / 2 + kGap;
      }
      offsets.push_back(offset);
      runs.push_back({wanted[i] - offset, 1});
      while (runs.size() > 1 && runs[runs.size() - 2].mean() > runs.back().mean()) {
        const Run last = runs.back();
        runs.pop_back();
        runs.back().sum += last.sum;
        runs.back().count += last.count;
      }
    }
    size_t at = 0;
    for (const Run& run : runs) {
      for (size_t i = 0; i < run.count; ++i, ++at) (*x)[layer[at]] = run.mean() + offsets[at];
    }
  }

  static double mean(const std::vector<size_t>& neighbours, const std::vector<double>& of,
                     double without) {
    if (neighbours.empty()) return without;
    double sum = 0;
    for (const size_t v : neighbours) sum += of[v];
    return sum / static_cast<double>(neighbours.size());
  }

  template <class F>
  void for_each_layer(bool down, const F& f) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      poll();
      f(layers_[down ? i : layers_.size() - 1 - i], down ? &Vertex::above : &Vertex::below);
    }
  }

  const std::vector<Box>& boxes_;
  static constexpr size_t kNone = SIZE_MAX;
  std::vector<Vertex> vertices_;  // the boxes, then the bends and labels
  std::vector<std::vector<size_t>> layers_;
  std::map<std::pair<size_t, size_t>, size_t> bends_;  // by box and layer
  // Of the edges of all boxes in their order, those of a box from `first_edge_` on; kNone for an
  // edge that isn't cut.
  std::vector<size_t> first_edge_, labels_above_;
  std::vector<size_t> label_below_;  // by box
};

}  // namespace

Layout lay_out(const std::vector<Box>& boxes) {
  return Layering(boxes).result();
}

}  // namespace tenon::report
