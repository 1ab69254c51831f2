// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program that this one starts. One thread at a time, but for signal().

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::cli {

// The file of the program in the folders of PATH; empty if there is none.
std::filesystem::path find_program(const std::string& name);

enum class ChildKind : std::uint8_t {
  kForeground,  // It has this program's terminal and its Ctrl-C.
  kBackground,  // It has no input, and no Ctrl-C; it ends with this program, however that ends.
};

struct ChildOptions {
  std::vector<std::pair<std::string, std::string>> environment = {};  // An empty value unsets.
  std::filesystem::path log = {};  // Takes its output, if it is not empty.
  ChildKind kind = ChildKind::kForeground;
};

class Child {
 public:
  // Throws kNotFound if the program can't be started.
  Child(
      const std::filesystem::path& program,
      const std::vector<std::string>& args,
      const ChildOptions& options
  );
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // Ends it by SIGTERM and waits.
  ~Child();

  // Its exit code if it has ended; 128 and the signal's number if a signal ended it.
  std::optional<int> ended();
  // Waits for its end.
  int wait();
  // Sends it a signal. Any thread may call it while the object lives.
  void signal(int number) const;

 private:
  const pid_t pid_;
  std::optional<int> code_;
};

}  // namespace saker::cli
