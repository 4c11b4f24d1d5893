// Inputs of a function from the command line: files, random values, folders of files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/tenon/given_sizes.h"
#include "tools/tenon/program_file.h"

namespace tenon::tool {

struct InputFlags {
  std::vector<std::string> inputs;  // "x=F.npy", "x=F.pb", "x=random", "x=random:0..9", "x=3"
  std::string folder;               // --inputs: input_0.pb, ... or NAME.npy
  uint64_t seed = 0;
  GivenSizes sizes;  // --dim, --shape

  bool given() const { return !inputs.empty() || !folder.empty(); }
};

struct Inputs {
  std::vector<Any> values;
  // What was chosen for the user: "input x is random, seed 0, n = 1".
  std::vector<std::string> notes;
};

// A value for every parameter. With `random_rest`, parameters that the flags say nothing of get
// seeded random values; without, that is a Usage error that names them.
Inputs make_inputs(const FunctionSignature& signature, const InputFlags& flags, bool random_rest);

// A tensor file by its extension: .npy or .pb.
Tensor read_tensor(const std::string& path);

// FOLDER/NAME.npy. A Usage error for a name, chosen by whoever wrote the program, that leads out of
// the folder.
std::string file_of_name(const std::string& folder, const std::string& name);

// The files NAME_0.pb, NAME_1.pb, ... of a folder, in order.
std::vector<std::string> numbered_files(const std::string& folder, const std::string& name);

}  // namespace tenon::tool
