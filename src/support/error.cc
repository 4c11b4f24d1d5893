#include "support/error.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

namespace tenon {

namespace {
struct KindFacts {
  std::string_view name;
  int exit_code;
};
constexpr auto kKinds = std::to_array<KindFacts>({
#define TENON_ERROR_KIND(identifier, c, exit_code, ...) {#identifier, exit_code},
#include "support/error_kinds.def"
});
constexpr size_t kNamedNodes = 6;
constexpr std::string_view kStoppedBy = ".stopped_by";
}  // namespace

std::string_view kind_name(ErrorKind kind) {
  return kKinds[static_cast<size_t>(kind)].name;
}
int exit_code(ErrorKind kind) {
  return kKinds[static_cast<size_t>(kind)].exit_code;
}

ErrorKind kind_of_name(std::string_view name) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].name == name) return static_cast<ErrorKind>(i);
  }
  return ErrorKind::Runtime;
}

std::string_view to_text(StopCause cause) {
  static constexpr std::string_view kNames[] = {"fuel",  "deadline", "memory",
                                                "depth", "stack",    "cancel"};
  return kNames[static_cast<size_t>(cause)];
}

Span Span::at(std::string file, int32_t line, int32_t column) {
  Span s;
  s.file = std::move(file);
  s.line = line;
  s.column = column;
  return s;
}

Span Span::node(std::string name) {
  Span s;
  s.nodes.push_back(std::move(name));
  return s;
}

Span Span::merge(const Span& a, const Span& b) {
  Span s = a;
  if (s.file.empty() && s.line == 0) {
    s.file = b.file;
    s.line = b.line;
    s.column = b.column;
  }
  for (const auto& n : b.nodes) {
    if (std::find(s.nodes.begin(), s.nodes.end(), n) == s.nodes.end()) s.nodes.push_back(n);
  }
  return s;
}

std::string to_text(const Span& span) {
  std::string place = span.file;
  if (span.line > 0) {
    if (place.empty()) place = "line";
    place += cat(':', span.line);
    if (span.column > 0) place += cat(':', span.column);
  }
  if (span.nodes.empty()) return place;
  std::string names;
  for (size_t i = 0; i < std::min(span.nodes.size(), kNamedNodes); ++i) {
    if (i) names += ", ";
    names += span.nodes[i];
  }
  if (span.nodes.size() > kNamedNodes) {
    names += cat(" and ", span.nodes.size() - kNamedNodes, " more");
  }
  return place.empty() ? names : cat(place, " (", names, ")");
}

Error::Error(ErrorKind kind, std::string_view message) : data_(std::make_shared<Data>()) {
  data_->kind = kind;
  data_->message = message;
}

Error::Error(ErrorKind kind, const Span& span, std::string_view message) : Error(kind, message) {
  data_->span = span;
}

Error Error::out_of_memory() noexcept {
  alignas(Data) static unsigned char memory[sizeof(Data)];  // never destroyed
  static auto* const data =
      new (memory) Data{ErrorKind::Runtime, "out of memory", {}, {}, {}, {}, {}, {}, {}};
  return Error(std::shared_ptr<Data>(std::shared_ptr<Data>(), data));  // not owned
}

namespace {
constinit std::mutex rendering;  // guards the rendered text, which copies share between threads
}

Error::Data& Error::own() {
  if (data_.use_count() != 1) {  // shared, or not owned
    std::lock_guard lock(rendering);
    data_ = std::make_shared<Data>(*data_);
  }
  data_->rendered.clear();
  return *data_;
}

Error& Error::row(std::string_view label, std::string_view text, std::string_view note) {
  own().rows.push_back({std::string(label), std::string(text), std::string(note)});
  return *this;
}
Error& Error::first_row(std::string_view label, std::string_view text) {
  std::vector<Row>& rows = own().rows;
  rows.insert(rows.begin(), {std::string(label), std::string(text), ""});
  return *this;
}
Error& Error::where(std::string_view text, std::string_view note) {
  return row("where", text, note);
}
Error& Error::found(std::string_view text, std::string_view note) {
  return row("found", text, note);
}
Error& Error::expected(std::string_view text, std::string_view note) {
  return row("expected", text, note);
}
Error& Error::rule(std::string_view text, std::string_view note) {
  return row("rule", text, note);
}
// Inlined where messages are made, as GCC at times decides, it takes half a KB.
[[gnu::noinline]] Error& Error::help(std::string_view text) {
  own().help = text;
  return *this;
}
Error& Error::table(std::vector<std::string> cells) {
  own().table.push_back(std::move(cells));
  return *this;
}
Error& Error::frame(std::string_view text) {
  own().frames.emplace_back(text);
  return *this;
}
bool Error::Row::is_shown() const {
  return !label.starts_with('.');
}

