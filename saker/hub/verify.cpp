// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/verify.h"

#include "saker/base/error.h"
#include "saker/base/open_file.h"
#include "saker/base/utf8.h"
#include "saker/hub/digest.h"
#include "saker/hub/gguf_choice.h"
#include "saker/hub/repo_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;

// Small enough to stay in a core's cache between reading and digesting.
constexpr std::size_t kChunk = std::size_t{512} << 10;
// Enough to saturate a disk; one core digests 1 to 2 GB/s.
constexpr std::size_t kThreads = 4;
constexpr std::chrono::milliseconds kBetweenReports{100};

std::vector<fs::path> snapshots_of(const RepoCache& repo, const ModelName& name) {
  if (!name.revision.empty()) {
    const auto snapshot = repo.find_snapshot(name.revision);
    return snapshot ? std::vector{*snapshot} : std::vector<fs::path>{};
  }
  std::vector<fs::path> all;
  std::error_code failed;
  for (fs::directory_iterator it(repo.snapshots(), failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code ignored;
    if (is_plain_name(it->path().filename().native()) && it->is_directory(ignored)) {
      all.push_back(it->path());
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Blobs (or plain files) and their names in a snapshot.
std::map<fs::path, std::string> files_of(const RepoCache& repo, const fs::path& snapshot) {
  std::map<fs::path, std::string> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(snapshot, failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code ignored;
    if (it->is_symlink(ignored) || !it->is_directory(ignored)) {
      files.emplace(repo.blob_of(it->path()), it->path().lexically_relative(snapshot).native());
    }
  }
  require(
      !failed,
      ErrorCode::kNotFound,
      "{}: cannot be read: {}",
      quote_path(snapshot),
      failed.message()
  );
  return files;
}

// Keeps the files of the GGUF model that the name chooses.
void keep_chosen(std::map<fs::path, std::string>& files, const ModelName& name) {
  std::vector<std::string> paths;
  for (const auto& [blob, path] : files) {
    paths.push_back(path);
  }
  const auto chosen = choose_gguf(gguf_models(paths), name.file, to_string(name)).paths;
  std::erase_if(files, [&](const auto& file) {
    return std::ranges::find(chosen, file.second) == chosen.end();
  });
}

struct Blob {
  fs::path path;
  std::string name;  // In a snapshot.
  std::string damage;
};

// Digests the blobs of a model on several threads.
class Verification {
 public:
  Verification(std::vector<Blob> blobs, const VerifyOptions& options)
      : blobs_(std::move(blobs)), options_(options) {
    for (const Blob& blob : blobs_) {
      std::error_code missing;
      const std::uintmax_t size = fs::file_size(blob.path, missing);
      total_ += missing ? 0 : size;
    }
  }

  // Call once. Throws kCancelled, and what the progress callback throws.
  void run();

  const std::vector<Blob>& blobs() const { return blobs_; }

  std::uintmax_t total() const { return total_; }

 private:
  void work(const std::stop_token& stop);
  std::string damage_of(const fs::path& path, const std::stop_token& stop);

  std::vector<Blob> blobs_;
  const VerifyOptions& options_;
  std::uintmax_t total_ = 0;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::uintmax_t> done_ = 0;
  std::mutex mutex_;  // Guards running_.
  std::condition_variable ended_;
  std::size_t running_ = 0;
};

void Verification::run() {
  running_ = std::min(kThreads, blobs_.size());
  std::vector<std::jthread> threads;  // They stop and join if the progress callback throws.
  for (std::size_t i = running_; i > 0; --i) {
    threads.emplace_back([this](const std::stop_token& stop) {
      work(stop);
      const std::lock_guard lock(mutex_);
      --running_;
      ended_.notify_one();
    });
  }
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenReports, [&] { return running_ == 0; })) {
    lock.unlock();
    require(!options_.stop.stop_requested(), ErrorCode::kCancelled, "interrupted");
    if (options_.progress) {
      options_.progress(done_, total_);
    }
    lock.lock();
  }
}

void Verification::work(const std::stop_token& stop) {
  for (std::size_t i = next_++; i < blobs_.size() && !stop.stop_requested(); i = next_++) {
    try {
      blobs_[i].damage = damage_of(blobs_[i].path, stop);
    } catch (const std::exception& error) {
      blobs_[i].damage = error.what();
    }
  }
}

// Empty if the file matches its name. Meaningless once a stop is requested.
std::string Verification::damage_of(const fs::path& path, const std::stop_token& stop) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return "is missing";
  }
  const std::string expected = path.filename().native();
  const DigestKind kind = expected.size() == 64 ? DigestKind::kSha256 : DigestKind::kGitBlob;
  const OpenFile file(path);
  Digest digest(kind, file.size());
#ifdef POSIX_FADV_SEQUENTIAL
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
  std::vector<std::byte> chunk(kChunk);
  while (!stop.stop_requested()) {
    const ssize_t count = ::read(file.descriptor(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return "cannot be read: " + system_reason(errno);
    }
    if (count == 0) {
      break;
    }
    const auto bytes = static_cast<std::size_t>(count);
    digest.add(std::span(chunk).first(bytes));
    done_ += bytes;
  }
  const std::string found = digest.finish();
  return found == expected ? ""
                           : fmt::format(
                                 "its {} is {}",
                                 kind == DigestKind::kSha256 ? "SHA-256" : "SHA-1 as git's blob",
                                 found
                             );
}

}  // namespace

VerifyReport verify(const fs::path& cache, const ModelName& name, const VerifyOptions& options) {
  const RepoCache repo(cache, name.repo);
  const auto snapshots = snapshots_of(repo, name);
  require(
      !snapshots.empty(),
      ErrorCode::kNotFound,
      "{} is not in the hub cache {}",
      quote(to_string(name)),
      quote_path(cache)
  );
  VerifyReport report{.repo = name.repo, .commits = {}, .damaged = {}, .unknown = {}};
  std::map<fs::path, std::string> files;
  for (const fs::path& snapshot : snapshots) {
    report.commits.push_back(snapshot.filename().native());
    files.merge(files_of(repo, snapshot));
  }
  if (!name.file.empty()) {
    keep_chosen(files, name);
  }
  std::vector<Blob> blobs;
  for (auto& [path, shown] : files) {
    if (path.parent_path() == repo.path() / "blobs" && is_digest(path.filename().native())) {
      blobs.push_back({.path = path, .name = shown, .damage = {}});
    } else {
      report.unknown.push_back(shown);
    }
  }
  report.files = blobs.size();
  Verification verification(std::move(blobs), options);
  verification.run();
  report.bytes = verification.total();
  for (const Blob& blob : verification.blobs()) {
    if (!blob.damage.empty()) {
      report.damaged.push_back({.path = blob.name, .blob = blob.path, .reason = blob.damage});
    }
  }
  std::sort(report.damaged.begin(), report.damaged.end(), [](const auto& a, const auto& b) {
    return a.path < b.path;
  });
  std::sort(report.unknown.begin(), report.unknown.end());
  return report;
}

void remove_damaged(const VerifyReport& report) {
  for (const DamagedFile& file : report.damaged) {
    std::error_code failed;
    fs::remove(file.blob, failed);
    require(
        !failed,
        ErrorCode::kNotFound,
        "{}: cannot be removed: {}",
        quote_path(file.blob),
        failed.message()
    );
  }
}

}  // namespace saker::hub
