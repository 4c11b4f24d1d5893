// Inputs of a function from the command line: files, random values, folders and archives of
// tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/tenon/given_sizes.h"
#include "tools/tenon/program_file.h"

namespace tenon::tool {

struct InputFlags {
  std::vector<std::string> inputs;  // "x=F.npy", "x=F.pb", "x=random", "x=random:0..9", "x=3": a
                                    // scalar, or what fills a tensor
  std::string store;                // --inputs: a folder or .npz archive (TensorStore)
  uint64_t seed = 0;
  GivenSizes sizes;  // --dim, --shape

  bool given() const { return !inputs.empty() || !store.empty(); }
};

struct Inputs {
  std::vector<Any> values;
  // Choices that were made for the user: "random inputs, seed 0: x", "sizes taken as 1: n".
  std::vector<std::string> notes;
};

// A value for every parameter. With `random_rest`, parameters that the flags don't mention get
// seeded random values; otherwise such a parameter is a Usage error.
Inputs make_inputs(const FunctionSignature& signature, const InputFlags& flags, bool random_rest);

}  // namespace tenon::tool
