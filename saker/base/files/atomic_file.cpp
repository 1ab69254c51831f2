// SPDX-License-Identifier: Apache-2.0
#include "saker/base/files/atomic_file.h"

#include "saker/base/error.h"
#include "saker/base/files/temporary_path.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace saker {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kPermissions = 0777;

// Calls `write_some` with what is left until nothing is. Throws kCapacity.
template <typename WriteSome>
void write_all(
    std::span<const std::byte> bytes, const std::filesystem::path& path, const WriteSome& write_some
) {
  while (!bytes.empty()) {
    const ssize_t written = write_some(bytes);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    require(
        written > 0,
        ErrorCode::kCapacity,
        "{}: cannot be written: {}",
        quote_path(path),
        system_reason(errno)
    );
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path, FileReaders readers)
    : AtomicFile(path, temporary_path(path), readers) {}

AtomicFile::AtomicFile(
    const std::filesystem::path& path, std::filesystem::path temporary, FileReaders readers
)
    : path_(path), temporary_(std::move(temporary)) {
  struct stat replaced{};
  const bool replaces = ::stat(path.c_str(), &replaced) == 0;
  require(
      !replaces || S_ISREG(replaced.st_mode),
      ErrorCode::kInvalidArgument,
      "{}: is not a regular file",
      quote_path(path)
  );
  // Nobody else may read it before its permissions are set.
  const mode_t mode = replaces || readers == FileReaders::kOwner ? kOwnerOnly : 0666;
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  require(
      descriptor_ >= 0,
      ErrorCode::kNotFound,
      "{}: cannot be written: {}",
      quote_path(path),
      system_reason(errno)
  );
  if (replaces && readers == FileReaders::kUsual) {
    // Some file systems have no permissions; the file is whole anyway.
    ::fchmod(descriptor_, replaced.st_mode & kPermissions);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_all(bytes, path_, [this](std::span<const std::byte> rest) {
    return ::write(descriptor_, rest.data(), rest.size());
  });
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  const std::size_t end = offset + bytes.size();
  write_all(bytes, path_, [this, end](std::span<const std::byte> rest) {
    return ::pwrite(descriptor_, rest.data(), rest.size(), static_cast<off_t>(end - rest.size()));
  });
}

void AtomicFile::commit() {
  const bool is_flushed = ::fsync(descriptor_) == 0;  // Evaluated before errno is read.
  require(
      is_flushed,
      ErrorCode::kCapacity,
      "{}: cannot be flushed: {}",
      quote_path(path_),
      system_reason(errno)
  );
  const bool is_renamed = ::rename(temporary_.c_str(), path_.c_str()) == 0;
  require(
      is_renamed,
      ErrorCode::kNotFound,
      "{}: cannot be replaced: {}",
      quote_path(path_),
      system_reason(errno)
  );
  ::close(descriptor_);
  descriptor_ = -1;
  sync_folder(path_.parent_path());
}

}  // namespace saker
