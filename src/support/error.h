// Errors: what every failing part of Tenon throws, and its text for users.
//
// An Error has a kind, a one-line message, and below it rows (where, found, expected, rule, at), at
// most one table, a backtrace of the machine and one help text. `render` prints:
//
//   error: input 'mask' does not fit bert.tnx
//     expected  tensor[batch=2, seq=32; i64]   bound by 'ids'
//     found     tensor[2, 48; i64]             mask.npy, axis 1
//     help: give both inputs the same seq
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/text.h"

namespace tenon {

enum class ErrorKind : uint8_t {
#define TENON_ERROR_KIND(identifier, ...) identifier,
#include "support/error_kinds.def"
};

std::string_view kind_name(ErrorKind kind);  // "Usage", ...
// The kind of that name; Runtime for an unknown name (an error of a foreign function).
ErrorKind kind_of_name(std::string_view name);
int exit_code(ErrorKind kind);

// What stopped work that was not wrong: a limit, or the host.
enum class StopCause : uint8_t { Fuel, Deadline, Memory, Depth, Stack, Cancel };
std::string_view to_text(StopCause cause);  // "fuel", ...

// The source of a piece of a program: a file and line, or ONNX node names (several after nodes have
// been fused). Empty if unknown.
struct Span {
  std::string file;
  int32_t line = 0;    // from 1; 0 when unknown
  int32_t column = 0;  // from 1; 0 when unknown
  std::vector<std::string> nodes;

  static Span at(std::string file, int32_t line, int32_t column = 0);
  static Span node(std::string name);
  bool empty() const { return file.empty() && line == 0 && nodes.empty(); }
  // The place of `a` with the nodes of both, without repetition, in order.
  static Span merge(const Span& a, const Span& b);
  bool operator==(const Span&) const = default;
};
// "fib.tn:12:3", "/conv1, /relu1", or both: "net.tn:4 (/conv1)"; "" when empty. After six nodes,
// "and 3 more".
std::string to_text(const Span& span);

class Error : public std::exception {
 public:
  static constexpr std::string_view kErrno = ".errno";  // the label of a row with an errno

  // A line below the message; `note` is printed in a column of its own.
  struct Row {
    std::string label, text, note;
    bool is_shown() const;  // a label that begins with a dot is for programs
  };

  // Views, so that a throw constructs no string: that would be most of its code.
  Error(ErrorKind kind, std::string_view message);
  Error(ErrorKind kind, const Span& span, std::string_view message);
  // "MESSAGE: " and the system's text for an errno, which `system_code` returns.
  static Error of_system(ErrorKind kind, std::string_view message, int code);
  // For when memory has run out: creating and copying it allocates nothing.
  static Error out_of_memory() noexcept;

  // Each adds a row and returns this error, so that they chain before the throw:
  //   throw Error(ErrorKind::Usage, "...").expected("...").help("...");
  Error& row(std::string_view label, std::string_view text, std::string_view note = {});
  Error& first_row(std::string_view label, std::string_view text);  // above the existing rows
  Error& where(std::string_view text, std::string_view note = {});
  Error& found(std::string_view text, std::string_view note = {});
  Error& expected(std::string_view text, std::string_view note = {});
  Error& rule(std::string_view text, std::string_view note = {});
  Error& help(std::string_view text);            // the last one set is printed
  Error& table(std::vector<std::string> cells);  // the first is the heading; columns are aligned
  Error& frame(std::string_view text);           // of the machine, innermost first
  Error& at(const Span& span);                   // sets the span unless there is one
  Error& stopped_by(StopCause cause);            // a row for programs
  // Adds another error of the same work, for a reader that goes on after a mistake. This error
  // keeps its kind and message; `render` and `all_rows` have the added ones after it.
  Error& also(const Error& another);

  ErrorKind kind() const { return data_->kind; }
  const std::string& message() const { return data_->message; }
  const Span& span() const { return data_->span; }
  const std::vector<Row>& rows() const { return data_->rows; }
  const std::vector<std::string>& backtrace() const { return data_->frames; }
  // What `render` prints besides the message and the table, as rows: the span as "span", the rows,
  // the frames as "at", the help as "help"; an added error as "error" and its rows.
  std::vector<Row> all_rows() const;
  // The text of the cause, also of an error that came through the C interface; empty if none.
  std::string_view stopped_by() const;
  // The errno of an error of the system; 0 if it is none.
  int system_code() const;
  int exit_code() const { return tenon::exit_code(kind()); }

  // The whole text, without a final line feed. Control bytes in it are escaped.
  std::string render() const;
  const char* what() const noexcept override;  // render()

 private:
  struct Data {
    ErrorKind kind;
    std::string message, help, rendered;
    Span span;
    std::vector<Row> rows;
    std::vector<std::vector<std::string>> table;
    std::vector<std::string> frames;
    std::shared_ptr<Data> next;  // the error that `also` added
  };
  // Call before a change: copies share the data, so that copying can't throw.
  Data& own();
  explicit Error(std::shared_ptr<Data> data) : data_(std::move(data)) {}
  std::shared_ptr<Data> data_;
};

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   std::string message);

}  // namespace tenon

// Throws an Internal error if `condition` is false; the other arguments are joined to its message.
#define TENON_ASSERT(condition, ...)                 \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::tenon::assertion_failed(#condition, __FILE__, __LINE__, ::tenon::cat(__VA_ARGS__)))
