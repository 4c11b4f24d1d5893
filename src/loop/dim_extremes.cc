// min, max and bcast of Dims: drops arguments that bounds or proofs make redundant.
#include <algorithm>

#include "loop/dim_terms.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon {

using dim_terms::make_node;

namespace {

// Each argument is compared with each other one by a proof, which may take long, so only so many
// are.
constexpr size_t kMostCompared = 16;

void flatten(DimKind kind, const Dim& d, std::vector<Dim>* out) {
  if (d.kind() == kind) {
    for (const Ref<const DimNode>& a : d.node().args) out->push_back(Dim(a));
  } else {
    out->push_back(d);
  }
}

void sort_unique(std::vector<Dim>* args) {
  std::sort(args->begin(), args->end(),
            [](const Dim& a, const Dim& b) { return dim_terms::compare(a.node(), b.node()) < 0; });
  args->erase(std::unique(args->begin(), args->end()), args->end());
}

// The minimum or maximum of the arguments: drops each that another one provably covers, unless
// there are many.
Dim extreme(DimKind kind, const Dim& a, const Dim& b) {
  if (a == b) return a;
  auto covers = [&](const Dim& x, const Dim& y) {
    return kind == DimKind::kMax ? proves_less_equal(y, x) : proves_less_equal(x, y);
  };
  std::vector<Dim> args, kept;
  flatten(kind, a, &args);
  flatten(kind, b, &args);
  sort_unique(&args);
  if (args.size() > kMostCompared) return make_node(kind, args);
  for (size_t i = 0; i < args.size(); ++i) {
    bool covered = false;
    for (const Dim& k : kept) covered = covered || covers(k, args[i]);
    for (size_t j = i + 1; j < args.size() && !covered; ++j) covered = covers(args[j], args[i]);
    if (!covered) kept.push_back(args[i]);
  }
  // Two arguments that cover each other (equal but not recognised as such) must not both be
  // dropped.
  if (kept.empty()) return args[0];
  return kept.size() == 1 ? kept[0] : make_node(kind, kept);
}

}  // namespace

Dim min(const Dim& a, const Dim& b) {
  return extreme(DimKind::kMin, a, b);
}
Dim max(const Dim& a, const Dim& b) {
  return extreme(DimKind::kMax, a, b);
}

Dim bcast(const Dim& a, const Dim& b) {
  if (a == b || b.is_const(1)) return a;
  if (a.is_const(1)) return b;
  std::vector<Dim> args;
  flatten(DimKind::kBcast, a, &args);
  flatten(DimKind::kBcast, b, &args);
  sort_unique(&args);
  std::optional<int64_t> size;  // all other sizes are this or 1
  for (const Dim& d : args) {
    if (!d.is_const() || d.is_const(1)) continue;
    if (size && *size != d.node().value) {
      throw SizeError(Error(ErrorKind::Usage,
                            cat("sizes ", *size, " and ", d.node().value, " do not broadcast"))
                          .expected("equal sizes, or one of them 1"));
    }
    size = d.node().value;
  }
  if (size) return Dim(*size);
  for (const Dim& d : args) {
    if (auto lo = lower_bound(d); lo && *lo >= 2) return d;
  }
  std::erase_if(args, [](const Dim& d) { return d.is_const(1); });
  if (args.size() > kMostCompared) return make_node(DimKind::kBcast, args);
  // Of sizes that are provably equal, keeps the shortest.
  std::vector<Dim> kept;
  for (const Dim& d : args) {
    auto same =
        std::find_if(kept.begin(), kept.end(), [&](const Dim& k) { return proves_equal(k, d); });
    if (same == kept.end()) {
      kept.push_back(d);
    } else if (dim_terms::node_count(d, 1000) < dim_terms::node_count(*same, 1000)) {
      *same = d;
    }
  }
  sort_unique(&kept);
  args = kept;
  return args.size() == 1 ? args[0] : make_node(DimKind::kBcast, args);
}

}  // namespace tenon