Error Error::of_system(ErrorKind kind, std::string_view message, int code) {
  return Error(kind, cat(message, ": ", std::strerror(code))).row(kErrno, cat(code));
}

int Error::system_code() const {
  for (const Row& row : data_->rows) {
    if (row.label == kErrno) return std::atoi(row.text.c_str());
  }
  return 0;
}

Error& Error::stopped_by(StopCause cause) {
  return row(kStoppedBy, to_text(cause));
}

std::string_view Error::stopped_by() const {
  for (const Row& row : rows()) {
    if (row.label == kStoppedBy) return row.text;
  }
  return {};
}

Error& Error::at(const Span& span) {
  if (data_->span.empty()) own().span = span;
  return *this;
}
Error& Error::also(const Error& another) {
  Error rest = another;
  if (data_->next) rest = Error(data_->next).also(another);
  own().next = std::move(rest.data_);
  return *this;
}

namespace {

// Counts characters, not bytes: UTF-8 continuation bytes have no width.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void pad_to(std::string& out, size_t have, size_t want) {
  if (want > have) out.append(want - have, ' ');
}

// Indents the second and later lines to the column of the first.
void append_indented(std::string& out, std::string_view text, size_t indent) {
  for (char c : text) {
    out.push_back(c);
    if (c == '\n') out.append(indent, ' ');
  }
}

void append_rows(std::string& out, const std::vector<Error::Row>& rows) {
  constexpr size_t kIndent = 2, kLabelGap = 2, kNoteGap = 3;
  size_t label_width = 8;  // of "expected"
  size_t text_width = 0;
  for (const auto& r : rows) {
    if (!r.is_shown()) continue;
    label_width = std::max(label_width, width(r.label));
    if (!r.note.empty() && r.text.find('\n') == std::string::npos) {
      text_width = std::max(text_width, width(printable(r.text)));
    }
  }
  for (const auto& r : rows) {
    if (!r.is_shown()) continue;
    out.append("\n").append(kIndent, ' ');
    out.append(printable(r.label));
    pad_to(out, width(r.label), label_width + kLabelGap);
    std::string text = printable(r.text, true);
    append_indented(out, text, kIndent + label_width + kLabelGap);
    if (!r.note.empty()) {
      pad_to(out, width(text), text_width);
      out.append(kNoteGap, ' ').append(printable(r.note));
    }
  }
}

void append_table(std::string& out, const std::vector<std::vector<std::string>>& table) {
  std::vector<size_t> widths;
  for (const auto& line : table) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], width(printable(line[i])));
    }
  }
  for (const auto& line : table) {
    out.append("\n  ");
    for (size_t i = 0; i < line.size(); ++i) {
      std::string cell = printable(line[i]);
      out.append(cell);
      if (i + 1 < line.size()) pad_to(out, width(cell), widths[i] + 2);
    }
  }
}

}  // namespace

std::vector<Error::Row> Error::all_rows() const {
  Error all(*this);
  if (!data_->span.empty()) all.first_row("span", to_text(data_->span));
  for (const std::string& frame : data_->frames) all.row("at", frame);
  if (!data_->help.empty()) all.row("help", data_->help);
  if (data_->next) {
    all.row("error", data_->next->message);
    for (const Row& row : Error(data_->next).all_rows()) all.row(row.label, row.text, row.note);
  }
  return all.rows();
}

std::string Error::render() const {
  std::string out = data_->kind == ErrorKind::Internal ? "internal error: " : "error: ";
  if (!data_->span.empty()) out += printable(to_text(data_->span)) + ": ";
  append_indented(out, printable(data_->message, true), 2);
  append_table(out, data_->table);
  append_rows(out, data_->rows);
  for (const auto& f : data_->frames) out += "\n  at " + printable(f);
  if (!data_->help.empty()) {
    out += "\n  help: ";
    append_indented(out, printable(data_->help, true), 8);
  }
  if (data_->next) out += "\n" + Error(data_->next).render();
  return out;
}

const char* Error::what() const noexcept {
  try {
    std::lock_guard lock(rendering);
    if (data_->rendered.empty()) data_->rendered = render();
    return data_->rendered.c_str();
  } catch (...) {
    return data_->message.c_str();
  }
}

void assertion_failed(const char* condition, const char* file, int line, std::string message) {
  if (message.empty()) message = condition;
  Error e(ErrorKind::Internal, std::move(message));
  e.row("assertion", condition).where(cat(file, ':', line));
  e.help("this is a bug in Tenon; please report it with the program that shows it");
  throw e;
}

}  // namespace tenon
