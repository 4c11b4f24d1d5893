#include "library/text/register.h"

#include "library/text/functions.h"
#include "object/library.h"

namespace tenon {

void register_text_functions() {
  Registration functions;
  text::register_lists(functions);
  text::register_letter_case(functions);
  text::register_match(functions);
  text::register_ngrams(functions);
  text::register_numbers(functions);
  text::register_split(functions);
  text::register_tokens(functions);
  functions.commit();
}

void register_text() {
  define_library("tenon_text", register_text_functions);
}

}  // namespace tenon
