// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/output.h"

#include "saker/base/characters/printable.h"
#include "saker/base/error.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace saker::cli {
namespace {

std::string read_all(std::FILE* file, const std::string& name) {
  std::string text;
  std::string chunk(std::size_t{1} << 16, '\0');
  while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file)) {
    require(
        text.size() + count <= kMaxTextBytes,
        ErrorCode::kInvalidArgument,
        "{}: larger than the {} MiB that are read at most",
        name,
        kMaxTextBytes >> 20
    );
    text.append(chunk, 0, count);
  }
  require(
      std::ferror(file) == 0,
      ErrorCode::kNotFound,
      "{}: can't be read: {}",
      name,
      system_reason(errno)
  );
  return text;
}

bool is_terminal() {
  static const bool is = ::isatty(STDOUT_FILENO) == 1;
  return is;
}

void write_out(std::string_view text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  require(written, ErrorCode::kInternal, "standard output takes no more: {}", system_reason(errno));
}

// Makes all but line breaks printable.
std::string printable_error(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines += printable_line(text.substr(0, end));
    lines += text.substr(end, 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

void print(std::string_view text) {
  if (is_terminal()) {
    write_out(printable_lines(text));
  } else {
    write_out(text);
  }
}

void print_text(std::string_view text) {
  if (is_terminal()) {
    write_out(printable_text(text));
  } else {
    write_out(text);
  }
}

void print_styled(std::string_view text) {
  write_out(text);
}

void print_error(std::string_view text) {
  std::string lines;
  try {
    lines = printable_error(text);
    text = lines;
  } catch (const std::bad_alloc&) {
    // Unchanged: an `Error` has already made its message printable.
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void end_with_reader() {
  std::signal(SIGPIPE, SIG_DFL);
}

std::string read_text(const std::filesystem::path& path) {
  if (path == "-") {
    return read_stdin();
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rb"), std::fclose
  );
  require(
      file != nullptr,
      ErrorCode::kNotFound,
      "{}: can't be opened: {}",
      path.string(),
      system_reason(errno)
  );
  return read_all(file.get(), path.string());
}

std::string read_stdin() {
  return read_all(stdin, "standard input");
}

}  // namespace saker::cli
