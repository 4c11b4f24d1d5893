#include "tools/tenon/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "support/text.h"
#include "tools/tenon/command.h"

namespace tenon::tool {
namespace {

StatusLine* current = nullptr;

// The columns of the terminal that standard error is; 0 for anything else, and for a terminal that
// can't remove a line.
size_t terminal_columns() {
  const char* type = std::getenv("TERM");
  winsize size{};
  if (isatty(STDERR_FILENO) == 0 || !type || std::strcmp(type, "dumb") == 0) return 0;
  constexpr size_t kUsual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

StatusLine::StatusLine(std::string work) : work_(std::move(work)) {
  if (current || verbosity() == 0 || terminal_columns() == 0) return;
  current = this;
  ticker_ = std::jthread([this](const std::stop_token& stop) { tick(stop); });
}

StatusLine::~StatusLine() {
  if (current != this) return;
  ticker_ = {};  // waits for its end
  current = nullptr;
  hide();
}

void StatusLine::set(std::string step) {
  const std::lock_guard lock(mutex_);
  step_ = std::move(step);
}

void StatusLine::make_room() {
  if (!current) return;
  const std::lock_guard lock(current->mutex_);
  current->hide();
}

void StatusLine::show() {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_);
  std::string line =
      printable(cat(work_, step_.empty() ? "" : ": ", step_, ", ", seconds.count(), " s"));
  // A line that the terminal breaks could not be removed.
  if (const size_t columns = terminal_columns(); line.size() >= columns) line.resize(columns - 1);
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  shown_ = true;
}

void StatusLine::hide() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void StatusLine::tick(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kFirst(1000), kNext(200);
  std::unique_lock lock(mutex_);
  const auto never = [] { return false; };
  wake_.wait_for(lock, stop, kFirst, never);
  while (!stop.stop_requested()) {
    show();
    wake_.wait_for(lock, stop, kNext, never);
  }
}

}  // namespace tenon::tool
