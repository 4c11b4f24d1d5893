// The parser of IR text: recursive descent over tokens; docs/language.md has the grammar. Builder
// builds the functions, so that they are typed and in A-normal form.
//
// After a mistake, parsing goes on with the next statement or item, so that one run reports several
// errors (parse_recovery.cc).
//
// kMaxNesting bounds the nesting of blocks, types, sizes, attribute lists and scalar expressions,
// each separately. Except for type rules, parsing takes linear time.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/builder.h"
#include "graph/ir/expected_types.h"
#include "graph/ir/imports.h"
#include "graph/ir/lexer.h"
#include "graph/ir/text.h"
#include "graph/ir/typed_text.h"
#include "graph/ir/weights.h"
#include "support/poll.h"

namespace tenon::graph {

class Parser {
 public:
  // A file that another text imports has `file` and shares `imports` with it.
  Parser(std::string_view text, std::string_view name, std::shared_ptr<Imports> imports = nullptr,
         const Imports::File* file = nullptr);
  // See parse_definitions.
  Definitions definitions(const std::vector<std::string>& import_paths, const Definitions& known,
                          const Map<String, TypeRef>& functions);
  void library();  // adds what the text, an imported file, defines to its imports
  Map<String, loop::KernelInterfaceRef> kernels();
  Dim size();
  TypeRef whole_type(const Map<String, Ref<const AdtDefinition>>& adts,
                     const Array<String>& type_params);
  Any whole_constant();
  Any whole_attribute(AttrKind kind);
  PatternRef whole_pattern(const TypeRef& type, const Signatures& signatures,
                           const MakeVariable& variable);

 private:
  // ---- tokens (parse_module.cc) ----
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& take();
  // What `parse` reads, as long as nothing follows it: `what` is a size, a type, ...
  template <class F>
  auto whole(const char* what, F parse) {
    tokens_ = source_.tokens();
    auto out = parse();
    if (peek().kind != TokenKind::kEnd) fail(cat("unexpected text after ", what), "nothing more");
    return out;
  }
  // The same of a text as the user wrote it, which errors show.
  template <class F>
  auto whole_shown(const char* what, F parse) {
    try {
      return whole(what, parse);
    } catch (Error& e) {
      show(&e);
      throw;
    }
  }
  bool accept(std::string_view sign);
  bool accept_word(std::string_view word);
  void expect(std::string_view sign, const char* where);
  std::string_view expect_word(const char* what);
  void expect_parameter();
  std::string_view expect_kind(TokenKind kind, const char* what);
  Span here() const { return source_.span(peek().begin); }
  // Items between brackets, separated by commas; a comma may follow the last.
  template <class F>
  void list(std::string_view close, const char* where, F item) {
    while (!accept(close)) {
      item();
      if (!accept(",")) {
        expect(close, where);
        return;
      }
    }
  }
  struct Nest {
    Nest(Parser* p, int* depth);
    ~Nest() { --*depth_; }
    int* depth_;
  };

  // ---- errors and recovery (parse_recovery.cc) ----
  static constexpr size_t kMaxErrors = 10;
  // Thrown to leave a statement or item that depends on one with an error, without another error.
  struct Lost {};
  // Thrown when kMaxErrors are recorded.
  struct Enough {};
  Error error_at(const Token& token, const std::string& message,
                 const std::string& expected = "") const;
  [[noreturn]] void fail_at(const Token& token, const std::string& message,
                            const std::string& expected = "") const;
  [[noreturn]] void fail(const std::string& message, const std::string& expected = "") const;
  void show(Error* error) const;  // adds the location in the text
  // Keeps the error, so that parsing can go on. Rethrows it unless it is a mistake in the text.
  void record(Error error);
  // Runs `parse`, and records the error that it throws; returns whether it threw none.
  template <class F>
  bool attempt(F parse) {
    try {
      parse();
      return true;
    } catch (const Error& e) {
      record(e);
    } catch (Lost) {
    }
    return false;
  }
  void throw_recorded();  // the errors in the order of the text, as one; returns if there is none
  bool begins_line(size_t token) const;
  bool begins_item(size_t token) const;
  void skip_to_item();
  void skip_argument();  // up to the `,` or `)` after it
  // Skips the rest of the statement that begins at the token `start` of a block of `braces` open
  // braces, up to the next statement or the block's `}`. Its variables that are not bound are lost.
  void skip_statement(size_t start, int64_t braces);
  void skip_semicolons();
  // Throws if an infix operator follows the operand that begins at the token `left`.
  void refuse_infix(size_t left, bool nested) const;
  std::string text_of(size_t from, size_t to) const;  // the source from one token up to another

