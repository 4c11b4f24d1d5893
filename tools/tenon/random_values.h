// Random values for the parameters of a function.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tenon/data_types.h"
#include "tools/tenon/given_sizes.h"

namespace tenon::tool {

// A tensor for a parameter of type tensor, whose elements are all the number: of the sizes that
// random values have, or of rank 0 if nothing gives the rank.
Tensor filled_tensor(const vm::Param& param, const Any& number, const GivenSizes& sizes,
                     std::vector<std::string>* chosen);

// Values that a seed determines, the same on every machine: floats from -1 to 1, integers 0 and 1,
// strings of 3 to 8 letters, arrays and lists of 2 elements, and of other data types the
// constructor with the most fields that doesn't contain the type again.
class RandomValues {
 public:
  // `sizes` and `types` must outlive it.
  RandomValues(uint64_t seed, const GivenSizes& sizes, const DataTypes& types)
      : generator_(seed), sizes_(sizes), types_(types) {}

  // `spec` is "random", or "random:LOW..HIGH" for the numbers in the value. Symbols without a size
  // are 1 and are added to `chosen`. Throws Usage for a type that has no random values, or whose
  // sizes aren't known.
  Any value(const vm::Param& param, std::string_view spec, std::vector<std::string>* chosen);

 private:
  struct Making {
    const vm::Param& param;
    std::string_view spec;
    std::vector<std::string>* chosen;
    size_t values = 0;  // made so far
  };

  // `depth`: of the values around it.
  Any value(const vm::SignatureType& type, size_t depth, Making* making);
  Any scalar(DataType dtype, std::string_view spec);
  Any tensor(const vm::SignatureType& type, size_t depth, Making* making);
  Any cell(const vm::SignatureType& type, size_t depth, Making* making);
  std::vector<Any> values(const std::vector<vm::SignatureType>& types, size_t depth,
                          Making* making);
  std::string word();

  std::mt19937_64 generator_;
  const GivenSizes& sizes_;
  const DataTypes& types_;
};

}  // namespace tenon::tool
