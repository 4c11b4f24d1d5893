// A line on the terminal that says what a long command is doing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tenon::tool {

// Appears on standard error after a second, if that is a terminal and -q isn't given, shows the
// time that has passed, and is removed when the work is done. One at a time in a process.
class StatusLine {
 public:
  explicit StatusLine(std::string work);  // "compiling m.onnx"
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine();

  // What is being done now: "fuse_operators", "12 of 40 cases".
  void set(std::string step);

  // Removes the line, which comes back below what is printed next.
  static void make_room();

 private:
  void show();
  void hide();
  void tick(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string work_, step_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool shown_ = false;
  std::jthread ticker_;  // last, so that it ends before what it uses
};

}  // namespace tenon::tool
