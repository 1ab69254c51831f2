// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/blob_download.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;

// Bytes per write. Pieces begin at page boundaries. Larger ones are slower: finding large pages for
// them costs kernels more than it saves.
constexpr std::size_t kPieceBytes = std::size_t{16} << 10;

bool is_regular_file_of(const fs::path& path, std::uintmax_t size) {
  std::error_code failed;
  return fs::is_regular_file(path, failed) && fs::file_size(path, failed) == size && !failed;
}

}  // namespace

BlobDownload::BlobDownload(
    const RepoCache& repo, RemoteFile file, std::string commit, std::function<void()> wake
)
    : repo_(repo), file_(std::move(file)), commit_(std::move(commit)), wake_(std::move(wake)) {}

BlobDownload::~BlobDownload() {
  if (part_ >= 0) {
    try {
      while (written_ < block_.size()) {
        write_piece();
      }
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): it comes again with the next pull.
    }
    ::close(part_);
  }
}

void BlobDownload::begin_turn() {
  const auto done = [&] {
    // The process that made the blob has verified it.
    if (is_regular_file_of(repo_.blob(file_.digest), file_.size)) {
      have_ = file_.size;
      state_ = FileState::kDone;
      lock_.reset();
    }
    return state_ == FileState::kDone;
  };
  if (done()) {
    return;
  }
  lock_ = BlobLock::try_lock(repo_.lock(file_.digest));
  if (!lock_) {
    state_ = FileState::kElsewhere;
    return;
  }
  // Another process may have finished in between.
  if (done()) {
    return;
  }
  open_part();
  start_digest();
  state_ = is_complete() ? FileState::kVerifying : FileState::kFetching;
}

void BlobDownload::open_part() {
  const fs::path path = repo_.part(file_.digest);
  part_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  require(
      part_ >= 0,
      ErrorCode::kNotFound,
      "{}: cannot be written: {}",
      quote_path(path),
      system_reason(errno)
  );
  struct stat status{};
  require(
      ::fstat(part_, &status) == 0 && S_ISREG(status.st_mode),
      ErrorCode::kNotFound,
      "{}: is not a regular file",
      quote_path(path)
  );
  have_ = static_cast<std::uintmax_t>(status.st_size);
  if (have_ > file_.size) {
    start_over();
  }
  ::lseek(part_, 0, SEEK_END);
}

void BlobDownload::start_digest() {
  digest_ =
      std::make_unique<GrowingDigest>(repo_.part(file_.digest), file_.kind, file_.size, wake_);
  digest_->start_from(have_);
}

void BlobDownload::start_over() {
  digest_.reset();
  block_.clear();
  written_ = 0;
  have_ = 0;
  const fs::path path = repo_.part(file_.digest);
  require(
      ::ftruncate(part_, 0) == 0 && ::lseek(part_, 0, SEEK_SET) == 0,
      ErrorCode::kNotFound,
      "{}: cannot be written: {}",
      quote_path(path),
      system_reason(errno)
  );
}

void BlobDownload::check(const ResponseHead& head) {
  check_answer(head, file_, commit_);
}

void BlobDownload::begin(std::uintmax_t offset) {
  if (offset == 0 && have_ > 0) {
    start_over();
    start_digest();
  }
}

void BlobDownload::write(std::span<const std::byte> bytes) {
  require(
      bytes.size() <= file_.size - have_,
      ErrorCode::kCorruptData,
      "{}: more than its {} bytes come",
      file_.path,
      file_.size
  );
  have_ += bytes.size();
  received_ += bytes.size();
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kBlockBytes - block_.size()));
    block_.insert(block_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    const bool is_whole = block_.size() == kBlockBytes || (bytes.empty() && is_complete());
    while (block_.size() - written_ >= kPieceBytes || (is_whole && written_ < block_.size())) {
      write_piece();
    }
    if (is_whole) {
      block_ = digest_->add(std::move(block_));
      written_ = 0;
    }
  }
}

void BlobDownload::write_piece() {
  const auto left = std::span<const std::byte>(block_).subspan(written_);
  const auto piece = left.first(std::min(left.size(), kPieceBytes));
  ssize_t count = -1;
  do {
    count = ::write(part_, piece.data(), piece.size());
  } while (count < 0 && errno == EINTR);
  if (count <= 0) {  // `require` would build the message's parts each time.
    const std::string why = system_reason(errno);
    throw Error(
        ErrorCode::kCapacity,
        fmt::format("{}: cannot be written: {}", quote_path(repo_.part(file_.digest)), why)
    );
  }
  written_ += static_cast<std::size_t>(count);
}

void BlobDownload::fetched() {
  state_ = FileState::kVerifying;
}

void BlobDownload::verify() {
  const auto digest = digest_->result();
  if (!digest) {
    return;
  }
  if (*digest == file_.digest) {
    keep();
    return;
  }
  start_over();
  // Tolerated once, since the part may have been another process's.
  require(
      ++wrong_ < 2,
      ErrorCode::kCorruptData,
      "{}: what came has the digest {}, expected {}; it was thrown away",
      file_.path,
      *digest,
      file_.digest
  );
  start_digest();
  state_ = FileState::kFetching;
}

// The part becomes the blob. It is not flushed first (docs/adr/0011-pulling-from-the-hub.md).
void BlobDownload::keep() {
  digest_.reset();
  const fs::path part = repo_.part(file_.digest);
  // If the cache was emptied meanwhile, another pull may be writing a part of this name.
  require(
      is_in_place(part_, part),
      ErrorCode::kNotFound,
      "{}: was taken away while it was fetched",
      quote_path(part)
  );
  std::error_code failed;
  fs::rename(part, repo_.blob(file_.digest), failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be renamed: {}", quote_path(part), failed.message()
  );
  ::close(std::exchange(part_, -1));
  lock_.reset();
  state_ = FileState::kDone;
}

}  // namespace saker::hub
