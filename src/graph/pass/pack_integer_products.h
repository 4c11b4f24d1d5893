// pack_integer_products: packs the right operands of matmul_integer, unless the left one has few
// rows, and the constant ones of conv_integer (channels last, in one group or in one for each
// channel), four numbers to a word, for CPUs that multiply such words. With a' and b' the operands
// as u8 and i8, which moves their zero points by 128,
//
//   sum (a' - za) (b' - zb)  =  sum a' b'  -  za * (sum b' - k * zb)  -  zb * sum a'
//
// where k counts the summed products. The first sum is matmul_words, conv_words or depthwise_words;
// what is constant in the others is folded. All wraps in i32, as the definition does. A
// conv_integer is packed only if zb is 0.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module pack_integer_products(const Module& module, PassContext& cx);

}  // namespace tenon::graph
