// A choice among the rows of a table by their weights.
#pragma once

#include <cstdint>
#include <utility>

#include "graph/op/rule.h"

namespace tenon::random_programs {

template <class T, size_t n>
const T& pick_weighted(graph::Random& random, const std::pair<int, T> (&rows)[n]) {
  int64_t total = 0;
  for (const auto& row : rows) total += row.first;
  int64_t at = random.between(0, total - 1);
  size_t i = 0;
  while ((at -= rows[i].first) >= 0) ++i;
  return rows[i].second;
}

}  // namespace tenon::random_programs
