#include "value_maker.h"

#include "support/text.h"

namespace tenon::random_programs {

using Kind = Type::Kind;

std::string ValueMaker::matched(const Type& type, int depth) {
  std::string value_text;
  std::vector<Pattern> rows;
  if (r_.between(0, 2) == 0) {
    const std::vector<Type> parts = {any_type(2, false), any_type(2, true)};
    value_text = list_of(operands(parts, depth - 1));
    rows = {{Type::of(Kind::Tuple, parts), "", true, {{parts[0], ""}, {parts[1], ""}}}};
  } else {
    Type of = any_type(2, true);
    value_text = value(of, depth - 1);
    rows = {{of, ""}};
  }
  for (int64_t n = r_.between(1, 4); n > 0 && rows.size() < 8; --n) split(&rows);
  if (rows.size() > 2 && r_.coin()) {  // the last arm takes what others leave
    rows.resize(static_cast<size_t>(r_.between(1, rows.size() - 1)));
    rows.push_back({rows[0].type, ""});
  }
  const std::string name = fresh();
  begin(cat(name, ": ", text_of(type), " = match ", value_text));
  for (const Pattern& row : rows) {
    std::vector<Variable> added;
    const std::string shown = pattern_text(row, &added);
    begin(shown + " =>");
    scope_.insert(scope_.end(), added.begin(), added.end());
    end(value(type, depth - 1));
  }
  --levels_;
  scope_.resize(marks_.back());
  marks_.pop_back();
  line("}");
  return name;
}

void ValueMaker::split(std::vector<Pattern>* rows) {
  const size_t at = static_cast<size_t>(r_.between(0, rows->size() - 1));
  std::vector<size_t> path;
  const Pattern* open = &(*rows)[at];
  while (!open->is_open() && !open->fields.empty()) {
    path.push_back(static_cast<size_t>(r_.between(0, open->fields.size() - 1)));
    open = &open->fields[path.back()];
  }
  if (!open->is_open() || open->is_rest) return;
  std::vector<Pattern> cases;
  const Type type = open->type;
  if (type.kind == Kind::Tuple) {
    cases.push_back({type, "", true, open_fields(type.parts)});
  } else if (type == Type::scalar(boolean)) {
    cases = {{type, "true"}, {type, "false"}};
  } else if (type.kind == Kind::Scalar && !type.dtype.is_float()) {
    cases = {{type, "0"}, {type, "1"}, {type, ""}};
    cases.back().is_rest = true;
  }
  for (const Constructor& c : constructors(type)) {
    cases.push_back({type, c.name, false, open_fields(c.fields)});
  }
  if (cases.empty()) return;
  std::vector<Pattern> made;
  for (const Pattern& one : cases) {
    Pattern row = (*rows)[at];
    Pattern* part = &row;
    for (const size_t step : path) part = &part->fields[step];
    *part = one;
    made.push_back(std::move(row));
  }
  rows->erase(rows->begin() + static_cast<int64_t>(at));
  rows->insert(rows->begin() + static_cast<int64_t>(at), made.begin(), made.end());
}

std::vector<Pattern> ValueMaker::open_fields(const std::vector<Type>& types) {
  std::vector<Pattern> out;
  for (const Type& type : types) out.push_back({type, ""});
  return out;
}

std::string ValueMaker::pattern_text(const Pattern& pattern, std::vector<Variable>* added) {
  if (pattern.is_open()) {
    if (r_.between(0, 2) == 0) return "_";
    added->push_back({fresh(), pattern.type});
    return added->back().name;
  }
  std::vector<std::string> fields;
  for (const Pattern& field : pattern.fields) fields.push_back(pattern_text(field, added));
  if (pattern.is_tuple) return list_of(fields);
  return pattern.text + (fields.empty() ? "" : call_of(fields));
}

}  // namespace tenon::random_programs
