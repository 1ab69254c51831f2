// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/blob_download.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

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

namespace saker::hub {
namespace {

namespace fs = std::filesystem;

std::string show(const fs::path& path) {
  return quote(path.native(), path.native().size());
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

// `W/"abc"` and `"abc"` are abc.
std::string_view plain_etag(std::string_view etag) {
  if (etag.starts_with("W/")) {
    etag.remove_prefix(2);
  }
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

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
  digest_.reset();
  if (part_ >= 0) {
    ::close(part_);
  }
}

void BlobDownload::begin_turn() {
  const auto done = [&] {
    // Whoever made it has verified it.
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
  require(part_ >= 0, ErrorCode::kNotFound, "{}: cannot be written: {}", show(path), reason(errno));
  struct stat status{};
  require(
      ::fstat(part_, &status) == 0 && S_ISREG(status.st_mode),
      ErrorCode::kNotFound,
      "{}: is not a regular file",
      show(path)
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
  have_ = 0;
  const fs::path path = repo_.part(file_.digest);
  require(
      ::ftruncate(part_, 0) == 0 && ::lseek(part_, 0, SEEK_SET) == 0,
      ErrorCode::kNotFound,
      "{}: cannot be written: {}",
      show(path),
      reason(errno)
  );
}

void BlobDownload::check(const ResponseHead& head) {
  const std::string_view commit = head.header("x-repo-commit");
  require(
      commit == commit_,
      ErrorCode::kCorruptData,
      "{}: the hub answers for commit {}, expected {}",
      file_.path,
      quote(commit),
      commit_
  );
  const std::string_view linked = head.header("x-linked-etag");
  const std::string_view etag = plain_etag(linked.empty() ? head.header("etag") : linked);
  require(
      etag == file_.digest,
      ErrorCode::kCorruptData,
      "{}: the hub's etag is {}, expected {}; the model has changed, try again",
      file_.path,
      quote(etag),
      file_.digest
  );
  const std::string_view size = head.header("x-linked-size");
  require(
      size.empty() || size == std::to_string(file_.size),
      ErrorCode::kCorruptData,
      "{}: the hub's size is {}, expected {}",
      file_.path,
      quote(size),
      file_.size
  );
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
  for (auto left = bytes; !left.empty();) {
    const ssize_t written = ::write(part_, left.data(), left.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    require(
        written > 0,
        ErrorCode::kCapacity,
        "{}: cannot be written: {}",
        show(repo_.part(file_.digest)),
        reason(errno)
    );
    left = left.subspan(static_cast<std::size_t>(written));
    have_ += static_cast<std::uintmax_t>(written);
    received_ += static_cast<std::uintmax_t>(written);
  }
  digest_->add(bytes);
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
  // Once, since the part may have been another's.
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
  std::error_code failed;
  fs::rename(part, repo_.blob(file_.digest), failed);
  require(!failed, ErrorCode::kNotFound, "{}: cannot be renamed: {}", show(part), failed.message());
  ::close(std::exchange(part_, -1));
  lock_.reset();
  state_ = FileState::kDone;
}

}  // namespace saker::hub
