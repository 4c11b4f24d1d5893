#include "loop/dim_sum.h"

#include "loop/dim_terms.h"

namespace tenon {

Dim DimSum::total() const {
  if (parts_.size() == 1 && parts_[0].scale == 1) return parts_[0].size;
  dim_terms::Terms terms;
  for (const Part& p : parts_) {
    if (!p.size.is_const(0)) dim_terms::append(p.size.node(), p.scale, &terms);
  }
  dim_terms::normalise(&terms);
  return dim_terms::build(terms);
}

}  // namespace tenon
