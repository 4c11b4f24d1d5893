// The library onednn takes channels-last convolutions and matrix products of f32, with the bias,
// residual and activation that follow them, and with transposes of a product's operands; and
// attention, from the product of queries and keys to that of weights and values.
#pragma once

#include "graph/ir/interfaces.h"

namespace tenon::graph {

class OneDnnOffer : public Offer {
 public:
  Module partition(const Module& module, const OfferOptions& options) override;
};

}  // namespace tenon::graph
