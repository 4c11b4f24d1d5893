// Parses modules of IR text; the cursor over tokens.

#include <algorithm>
#include <unordered_set>

#include "graph/ir/calls.h"
#include "graph/ir/check.h"
#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"
#include "graph/ir/text.h"
#include "graph/ir/typed_text.h"

namespace tenon::graph {

// ---- tokens ----

const Token& Parser::take() {
  ticker_.tick();
  const Token& t = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  if (t.is("{")) ++braces_;
  if (t.is("}")) --braces_;
  return t;
}

bool Parser::accept(std::string_view sign) {
  if (!peek().is(sign)) return false;
  take();
  return true;
}

bool Parser::accept_word(std::string_view word) {
  if (!peek().word(word)) return false;
  take();
  return true;
}

void Parser::expect(std::string_view sign, const char* where) {
  if (!accept(sign)) fail(cat("'", sign, "' is missing ", where), cat("'", sign, "'"));
}

std::string_view Parser::expect_kind(TokenKind kind, const char* what) {
  if (peek().kind != kind) fail(cat(what, " is missing"), what);
  return take().text;
}

void Parser::expect_parameter() {
  const Token& t = peek();
  if (t.kind == TokenKind::kVar) {
    take();
  } else {
    fail("a parameter is missing",
         cat("a name that begins with %: %", t.kind == TokenKind::kWord ? t.text : "x"));
  }
}

std::string_view Parser::expect_word(const char* what) {
  return expect_kind(TokenKind::kWord, what);
}

Parser::Nest::Nest(Parser* p, int* depth) : depth_(depth) {
  if (++*depth > kMaxNesting) {
    --*depth;
    p->fail("this is nested too deep", cat("at most ", kMaxNesting, " levels"));
  }
}

// ---- module ----

Parser::Parser(std::string_view text, std::string_view name, std::shared_ptr<Imports> imports,
               const Imports::File* file)
    : source_(text, name), imports_(std::move(imports)), file_(file) {}

size_t Parser::skip_braces(size_t from) const {
  int64_t depth = 0;
  for (size_t i = from; i < tokens_.size(); ++i) {
    if (tokens_[i].is("{")) ++depth;
    if (tokens_[i].is("}") && --depth == 0) return i + 1;
  }
  return tokens_.size();
}

// What the item's name is one of: a compute is a kernel to its callers.
std::string_view Parser::name_space(const Item& item) {
  return item.kind == "compute" ? "kernel" : item.kind;
}

// Finds where every item starts, so that all signatures are known before a body is parsed.
std::vector<Parser::Item> Parser::items(bool kernels_only) {
  static constexpr std::string_view kItems[] = {"fn", "kernel", "compute", "type"};
  std::vector<Item> out;
  std::map<std::pair<std::string_view, std::string_view>, Span> seen;
  if (peek().word("weights") && !kernels_only) {
    take();
    weights_path_ = expect_kind(TokenKind::kString, "the name of a weight file in quotes");
  }
  if (!kernels_only) imports();
  for (skip_semicolons(); peek().kind != TokenKind::kEnd; skip_semicolons()) {
    const bool is_kernel = peek().word("kernel") || peek().word("compute");
    if (kernels_only && !is_kernel) fail("this text may only contain kernels", "kernel or compute");
    Item item{at_, 0, peek().text, {}};
    const bool found = attempt([&] {
      if (peek().word("import")) fail("this import isn't at the beginning", "imports before items");
      if (file_ && is_kernel) fail("an imported file has no kernels", "fn or type");
      if (accept_word("type")) {
        Token name = peek();
        item.name = expect_word("the name of a type");
        if (!may_name_type(name.text))
          fail_at(name, "this word has another meaning", "another name");
      } else if (accept_word("fn") || accept_word("kernel") || accept_word("compute")) {
        item.name = expect_kind(TokenKind::kGlobal, "a name such as @main");
      } else {
        const char* items = out.empty()
                                ? "import, fn, kernel, compute or type"  // imports are first
                                : "fn, kernel, compute or type";
        Error e = error_at(peek(), "an item of a module is missing", items);
        suggest(&e, peek().text, {std::begin(kItems), std::end(kItems)});
        throw e;
      }
      const Token& name = tokens_[item.at + 1];
      const auto [other, is_new] =
          seen.emplace(std::pair(name_space(item), item.name), source_.span(name.begin));
      if (!is_new) {
        Error e =
            error_at(name, cat(item.kind, " ", item.name, " is already defined"), "another name");
        throw e.where(place_of_other(other->second));
      }
      // The body starts at the first `{` outside brackets; signatures have no elements of tensors.
      while (!peek().is("{")) {
        if (peek().kind == TokenKind::kEnd) fail("'{' is missing", "a body");
        take();
      }
      item.body = at_;
    });
    if (!found) {
      const Token& name = tokens_[std::min(item.at + 1, tokens_.size() - 1)];
      if (name.kind == TokenKind::kGlobal) lost_items_.insert({"fn", full_name(name.text)});
      skip_to_item();
      continue;
    }
    at_ = skip_braces(item.body);
    if (at_ == tokens_.size()) {
      at_ = item.body;
      record(error_at(tokens_[at_], "this block has no end", "a closing '}'"));
      item.has_end = false;
      skip_to_item();
    }
    out.push_back(item);
  }
  return out;
}

void Parser::adt_names(const Item& item) {
  at_ = item.at + 2;
  std::set<std::string_view> outer;
  std::swap(outer, type_vars_);
  size_t count = type_params().size();
  type_vars_ = std::move(outer);
  if (!adt_arity_.emplace(item.name, count).second) {
    const bool is_prelude = prelude().contains(String(item.name));
    taken(tokens_[item.at + 1], is_prelude ? cat("the prelude has a type ", item.name)
                                           : cat("there is a type ", item.name, " already"));
  }
}

// type shape_of[T] { Empty, Full(T, i64) }
void Parser::adt_constructors(const Item& item) {
  at_ = item.at + 2;
  auto d = make<AdtDefinition>();
  d->name = item.name;
  type_vars_.clear();
  d->type_params = type_params();
  expect("{", "before constructors");
  list("}", "after constructors", [&] {
    Token name = peek();
    auto c = make<Constructor>();
    c->name = expect_word("a constructor");
    bool upper = name.text[0] >= 'A' && name.text[0] <= 'Z';
    if (!upper) fail_at(name, "a constructor starts with a capital", "a name such as Some");
    const Span place = source_.span(name.begin);
    const bool is_new = constructors_.emplace(name.text, place).second;
    if (!is_new || signatures_.find_constructor(name.text).adt) {
      taken(name, cat("there is a constructor ", name.text, " already"));
    }
    if (imports_) imports_->places.emplace(name.text, place);
    if (accept("(")) {
      list(")", "after fields", [&] {
        const Span field = here();
        c->fields.push_back(type());
        check_field(c->fields.back(), c->name, field);
      });
    }
    d->constructors.push_back(c);
  });
  type_vars_.clear();
  if (d->constructors.empty()) {
    fail_at(tokens_[item.at + 1], cat("the type ", item.name, " has no constructor"),
            "at least one");
  }
  if (imports_) imports_->places.emplace(item.name, source_.span(tokens_[item.at + 1].begin));
  adts_.set(d->name, d);
  signatures_.add_type(d);
}

void Parser::function_taken(const Item& item, std::string_view name) const {
  fail_at(tokens_[item.at + 1], cat("there is a function '", printable(name), "' already"),
          "another name");
}

// The signature of the item, a function, which calls of it see from then on.
Parser::Signature Parser::signature(const Item& item) {
  at_ = item.at + 2;
  Signature s;
  type_vars_.clear();
  s.type_params = type_params();
  expect("(", "before a function's parameters");
  list(")", "after a function's parameters", [&] {
    Token name = peek();
    expect_parameter();
    expect(":", "between a parameter and its type");
    s.params.emplace_back(std::string(name.text), type());
  });
  expect("->", "before a function's result");
  s.result = type();
  if (accept_word("attrs")) {
    expect("(", "after 'attrs'");
    s.attrs = attr_list(")", nullptr);
  }
  if (at_ != item.body) fail("'{' is missing before a function's body", "'{'");
  auto t = make<FunctionType>();
  t->type_params = s.type_params;
  for (const auto& [_, param] : s.params) t->params.push_back(param);
  t->result = s.result;
  const String name(full_name(item.name));
  if (signatures_.functions.contains(name)) function_taken(item, name.view());
  signatures_.functions.set(name, t);
  if (file_) signatures_.written.set(name, name_text(item.name));
  if (file_) s.attrs.set(kExportAttr, Any(false));
  return s;
}

FunctionRef Parser::function(const Item& item, const Signature& s) {
  at_ = item.at + 2;
  type_vars_.clear();
  for (const String& p : s.type_params) type_vars_.insert(p.view());
  builder_ = Builder(signatures_);
  names_ = {};
  braces_ = 0;
  Token first = tokens_[item.at];
  builder_.at(source_.span(first.begin));
  enter();
  // The names' tokens, for errors.
  size_t p = 0;
  int depth = 0;
  std::vector<Token> tokens;
  for (at_ = item.at + 2; at_ < item.body && tokens.size() < s.params.size(); ++at_) {
    if (tokens_[at_].is("(") || tokens_[at_].is("[")) ++depth;
    if (tokens_[at_].is(")") || tokens_[at_].is("]")) --depth;
    if (depth == 1 && tokens_[at_].kind == TokenKind::kVar) tokens.push_back(tokens_[at_]);
  }
  SymbolSet symbols;
  for (const auto& [name, t] : s.params) {
    declare(tokens[p++], builder_.param(name, t));
    collect_symbols(t, &symbols);
  }
  collect_symbols(s.result, &symbols);
  for (const std::string& name : symbols) {
    if (builder_.in_scope(name)) continue;
    Error e(ErrorKind::Usage, source_.span(first.begin),
            cat("the symbol ", name, " of @", item.name, " is not bound"));
    e.expected("a parameter with it as a dimension, as in tensor[n; f32]");
    e.help("for a size that is known only at run time, state the rank: tensor[rank=1; f32]");
    suggest(&e, name, builder_.symbols());
    throw e;
  }
  at_ = item.body;
  Nest nest(this, &block_depth_);
  expect("{", "before a function's body");
  enter();
  Operand result = block_body(s.result, cat("the result of @", item.name));
  leave();
  leave();
  builder_.at(source_.span(first.begin));
  return builder_.finish_as(full_name(item.name), result, s.result, s.attrs, s.type_params);
}

void Parser::add_kernel(const Item& item) {
  if (!item.has_end) throw Lost{};
  if (signatures_.kernels.contains(String(item.name))) {
    fail_at(tokens_[item.at + 1], cat("there is a kernel ", item.name, " already"), "another name");
  }
  if (item.kind == "kernel") signatures_.kernels.set(String(item.name), kernel(item));
  if (item.kind == "compute") signatures_.kernels.set(String(item.name), compute(item));
}

Map<String, loop::KernelInterfaceRef> Parser::kernels() {
  try {
    tokens_ = source_.tokens();
    for (const Item& item : items(/*kernels_only=*/true)) attempt([&] { add_kernel(item); });
  } catch (Enough) {
  } catch (Error& e) {
    show(&e);
    throw;
  }
  throw_recorded();
  return signatures_.kernels;
}

Map<String, FunctionRef> Parser::functions() {
  tokens_ = source_.tokens();
  const std::vector<Item> all = items(/*kernels_only=*/false);
  for (const auto& [name, adt] : prelude()) adt_arity_[name.view()] = adt->type_params.size();
  add_imported_types();
  // Without a type, most of its uses would be errors.
  for (const auto read : {&Parser::adt_names, &Parser::adt_constructors}) {
    bool known = true;
    for (const Item& item : all) {
      if (item.kind == "type") known &= attempt([&] { (this->*read)(item); });
    }
    if (!known) return {};
  }
  std::vector<std::pair<const Item*, Signature>> signatures;
  for (const Item& item : all) {
    const bool known = attempt([&] {
      if (item.kind == "fn") {
        signatures.emplace_back(&item, signature(item));
      } else {
        add_kernel(item);
      }
    });
    if (known) continue;
    const bool is_function = item.kind == "fn";
    lost_items_.insert(
        {name_space(item), is_function ? full_name(item.name) : std::string(item.name)});
  }
  Map<String, FunctionRef> out;
  for (const auto& [item, s] : signatures) {
    if (item->has_end) attempt([&] { add_function(*item, s, &out); });
  }
  return out;
}

Map<String, FunctionRef> Parser::parsed_functions() {
  Map<String, FunctionRef> all;
  try {
    all = functions();
  } catch (Enough) {
  } catch (Error& e) {
    show(&e);
    throw;
  }
  throw_recorded();
  return all;
}

Definitions Parser::definitions(const std::vector<std::string>& import_paths,
                                const Definitions& known, const Map<String, TypeRef>& functions) {
  // A copy: `known` stays as it is if the text is wrong.
  imports_ = known.imports ? std::make_shared<Imports>(*known.imports)
                           : std::make_shared<Imports>(source_.name(), std::vector<std::string>());
  imports_->add_paths(import_paths);
  prefix_of_ = known.prefixes;
  signatures_.functions = functions;
  signatures_.kernels = known.kernels;
  Definitions all;
  all.functions = known.functions;
  for (const auto& [name, function] : parsed_functions()) all.functions.set(name, function);
  for (const auto& [name, adt] : adts_) imports_->adts.set(name, adt);
  all.imported = imports_->functions;
  all.adts = imports_->adts;
  all.kernels = signatures_.kernels;
  all.written = signatures_.written;
  all.prefixes = prefix_of_;
  all.imports = imports_;
  return all;
}

Map<String, loop::KernelInterfaceRef> parse_kernels(std::string_view text, std::string_view name) {
  return Parser(text, name).kernels();
}

Module parse_module(std::string_view text, std::string_view name,
                    const std::vector<std::string>& import_paths) {
  const Definitions d = parse_definitions(text, name, import_paths);
  return make_module(d.imported.empty() ? d.functions : reachable(d.functions, d.imported),
                     d.kernels, d.adts);
}

Definitions parse_definitions(std::string_view text, std::string_view name,
                              const std::vector<std::string>& import_paths,
                              const Definitions& known, const Map<String, TypeRef>& functions) {
  return Parser(text, name).definitions(import_paths, known, functions);
}

Dim parse_size(std::string_view text) {
  return Parser(text, "size").size();
}

TypeRef parse_type(std::string_view text) {
  return parse_type(text, {});
}

TypeRef parse_type(std::string_view text, const Map<String, Ref<const AdtDefinition>>& adts,
                   const Array<String>& type_params) {
  return Parser(text, "type").whole_type(adts, type_params);
}

Any parse_constant(std::string_view text) {
  return Parser(text, "constant").whole_constant();
}

bool begins_like_module(std::string_view text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with("//")) break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  const size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
  const std::string_view word = text.substr(0, end);
  // Assembly also has lines that begin with `kernel`, but its names begin with `$`.
  if (word == "kernel" || word == "compute") {
    const size_t name = text.find_first_not_of(" \t\r\n", end);
    return name == std::string_view::npos || text[name] == '@';
  }
  return word == "weights" || word == "import" || word == "type" || word == "fn";
}

}  // namespace tenon::graph
