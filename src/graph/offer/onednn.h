// What oneDNN takes: channels-last convolutions and matrix products of f32, with the bias, the
// residual and the activation that follow, and with transpositions of a product's operands.
#pragma once

#include "graph/ir/interfaces.h"

namespace tenon::graph {

class OneDnnOffer : public Offer {
 public:
  const char* library() const override { return "onednn"; }
  Module partition(const Module& module, int level) override;
};

}  // namespace tenon::graph
