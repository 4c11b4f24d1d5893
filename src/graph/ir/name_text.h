// Names and sizes in IR text: bare if they read back as one word, otherwise quoted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loop/dim.h"
#include "object/dtype.h"
#include "support/error.h"

namespace tenon::graph {

// Whether the name consists of letters, digits and underscores.
bool is_bare_name(std::string_view name);
// `name` after % or @.
std::string name_text(std::string_view name);
// A size as text. Symbols that would read as something else are quoted.
std::string dim_text(const Dim& d);
// Whether the word can't be the unquoted name of a type, symbol or constructor.
bool is_reserved(std::string_view word);
// Whether a data type may have this name: not a word of the language, nor one that only signatures
// have (vm/isa/signature.h).
bool may_name_type(std::string_view word);

// Sets the help "did you mean X?" if a candidate is close to the unknown `name`. X is the candidate
// as it is written after `sign`.
void suggest(Error* error, std::string_view name, const std::vector<std::string>& candidates,
             std::string_view sign = "");
// What is called by another word elsewhere.
struct OtherWord {
  std::string_view elsewhere, here;
};
// The same, but a word of `others` suggests its counterpart.
void suggest_word(Error* error, std::string_view name, std::span<const OtherWord> others,
                  const std::vector<std::string>& candidates);

// A float as text that reads back with the same bits: `0.5`, `1.0`, `-inf`, `nan`, and other NaNs
// as `nan(0x...)` with all bits of a double.
std::string float_text(double value);
// An element of a tensor, in the precision of its type; NaNs with all bits of the type.
std::string element_text(DataType dtype, const void* element);

}  // namespace tenon::graph
