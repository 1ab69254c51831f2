// SPDX-License-Identifier: Apache-2.0
#include "saker/base/file_lock.h"

#include "saker/base/error.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace saker {

FileLock::FileLock(const std::filesystem::path& path) {
  constexpr int kMode = 0644;
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode);
  require(
      descriptor_ >= 0,
      ErrorCode::kNotFound,
      "{}: the lock file can't be made: {}",
      path.string(),
      std::strerror(errno)
  );
  int result = 0;
  do {
    result = ::flock(descriptor_, LOCK_EX);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    const int error = errno;
    ::close(descriptor_);
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("{}: the file can't be locked: {}", path.string(), std::strerror(error))
    );
  }
}

FileLock::~FileLock() {
  ::close(descriptor_);
}

bool try_lock(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

}  // namespace saker
