// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/lost_files.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace saker::cli {
namespace {

// A signal handler may call neither the allocator nor the C library's streams: this code uses only
// its own memory and system calls.

// A line of /proc/self/maps has a path of at most 4096 bytes, each shown as at most four.
constexpr std::size_t kLine = 20480;

struct Line {
  std::array<char, kLine> text{};
  std::size_t size = 0;

  std::string_view view() const { return {text.data(), size}; }

  void add(char c) {
    if (size < text.size()) {
      text[size++] = c;
    }
  }

  void add(std::string_view more) {
    for (const char c : more) {
      add(c);
    }
  }
};

Line& found_line() {
  static Line line;
  return line;
}

Line& message() {
  static Line line;
  return line;
}

std::uintptr_t take_hexadecimal(std::string_view& text) {
  std::uintptr_t number = 0;
  while (!text.empty()) {
    const char c = text.front();
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) {
      break;
    }
    number = number * 16 + static_cast<std::uintptr_t>(is_digit ? c - '0' : c - 'a' + 10);
    text.remove_prefix(1);
  }
  return number;
}

// The path in "begin-end flags offset device inode   path"; empty if `address` is not in the range.
std::string_view path_of(std::string_view line, std::uintptr_t address) {
  const std::uintptr_t begin = take_hexadecimal(line);
  line.remove_prefix(line.empty() ? 0 : 1);
  const std::uintptr_t end = take_hexadecimal(line);
  if (address < begin || address >= end) {
    return {};
  }
  const std::size_t slash = line.find('/');
  return slash == std::string_view::npos ? std::string_view() : line.substr(slash);
}

// The file mapped at `address`; empty: none.
std::string_view mapped_path(std::uintptr_t address) {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) {
    return {};
  }
  Line& line = found_line();
  std::array<char, 4096> chunk{};
  std::string_view path;
  for (ssize_t got = 0; path.empty() && (got = ::read(maps, chunk.data(), chunk.size())) > 0;) {
    for (ssize_t i = 0; path.empty() && i < got; ++i) {
      const char c = chunk.at(static_cast<std::size_t>(i));
      if (c != '\n') {
        line.add(c);
        continue;
      }
      path = path_of(line.view(), address);
      line.size = path.empty() ? 0 : line.size;
    }
  }
  ::close(maps);
  return path;
}

// Terminals obey control characters, also those above 0x7f.
void add_printable(Line& line, std::string_view text) {
  bool after_c2 = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_control = byte < 0x20 || byte == 0x7f || (after_c2 && byte < 0xa0);
    line.add(is_control ? '?' : c);
    after_c2 = byte == 0xc2;
  }
}

void tell_lost_file(int /*signal*/, siginfo_t* info, void* /*context*/) {
  static std::atomic_flag is_told = ATOMIC_FLAG_INIT;
  while (is_told.test_and_set()) {
    ::pause();  // Another thread reports and ends the program.
  }
  const std::string_view path = mapped_path(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (path.empty()) {
    ::signal(SIGBUS, SIG_DFL);  // Not about a file: the instruction fails again.
    return;
  }
  Line& line = message();
  line.add("error: '");
  add_printable(line, path);
  line.add(
      "': cannot be read any more: it was cut short or written over while it was in use, or its "
      "disk fails; files are replaced by renaming others to their names\n"
  );
  // If standard error takes no more, nobody can be told.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.text.data(), line.size);
  ::_exit(1);
}

}  // namespace

void fail_large_writes() {
  ::signal(SIGXFSZ, SIG_IGN);
}

void explain_lost_files() {
  struct sigaction action{};
  action.sa_sigaction = tell_lost_file;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace saker::cli
