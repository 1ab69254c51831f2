// SPDX-License-Identifier: Apache-2.0
#include "saker/base/open_file.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace saker {
OpenFile::OpenFile(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const std::string name = quote_path(path);
  require(
      descriptor_ >= 0, ErrorCode::kNotFound, "{}: cannot be opened: {}", name, system_reason(errno)
  );
  struct stat status{};
  const int failed = ::fstat(descriptor_, &status);
  if (failed != 0 || !S_ISREG(status.st_mode)) {
    const int error = errno;
    ::close(descriptor_);
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {}", name, failed != 0 ? system_reason(error) : "is not a regular file")
    );
  }
  size_ = static_cast<std::uintmax_t>(status.st_size);
}

OpenFile::~OpenFile() {
  ::close(descriptor_);
}

}  // namespace saker
