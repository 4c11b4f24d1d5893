// The sizes that --dim and --shape give, and what they make of a function's types.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/tenon/program_file.h"

namespace tenon::tool {

struct GivenSizes {
  std::map<std::string, int64_t> dims;                 // of symbols, by their names
  std::map<std::string, std::vector<int64_t>> shapes;  // of inputs
};

// A Usage error for --dim and --shape that name no symbol and no input of the function. (Those of
// an ONNX model are the importer's, after which its sizes have no names.)
void check_sizes(const FunctionSignature& signature, const GivenSizes& given);

// The shape of a random tensor for a parameter. Symbols that are not given are 1, and their names
// go into `chosen`. A Usage error where the type does not say the shape, or says one that can't be.
std::vector<int64_t> random_shape(const vm::Param& param, const GivenSizes& given,
                                  std::vector<std::string>* chosen);

// A Usage error for a tensor that is not of the size that --dim or --shape gives: a compiled
// program takes any size, and so would not object.
void check_given_sizes(const vm::Param& param, const Any& value, const GivenSizes& given);

}  // namespace tenon::tool
