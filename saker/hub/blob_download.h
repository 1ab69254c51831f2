// SPDX-License-Identifier: Apache-2.0
#pragma once

// The download of one file into the cache: its lock, the part that has arrived, its digest, and in
// the end its blob. A partial download is resumed. The blob gets its name only when its digest is
// right.

#include "saker/hub/blob_lock.h"
#include "saker/hub/growing_digest.h"
#include "saker/hub/http/receiver.h"
#include "saker/hub/pull.h"
#include "saker/hub/remote_files.h"
#include "saker/hub/repo_cache.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace saker::hub {

class BlobDownload final : public Receiver {
 public:
  // `repo` must outlive it. `wake` is called from another thread when the digest is known.
  BlobDownload(
      const RepoCache& repo, RemoteFile file, std::string commit, std::function<void()> wake
  );
  ~BlobDownload() override;

  const RemoteFile& file() const { return file_; }

  FileState state() const { return state_; }

  // Bytes of the file that are there; the last ones are in memory until they fill a piece.
  std::uintmax_t have() const override { return have_; }

  // Bytes that came over the network.
  std::uintmax_t received() const { return received_; }

  // REQUIRES: kWaiting or kElsewhere. Takes the lock and opens the part. The state becomes
  // kElsewhere if another process holds the lock, and kDone if the blob is there.
  void begin_turn();

  // Call when the GET has ended: the state becomes kVerifying.
  void fetched();

  // REQUIRES: kVerifying. The state becomes kDone if the digest is right. The first wrong digest
  // starts the download over (kFetching). Throws kCorruptData for the second one.
  void verify();

  // Throws unless the endpoint's answer describes the file as its list does.
  void check(const ResponseHead& head) override;
  void begin(std::uintmax_t offset) override;
  void write(std::span<const std::byte> bytes) override;

  bool is_complete() const override { return have_ == file_.size; }

 private:
  void open_part();
  void write_piece();
  void start_over();
  void start_digest();
  void keep();

  const RepoCache& repo_;
  const RemoteFile file_;
  const std::string commit_;
  const std::function<void()> wake_;
  FileState state_ = FileState::kWaiting;
  std::optional<BlobLock> lock_;
  int part_ = -1;
  std::uintmax_t have_ = 0;
  std::uintmax_t received_ = 0;
  int wrong_ = 0;                 // Wrong digests so far.
  std::vector<std::byte> block_;  // Bytes that arrived and are not digested yet.
  std::size_t written_ = 0;       // Bytes of block_ that are in the file.
  std::unique_ptr<GrowingDigest> digest_;
};

}  // namespace saker::hub
