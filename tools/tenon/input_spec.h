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
  // Choices that were made for the user: "random inputs, seed 0: x", "sizes taken as 1: n".
  std::vector<std::string> notes;
};

// A value for every parameter. With `random_rest`, parameters that the flags don't mention get
// seeded random values; otherwise such a parameter is a Usage error.
Inputs make_inputs(const FunctionSignature& signature, const InputFlags& flags, bool random_rest);

// Reads a tensor file by its extension, .npy or .pb; a pipe, or "-" for standard input, as .npy.
Tensor read_tensor(const std::string& path);

// FOLDER/NAME.npy. Throws Usage for a name that leads out of the folder, since names come from the
// program's author.
std::string file_of_name(const std::string& folder, const std::string& name);

// The files NAME_0.pb, NAME_1.pb, ... of a folder, in order.
std::vector<std::string> numbered_files(const std::string& folder, const std::string& name);

}  // namespace tenon::tool
