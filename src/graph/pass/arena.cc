#include "graph/pass/arena.h"

#include <algorithm>
#include <functional>

namespace tenon::graph {

Arena::Arena(int64_t bindings) {
  while (leaves_ < bindings) leaves_ *= 2;
  nodes_.resize(static_cast<size_t>(2 * leaves_));
}

bool Arena::collect(Lifetime life, std::vector<Place>* places) const {
  // Those alive at the first binding, then those that begin later.
  for (int64_t i = leaves_ + life.first; i > 0; i /= 2) {
    const std::vector<Place>& here = nodes_[static_cast<size_t>(i)].places;
    if (places->size() + here.size() > kMaxSearched) return false;
    places->insert(places->end(), here.begin(), here.end());
  }
  auto it = by_first_.upper_bound(life.first);
  for (; it != by_first_.end() && it->first <= life.last; ++it) {
    if (places->size() == kMaxSearched) return false;
    places->push_back(it->second);
  }
  return true;
}

int64_t Arena::find(Lifetime life, int64_t bytes) const {
  std::vector<Place> places;
  if (!collect(life, &places)) return top(life);
  std::ranges::sort(places, std::less(), &Place::offset);
  int64_t offset = 0;
  for (const Place& place : places) {
    if (offset + bytes <= place.offset) break;
    offset = std::max(offset, place.end);
  }
  return offset;
}

int64_t Arena::top(Lifetime life) const {
  int64_t top = 0;
  // The nodes that cover the lifetime have places within it, those above them longer ones.
  for (int64_t i = (leaves_ + life.first) / 2; i > 0; i /= 2) {
    top = std::max(top, nodes_[static_cast<size_t>(i)].top);
  }
  for (int64_t i = (leaves_ + life.last) / 2; i > 0; i /= 2) {
    top = std::max(top, nodes_[static_cast<size_t>(i)].top);
  }
  int64_t from = leaves_ + life.first, to = leaves_ + life.last + 1;
  for (; from < to; from /= 2, to /= 2) {
    if (from % 2) top = std::max(top, nodes_[static_cast<size_t>(from++)].top_all);
    if (to % 2) top = std::max(top, nodes_[static_cast<size_t>(--to)].top_all);
  }
  return top;
}

void Arena::take(Lifetime life, int64_t offset, int64_t bytes) {
  const Place place{offset, offset + bytes};
  auto add = [&](int64_t i) {
    Node& node = nodes_[static_cast<size_t>(i)];
    node.places.push_back(place);
    node.top = std::max(node.top, place.end);
    for (; i > 0; i /= 2) {
      int64_t& top = nodes_[static_cast<size_t>(i)].top_all;
      top = std::max(top, place.end);
    }
  };
  int64_t from = leaves_ + life.first, to = leaves_ + life.last + 1;
  for (; from < to; from /= 2, to /= 2) {
    if (from % 2) add(from++);
    if (to % 2) add(--to);
  }
  by_first_.emplace(life.first, place);
  bytes_ = std::max(bytes_, place.end);
}

}  // namespace tenon::graph
