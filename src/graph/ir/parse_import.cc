// Parses imports of IR text. A function of an imported file has the file's path before its name,
// and isn't exported; data types and constructors have one name everywhere.

#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"

namespace tenon::graph {

// import "std/list.tn" as l
void Parser::imports() {
  while (accept_word("import")) {
    const Token file = peek();
    const std::string name(expect_kind(TokenKind::kString, "the name of a file in quotes"));
    if (!accept_word("as")) fail("the import has no name", "as NAME, for calls of @NAME.function");
    const Token alias = peek();
    expect_word("a name for the import");
    const std::string& prefix = imported(file, name).prefix;
    if (!prefix_of_.emplace(alias.text, prefix).second) {
      fail_at(alias, cat("there is an import ", alias.text, " already"), "another name");
    }
    skip_semicolons();
  }
}

// The file, which is parsed unless another import has done that.
const Imports::File& Parser::imported(const Token& token, const std::string& name) {
  using State = Imports::File::State;
  const Imports::File& from = file_ ? *file_ : imports_->root();
  Imports::File& file = *at(token, [&] { return &imports_->open(from, name); });
  if (file.state == State::kParsed) return file;
  std::vector<const Imports::File*>& open = imports_->open_files;
  if (file.state == State::kOpen) {
    std::string chain;
    for (const Imports::File* f : open) chain += cat(f->shown, " imports ");
    throw Error(ErrorKind::Usage, source_.span(token.begin), "a file imports itself")
        .found(cat(chain, file.shown));
  }
  if (open.size() == Imports::kDeepest) {
    fail_at(token, "imports are nested too deep",
            cat("at most ", Imports::kDeepest, " files that import each other"));
  }
  file.state = State::kOpen;
  open.push_back(&file);
  Parser(file.text, file.shown, imports_, &file).library();
  open.pop_back();
  file.state = State::kParsed;
  return file;
}

// Makes the data types of all imported files known, and the types of their functions.
void Parser::add_imported_types() {
  if (!imports_) return;
  for (const auto& [name, adt] : imports_->adts) {
    adt_arity_[name.view()] = adt->type_params.size();
    signatures_.add_type(adt);
  }
  std::map<std::string_view, std::string_view> import_of;  // by the prefix of its functions
  for (const auto& [import, prefix] : prefix_of_) import_of[prefix] = import;
  for (const auto& [name, type] : imports_->types_of_functions) {
    signatures_.functions.set(name, type);
    const size_t end = name.view().rfind('.') + 1;
    const auto import = import_of.find(name.view().substr(0, end));
    const std::string_view rest = name.view().substr(end);
    if (import == import_of.end() || !is_bare_name(rest)) continue;
    signatures_.written.set(name, cat(import->second, ".", rest));
  }
}

std::string Parser::place_of_other(const Span& span) {
  return cat("the other is at ", span.file, ":", span.line);
}

void Parser::taken(const Token& name, const std::string& message) const {
  Error e = error_at(name, message, "another name");
  const Span here = source_.span(name.begin);
  const auto look_in = [&](const auto& places) {
    const auto other = places.find(name.text);
    if (other == places.end() || other->second == here) return false;
    e.where(place_of_other(other->second));
    return true;
  };
  if (!look_in(constructors_) && imports_) look_in(imports_->places);
  throw e;
}

void Parser::library() {
  const Map<String, FunctionRef> all = parsed_functions();
  for (const auto& [name, function] : all) {
    imports_->functions.set(name, function);
    imports_->types_of_functions.set(name, *signatures_.functions.find(name));
  }
  for (const auto& [name, adt] : adts_) imports_->adts.set(name, adt);
}

std::string Parser::full_name(std::string_view name) const {
  return cat(file_ ? file_->prefix : "", name);
}

std::vector<std::string> Parser::names_of_import(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, _] : imports_->types_of_functions) {
    if (!name.view().starts_with(prefix)) continue;
    const std::string_view rest = name.view().substr(prefix.size());
    if (is_bare_name(rest)) names.emplace_back(rest);
  }
  return names;
}

// Throws for a name that no function of this text has.
void Parser::unknown_function(const Token& name) const {
  std::vector<std::string> names;
  for (const auto& [full, _] : signatures_.functions) {
    const bool is_imported = imports_ && imports_->types_of_functions.contains(full);
    if (!is_imported) names.push_back(full.str().substr(full_name("").size()));
  }
  Error e = no_such_global("function", "@", name.text, names);
  for (const auto& [import, prefix] : prefix_of_) {
    if (!signatures_.functions.contains(cat(prefix, name.text))) continue;
    e.help(cat("did you mean @", import, ".", name.text, "?"));
  }
  throw e.at(source_.span(name.begin));
}

// @f  @l.f
std::string Parser::global_name(const char* what) {
  const Token first = peek();
  expect_kind(TokenKind::kGlobal, what);
  if (!peek().is(".") || peek(1).kind != TokenKind::kWord) {
    std::string full = full_name(first.text);
    if (lost_items_.contains({"fn", full})) throw Lost{};
    if (!signatures_.functions.contains(full)) unknown_function(first);
    return full;
  }
  const auto import = prefix_of_.find(first.text);
  if (import == prefix_of_.end()) {
    Error e = error_at(first, cat("nothing is imported as ", name_text(first.text)),
                       "import \"FILE\" as NAME, before everything else");
    std::vector<std::string> names;
    for (const auto& [name, _] : prefix_of_) names.emplace_back(name);
    suggest(&e, first.text, names);
    throw e;
  }
  take();
  const std::string_view name = take().text;
  std::string full = cat(import->second, name);
  if (!signatures_.functions.contains(full)) {
    throw no_such_global("function", cat("@", first.text, "."), name,
                         names_of_import(import->second))
        .at(source_.span(first.begin));
  }
  return full;
}

}  // namespace tenon::graph
