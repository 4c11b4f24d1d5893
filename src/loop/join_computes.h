// Joining of computes whose results feed each other.
#pragma once

#include <optional>
#include <vector>

#include "loop/compute.h"

namespace tenon::loop {

class Joiner {
 public:
  // Adds the stages of `compute`, which read `inputs` in the place of its own: buffers of the joint
  // compute. Its symbols become what `symbols` gives for each. Returns the buffers of its outputs;
  // nothing, and adds nothing, if an input's shape isn't that of its buffer.
  std::optional<std::vector<Ref<const Buffer>>> add(const Compute& compute,
                                                    const std::vector<Ref<const Buffer>>& inputs,
                                                    const DimSubstitution& symbols);

  const std::vector<Ref<const Stage>>& stages() const { return stages_; }

 private:
  std::vector<Ref<const Stage>> stages_;
};

}  // namespace tenon::loop
