#include "graph/pass/partition_to_offers.h"

namespace tenon::graph {

Module partition_to_offers(const Module& module, PassContext& cx) {
  Module now = module;
  for (Offer* offer : cx.offers) {
    now = offer->partition(now, {cx.level, cx.target});
  }
  return now;
}

}  // namespace tenon::graph
