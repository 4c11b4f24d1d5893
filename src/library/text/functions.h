// The parts of this library. Each source registers its functions with their rows of
// library/signatures.
#pragma once

#include <string_view>
#include <vector>

#include "device/scratch.h"
#include "library/signatures/registration.h"
#include "object/string_tensor.h"

namespace tenon::text {

void register_letter_case(Registration& functions);
void register_lists(Registration& functions);
void register_match(Registration& functions);
void register_ngrams(Registration& functions);
void register_numbers(Registration& functions);
void register_split(Registration& functions);
void register_tokens(Registration& functions);

// Of arguments that must be strings of tensors; an error names the function and the argument.
Strings strings_of(std::string_view function, std::string_view name, const Tensor& t);
// An argument that must be one string, in UTF-8.
std::string_view string_of(std::string_view function, std::string_view name, const Any& value);

// The simple mapping of Unicode's character database, of one code point to one.
uint32_t lower_case(uint32_t code_point);
uint32_t upper_case(uint32_t code_point);

}  // namespace tenon::text