  // ---- module (parse_module.cc) ----
  struct Item {
    size_t at;        // its first token
    size_t body = 0;  // the token `{`
    std::string_view kind, name;
    bool has_end = true;  // its braces are balanced
  };
  static std::string_view name_space(const Item& item);
  std::vector<Item> items(bool kernels_only);
  Map<String, FunctionRef> functions();
  Map<String, FunctionRef> parsed_functions();  // or the errors
  // Parses the item, a kernel or compute, into signatures_.
  void add_kernel(const Item& item);
  size_t skip_braces(size_t from) const;  // the end of the text if the `}` is missing
  void adt_names(const Item& item);
  void adt_constructors(const Item& item);
  struct Signature {
    Array<String> type_params;
    std::vector<std::pair<std::string, TypeRef>> params;
    TypeRef result;
    Attrs attrs;
  };
  Signature signature(const Item& item);
  [[noreturn]] void function_taken(const Item& item, std::string_view name) const;
  FunctionRef function(const Item& item, const Signature& s);

  // ---- imports (parse_import.cc) ----
  void imports();
  const Imports::File& imported(const Token& token, const std::string& name);
  void add_imported_types();
  // Throws for a data type or constructor that has another's name.
  [[noreturn]] void taken(const Token& name, const std::string& message) const;
  static std::string place_of_other(const Span& span);
  std::string full_name(std::string_view name) const;  // of this text's function
  std::string global_name(const char* what);           // of a function that the text names
  [[noreturn]] void unknown_function(const Token& name) const;
  // The functions of an imported file, as they are called after the import's name.
  std::vector<std::string> names_of_import(const std::string& prefix) const;

  // ---- types and sizes (parse_type.cc) ----
  Dim dim();
  Dim dim_term();
  Dim dim_factor();
  Dim size_of();
  std::vector<Dim> dims(const char* where);  // `[` is next
  TypeRef type();
  TypeRef plain_type();
  Ref<const TensorType> tensor_type_();
  DataType dtype();
  // The element type that the word names, if tensors may have it.
  static std::optional<DataType> element_type(const Token& t);
  // The same, if there are scalars of it.
  static std::optional<DataType> scalar_element_type(const Token& t);
  // The element type that the word names, or that of string tensors.
  static std::optional<DataType> tensor_element_type(const Token& t);
  Array<String> type_params();  // known until they are forgotten
  void forget_type_params(const Array<String>& names);

  // ---- constants and attributes (parse_value.cc) ----
  // Null if no constant starts here. A number without a type takes the one that is expected.
  Operand constant_(const TypeRef& expected = nullptr);
  Operand scalar_constant(DataType dtype);  // the number of a scalar
  bool starts_constant() const;
  Operand tensor_constant();
  double float_value(DataType dtype);  // including integers, signs, inf and nan
  void element(DataType dtype, void* out);
  Tensor listed_elements(const Token& first, DataType dtype, std::span<const int64_t> shape);
  int64_t int_value(const char* what);
  Any attr_value(AttrKind kind);
  Any any_value();
  Attrs attr_list(std::string_view close, const Operator* op);
  const WeightFile& weights(const Token& key);

