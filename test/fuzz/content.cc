#include "content.h"

#include <vector>

#include "object/array.h"
#include "object/cell.h"
#include "object/map.h"
#include "object/shape.h"
#include "object/string.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/interp/values.h"

namespace tenon::fuzz {
namespace {

void append_tensor(const Tensor& tensor, std::string* to) {
  *to += to_text(tensor);
  if (is_string_tensor(tensor)) {
    const Strings strings(tensor);
    for (int64_t i = 0; i < strings.size(); ++i) *to += cat(strings[i].size(), ":", strings[i]);
    return;
  }
  const auto bytes = static_cast<size_t>(tensor.bytes());
  const size_t at = to->size();
  to->resize(at + bytes);
  if (bytes) tensor.copy_elements(to->data() + at);
}

}  // namespace

void append_content(const AnyView& root, std::string* to, size_t most) {
  // Values in turn, and text between them; not recursive, since lists may be long.
  struct Part {
    AnyView value;
    const char* text = nullptr;
  };
  std::vector<Part> rest = {{root}};
  const auto push_all = [&](auto begin, auto end) {
    rest.push_back({{}, ")"});
    while (end != begin) rest.push_back({AnyView(*--end)});
  };
  while (!rest.empty()) {
    const Part part = rest.back();
    rest.pop_back();
    if (to->size() > most) {
      *to += "...";
      return;
    }
    const AnyView& value = part.value;
    if (part.text) {
      *to += part.text;
    } else if (const auto tensor = value.try_as<Tensor>(); tensor && *tensor) {
      append_tensor(*tensor, to);
    } else if (const auto text = value.try_as<String>()) {
      *to += cat(text->view().size(), ":", text->view());
    } else if (const auto bytes = value.try_as<Bytes>()) {
      *to += cat("bytes ", bytes->view().size(), ":", bytes->view());
    } else if (value.type_index == TypeIndex::Shape) {
      *to += to_text(value.as<Shape>());
    } else if (const auto* array = value.as_object<ArrayObj>()) {
      *to += cat("array ", array->size, "(");
      push_all(array->begin(), array->begin() + array->size);
    } else if (const auto* cell = value.as_object<CellObj>()) {
      *to += cat("cell ", cell->tag, "(");
      push_all(cell->begin(), cell->end());
    } else if (const auto* map = value.as_object<MapObj>()) {
      *to += cat("map ", map->entries.size(), "(");
      rest.push_back({{}, ")"});
      for (auto entry = map->entries.rbegin(); entry != map->entries.rend(); ++entry) {
        rest.push_back({AnyView(entry->value)});
        rest.push_back({AnyView(entry->key)});
      }
    } else if (const auto* closure = vm::ClosureObj::of_program(value, nullptr)) {
      const auto captures = closure->captures();
      *to += cat("closure ", name_of(value), "(");
      push_all(captures.begin(), captures.end());
    } else if (value.is_object()) {
      *to += cat("object ", value.type_index, "; ");
    } else {
      *to += cat(value.type_index, " ", value.v.bits, "; ");
    }
  }
}

}  // namespace tenon::fuzz
