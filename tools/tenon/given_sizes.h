// The sizes that --dim and --shape give, applied to a function's types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "import/onnx/import_model.h"
#include "tools/tenon/program_file.h"

namespace tenon::tool {

// Those of models and of other programs alike.
using GivenSizes = onnx::ImportOptions;

// Adds the sizes that --shape gives to symbols to those of --dim. Throws Usage for a --dim or
// --shape that doesn't name a symbol or an input of the function, changes a fixed size, or
// disagrees with another. (For an ONNX model, the importer does this, since it replaces the names.)
void bind_sizes(const FunctionSignature& signature, GivenSizes* given);

// Adds the sizes that a value has on axes with symbols, unless they are given.
void bind_sizes_of(const vm::Param& param, const Any& value, GivenSizes* given);

// The shape of a random tensor for a parameter. Symbols that are not given are 1 and are added to
// `chosen`. Throws Usage if the type does not determine the shape or the shape is invalid.
std::vector<int64_t> random_shape(const vm::Param& param, const GivenSizes& given,
                                  std::vector<std::string>* chosen);

// Throws Usage for a tensor whose sizes differ from those of --dim or --shape. A compiled program
// accepts any size, so it would not report this.
void check_given_sizes(const vm::Param& param, const Any& value, const GivenSizes& given);

}  // namespace tenon::tool