  // ---- blocks and right-hand sides (parse_expr.cc) ----
  struct Names {  // the visible names, and those that each level added
    std::unordered_map<std::string_view, Operand> known;
    std::vector<std::vector<std::string_view>> levels;
    std::unordered_set<std::string_view> lost;  // by an error, which a use need not repeat
  };
  // `nested`: it stands in an expression, where no call can replace it.
  // `expected`, here and below, is the type that the value should have, or null: what can't be told
  // from the text itself is taken from it.
  Operand operand(const TypeRef& expected = nullptr, bool nested = true);
  Operand variable(const Token& token);
  void declare(const Token& token, const Operand& value);
  void enter();
  void leave();
  // Null if the block has an error. If `refined` isn't empty, it names the result in errors, and
  // the result is refined to the expected type.
  BlockRef block(const char* where, const TypeRef& expected = nullptr,
                 const std::string& refined = "");
  void end_block();  // takes the brace after a block's result
  Operand block_body(const TypeRef& expected, const std::string& refined);
  Operand block_result(const TypeRef& expected);
  bool binding();
  Ref<const Check> check();
  struct Rhs {
    ExprRef value;  // null: an alias
    Operand alias;  // a variable or constant that gets another name
  };
  Rhs rhs(const TypeRef& expected);
  ExprRef expression(const TypeRef& expected);  // a right-hand side that isn't an alias
  // `expected` has the types of the arguments; null if nothing is known of them.
  Ref<Call> call(CalleeKind kind, std::string_view callee, Operand closure,
                 ExpectedTypes* expected = nullptr);
  bool is_field() const;
  bool is_variable() const;
  bool opens_call() const;
  std::vector<int64_t> field_numbers();
  // ---- functions that take tensors of unknown rank (parse_ranks.cc) ----
  void add_function(const Item& item, const Signature& s, Map<String, FunctionRef>* out);
  FunctionRef tried(const Item& item, const Signature& s, std::vector<Error>* errors);
  void add_of_each_rank(const Item& item, const Signature& s, const std::vector<size_t>& unknown,
                        Map<String, FunctionRef>* out);

  // ---- arguments, variables and globals (parse_expr.cc) ----
  struct Postponed {
    size_t index, at;  // of the argument, and its token
  };
  Operand argument(ExpectedTypes* types, size_t index, std::vector<Postponed>* postponed);
  Operand argument(ExpectedTypes* types, const Postponed& later);
  ExprRef of_variable();
  ExprRef of_global(const TypeRef& expected);
  ExprRef tuple(const TypeRef& expected);
  ExprRef kernel_call();
  ExprRef packed_call();
  ExprRef operator_call();
  ExprRef value_function(const Token& word);
  ExprRef array();
  ExprRef if_(const TypeRef& expected);
  BlockRef else_block(const TypeRef& expected);
  TypeRef type_of_arm(const BlockRef& arm);
  ExprRef loop();
  ExprRef size_value();
  // `make()`, whose errors are about the token.
  template <class F>
  auto at(const Token& token, const F& make) {
    try {
      return make();
    } catch (Error& e) {
      throw e.at(source_.span(token.begin));
    }
  }
  ExprRef match_shape();
  std::optional<Span> stated_span();

  // ---- data types and functions as values (parse_match.cc, parse_function.cc) ----
  ExprRef construct(const TypeRef& expected);
  ExprRef match(const TypeRef& expected);
  void require_arms(const Match& match, const std::vector<Token>& arms);
  PatternRef pattern(const TypeRef& type);
  bool begins_variable() const;
  ExprRef function_literal();
  ExprRef closure();

  // ---- kernels (parse_scalar.cc, parse_kernel.cc, parse_compute.cc) ----
  friend class ScalarParser;
  friend class KernelParser;
  friend class ComputeParser;
  loop::KernelInterfaceRef kernel(const Item& item);
  loop::KernelInterfaceRef compute(const Item& item);
  // Converts an error of loop::check to a Usage error at the item.
  [[noreturn]] void breaks_rule(const Item& item, const Error& error) const;

  Source source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int64_t braces_ = 0;  // opened by the tokens taken so far, and not closed
  Ticker ticker_;       // of tokens
  std::vector<Error> errors_;
  bool semicolon_reported_ = false;
  int block_depth_ = 0, type_depth_ = 0, dim_depth_ = 0, value_depth_ = 0;
  size_t dim_atoms_ = 0;
  std::set<std::string_view> type_vars_;
  std::map<std::string_view, size_t> adt_arity_;
  std::map<std::string_view, Span> constructors_;                  // of this text
  std::set<std::pair<std::string_view, std::string>> lost_items_;  // kind and name
  std::optional<WeightFile> weights_;
  bool weights_lost_ = false;
  std::string weights_path_;
  Map<String, Ref<const AdtDefinition>> adts_;
  Signatures signatures_;
  std::shared_ptr<Imports> imports_;     // null: of a part of a text, which imports nothing
  const Imports::File* file_ = nullptr;  // null: nothing imports this text
  std::map<std::string, std::string, std::less<>> prefix_of_;  // by the names of imports
  Builder builder_;
  MakeVariable make_variable_;  // of a host, which writes variables as words; null for a module
  Names names_;
};

}  // namespace tenon::graph
