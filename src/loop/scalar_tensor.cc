#include "loop/scalar_tensor.h"

#include "loop/scalar.h"

namespace tenon::loop {

Tensor scalar_tensor(DataType dtype, const Any& number) {
  Tensor tensor = Tensor::empty({}, dtype);
  scalar_store(dtype, tensor.data(),
               dtype.is_float() ? float_bits(number.as<double>()) : number.as<int64_t>());
  return tensor;
}

}  // namespace tenon::loop
