#include "graph/offer/offers.h"

#include "graph/offer/onednn.h"

namespace tenon::graph {

const std::vector<Offer*>& all_offers() {
  static OneDnnOffer onednn;
  static const std::vector<Offer*> offers = {&onednn};
  return offers;
}

}  // namespace tenon::graph
