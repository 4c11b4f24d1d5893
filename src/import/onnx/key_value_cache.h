// The cache of keys and values that GroupQueryAttention takes and returns, [batch, heads, rows,
// size]. Each batch entry has tokens of its own number in it; new ones follow them.
#pragma once

#include "import/onnx/node_context.h"

namespace tenon::onnx {

// What the batch entries have: `lengths` tokens each, the last ones of which are new.
struct Tokens {
  Dim batch, steps;  // of the query, with padding
  Dim total;         // at least the most tokens of any entry
  Operand lengths;   // i64[batch]
  Operand past;      // i64[batch]: how many there were before
  Operand appended;  // i64[batch, 1] or i64[]: how many are new, without padding
};

// x [n] along one axis of `rank`.
Operand along(NodeContext& cx, const Operand& x, size_t axis, size_t rank);

// Where the rows of the next call's cache come from, and what queries attend to.
struct CacheRows {
  Dim cached, capacity;
  Operand from;    // i64[batch, capacity]: a row of the past ones and, behind them, the new ones
  Operand exists;  // bool[batch, capacity]: others are zeros
  Dim columns;     // of the scores
  Operand place;   // i64[batch or 1, 1, 1, columns]: of each column in the text
  Operand held;    // bool of that shape: which columns are tokens; null: those up to a query are
};

// A cache that holds every token at its place. `cached`: the rows that it has before.
CacheRows whole_cache(NodeContext& cx, const Tokens& t, const Dim& cached);

// A cache of `cached` rows that drops tokens when it is full, but keeps the last `window` ones.
// With g = cached - window + 1, it holds the last n - g * ceil(max(n - cached, 0) / g) of n tokens.
CacheRows sliding_cache(NodeContext& cx, const Tokens& t, const Dim& cached, int64_t window);

struct Cache {
  Operand attended;  // [batch, heads, columns, size]
  Operand present;   // [batch, heads, capacity, size]
};

// `past` may be null.
Cache update_cache(NodeContext& cx, const Operand& past, const Operand& now, const CacheRows& rows);

// How keys or values lie in the cache: as they are, or as integers of 8 or, two in a byte, 4 bits.
struct Storage {
  int64_t bits = 0;  // 0: as they are
  Operand scale;     // to be broadcast to the cache
};

Operand stored(NodeContext& cx, const Operand& x, const Storage& s);
Operand restored(NodeContext& cx, const Operand& cache, const Storage& s, DataType dtype);

}  // namespace tenon::onnx
