// Work in a child process, so that what ends that process (a crash, memory that ran out) is an
// error here.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>

#include "device/work_budget.h"

namespace tenon::tool {

// A fork of this process. It dies with this one, whatever ends this one.
class ChildProcess {
 public:
  // The child calls `body` with the end of a pipe that it may write to, and exits with what that
  // returns. `memory` is how many bytes it may allocate beyond what this process has, libraries
  // included; 0 for no limit.
  ChildProcess(const std::function<int(int pipe)>& body, size_t memory);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // ends it

  // What it writes can be read here, and then the end of the file, once it has ended.
  int pipe() const { return pipe_; }

  struct End {
    int exit_code = 0;
    int signal = 0;  // that ended it; 0 for none
  };
  End wait();

 private:
  void end() const;

  pid_t pid_ = 0;
  int pipe_ = -1;
};

// What a signal that ended a process says: "the process crashed: Segmentation fault".
std::string crash_text(int signal);

// Runs `work` in a child, which prints what it throws. Returns the exit code. `activity` and `name`
// say in errors what is done: "compiling", "m.onnx". Throws Error (Runtime) when the deadline, lack
// of memory or a crash ended the child.
int run_in_child(const WorkLimits& limits, const std::string& activity, const std::string& name,
                 const std::function<void()>& work);

}  // namespace tenon::tool
