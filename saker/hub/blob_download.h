// SPDX-License-Identifier: Apache-2.0
#pragma once

// One file on its way into the cache: its lock, the part that has arrived, its digest, and in the
// end its blob. A part that a pull left behind is gone on with. Nothing takes the blob's name
// before its digest is right.

#include "saker/hub/blob_lock.h"
#include "saker/hub/growing_digest.h"
#include "saker/hub/pull.h"
#include "saker/hub/receiver.h"
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

  // Of its bytes, those that are there; the last ones are in memory until they are a piece.
  std::uintmax_t have() const override { return have_; }

  // Bytes that came over the network.
  std::uintmax_t received() const { return received_; }

  // In kWaiting and kElsewhere: takes the lock and opens the part; kElsewhere where another process
  // has it, kDone when the blob is there.
  void begin_turn();

  // After the GET: kVerifying.
  void fetched();

  // In kVerifying: kDone once the digest is right, and kFetching from the beginning where it is
  // wrong for the first time. Throws kCorruptData the second time.
  void verify();

  // What the endpoint says about the file must be what its list said.
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
  int wrong_ = 0;                 // Digests that were not right.
  std::vector<std::byte> block_;  // Bytes that came and are not digested yet.
  std::size_t written_ = 0;       // Of them, those that are in the file.
  std::unique_ptr<GrowingDigest> digest_;
};

}  // namespace saker::hub
