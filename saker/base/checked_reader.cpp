// SPDX-License-Identifier: Apache-2.0
#include "saker/base/checked_reader.h"

#include "saker/base/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace saker {
namespace {

// Small enough to be still in L2 when it is added to the checksum.
constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::uint64_t kAhead = std::uint64_t{32} << 20;

}  // namespace

CheckedReader::CheckedReader(const std::filesystem::path& path) : file_(path) {}

void CheckedReader::read(std::span<std::byte> to) {
  require(to.size() <= left(), ErrorCode::kCorruptData, "the file ends early");
  while (!to.empty()) {
    read_ahead();
    const ssize_t got = ::read(file_.descriptor(), to.data(), std::min(to.size(), kPiece));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    require(got >= 0, ErrorCode::kCorruptData, "the file cannot be read: {}", system_reason(errno));
    require(got > 0, ErrorCode::kCorruptData, "the file ends early");
    const auto count = static_cast<std::size_t>(got);
    sum_.add(to.first(count));
    position_ += count;
    to = to.subspan(count);
  }
}

std::uint64_t CheckedReader::take_checksum() {
  return std::exchange(sum_, Checksum()).value();
}

void CheckedReader::read_ahead() {
#ifdef POSIX_FADV_WILLNEED
  if (ahead_ < std::min(size(), position_ + kAhead / 2)) {
    const std::uint64_t from = std::max(ahead_, position_);
    ahead_ = std::min(size(), position_ + kAhead);
    // Only a hint: callers do not notice a failure.
    ::posix_fadvise(
        file_.descriptor(),
        static_cast<off_t>(from),
        static_cast<off_t>(ahead_ - from),
        POSIX_FADV_WILLNEED
    );
  }
#endif
}

}  // namespace saker
