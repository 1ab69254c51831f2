// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/pull.h"

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/hub/blob_download.h"
#include "saker/hub/environment.h"
#include "saker/hub/gguf_choice.h"
#include "saker/hub/http/fetcher.h"
#include "saker/hub/hub_session.h"
#include "saker/hub/pull_plan.h"
#include "saker/hub/remote_files.h"
#include "saker/hub/repo_cache.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxIndex = std::size_t{64} << 20;
constexpr std::chrono::milliseconds kBetweenReports{100};
constexpr std::chrono::milliseconds kSilentWait{2000};
constexpr int kMaxParallel = 64;

// Runs the downloads of one commit, some at a time.
class Downloads {
 public:
  Downloads(
      Fetcher& fetcher,
      const RepoCache& repo,
      ModelName name,
      std::string commit,
      const PullOptions& options
  )
      : fetcher_(fetcher),
        repo_(repo),
        name_(std::move(name)),
        commit_(std::move(commit)),
        options_(options) {}

  // Adds files, except those whose blobs are under way already.
  void add(std::span<const RemoteFile> files);
  // Returns when all are there.
  void run();

  std::uintmax_t received() const;

 private:
  bool take_turns();
  void take_finished();
  void ask(BlobDownload& download);
  void require_space() const;
  void report(bool at_once);
  void tell_waiting();

  Fetcher& fetcher_;
  const RepoCache& repo_;
  const ModelName name_;
  const std::string commit_;
  const PullOptions& options_;
  std::set<std::string> known_;  // Digests.
  std::vector<std::unique_ptr<BlobDownload>> downloads_;
  Clock::time_point reported_{};
  Clock::time_point worked_ = Clock::now();  // When a download of our own was last under way.
  bool told_waiting_ = false;
};

void Downloads::add(std::span<const RemoteFile> files) {
  for (const RemoteFile& file : files) {
    if (known_.insert(file.digest).second) {
      downloads_.push_back(std::make_unique<BlobDownload>(repo_, file, commit_, [this] {
        fetcher_.wake();
      }));
    }
  }
}

void Downloads::run() {
  require_space();
  while (take_turns()) {
    report(false);
    tell_waiting();
    take_finished();
    for (const auto& download : downloads_) {
      if (download->state() != FileState::kVerifying) {
        continue;
      }
      download->verify();
      if (download->state() == FileState::kFetching) {
        ask(*download);
      }
    }
  }
  report(true);
}

// Starts all downloads that may start; false when all are done.
bool Downloads::take_turns() {
  int active = 0;
  bool left = false;
  for (const auto& download : downloads_) {
    const FileState state = download->state();
    active += state == FileState::kFetching || state == FileState::kVerifying ? 1 : 0;
    left = left || state != FileState::kDone;
  }
  for (const auto& download : downloads_) {
    const FileState state = download->state();
    if (active >= options_.parallel) {
      break;
    }
    if (state != FileState::kWaiting && state != FileState::kElsewhere) {
      continue;
    }
    download->begin_turn();
    if (download->state() == FileState::kFetching) {
      ask(*download);
    }
    active +=
        download->state() == FileState::kFetching || download->state() == FileState::kVerifying ? 1
                                                                                                : 0;
  }
  return left;
}

// Logs once, after only other processes' downloads have been left for a while.
void Downloads::tell_waiting() {
  std::size_t elsewhere = 0;
  for (const auto& download : downloads_) {
    const FileState state = download->state();
    if (state == FileState::kFetching || state == FileState::kVerifying) {
      worked_ = Clock::now();
      return;
    }
    elsewhere += state == FileState::kElsewhere ? 1 : 0;
  }
  if (elsewhere > 0 && !told_waiting_ && Clock::now() - worked_ >= kSilentWait) {
    told_waiting_ = true;
    spdlog::warn(
        "{}: another process fetches {} of its files; waiting for it", to_string(name_), elsewhere
    );
  }
}

void Downloads::ask(BlobDownload& download) {
  const std::string& path = download.file().path;
  fetcher_.start(
      file_address(name_.repo, commit_, path),
      fmt::format("{}: {}", to_string(name_), path),
      download
  );
}

void Downloads::take_finished() {
  for (const Finished& finished : fetcher_.wait(kBetweenReports)) {
    if (finished.error) {
      std::rethrow_exception(finished.error);
    }
    static_cast<BlobDownload*>(finished.receiver)->fetched();
  }
}

// Throws unless the missing bytes fit on the disk.
void Downloads::require_space() const {
  std::uintmax_t needed = 0;
  for (const auto& download : downloads_) {
    const RemoteFile& file = download->file();
    std::error_code failed;
    if (fs::exists(repo_.blob(file.digest), failed)) {
      continue;
    }
    const auto there = fs::file_size(repo_.part(file.digest), failed);
    needed += failed || there > file.size ? file.size : file.size - there;
  }
  std::error_code failed;
  const fs::space_info space = fs::space(repo_.path(), failed);
  require(
      failed || needed <= space.available,
      ErrorCode::kCapacity,
      "{} needs {} bytes in {}, where {} are free",
      to_string(name_),
      needed,
      quote_path(repo_.path()),
      space.available
  );
}

void Downloads::report(bool at_once) {
  const auto now = Clock::now();
  if (!options_.progress || (!at_once && now - reported_ < kBetweenReports)) {
    return;
  }
  reported_ = now;
  std::vector<FileProgress> files;
  files.reserve(downloads_.size());
  for (const auto& download : downloads_) {
    files.push_back({
        .path = download->file().path,
        .done = download->have(),
        .total = download->file().size,
        .state = download->state(),
    });
  }
  options_.progress(files);
}

std::uintmax_t Downloads::received() const {
  std::uintmax_t bytes = 0;
  for (const auto& download : downloads_) {
    bytes += download->received();
  }
  return bytes;
}

// Links all files, the configuration last: a snapshot without it is no model yet. Nor is a GGUF
// model without all its parts.
void link_all(const RepoCache& repo, const std::string& commit, std::vector<RemoteFile> files) {
  std::stable_partition(files.begin(), files.end(), [](const RemoteFile& file) {
    return file.path != "config.json";
  });
  for (const RemoteFile& file : files) {
    repo.link(commit, file.path, file.digest);
  }
}

// The union, sorted by path.
std::vector<RemoteFile> joined(std::vector<RemoteFile> files, const std::vector<RemoteFile>& more) {
  files.insert(files.end(), more.begin(), more.end());
  std::sort(files.begin(), files.end(), [](const RemoteFile& a, const RemoteFile& b) {
    return a.path < b.path;
  });
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

// The plan before indexes are read: counts all loose weights.
PullPlan plan_of(const HubSession& session, const PullChoice& choice, const RepoCache& repo) {
  std::vector<RemoteFile> files = choice.files;
  if (choice.gguf.empty()) {
    std::vector<RemoteFile> others;
    std::ranges::copy_if(session.files(), std::back_inserter(others), std::not_fn(is_index));
    files = joined(std::move(files), choose_weights(others, {}));
  }
  PullPlan plan{.commit = session.commit(), .files = files.size(), .gguf = choice.gguf};
  std::vector<std::string> paths;
  for (const RemoteFile& file : session.files()) {
    paths.push_back(file.path);
  }
  plan.ggufs = gguf_models(paths).size();
  for (const RemoteFile& file : files) {
    std::error_code missing;
    plan.bytes += file.size;
    plan.missing += fs::exists(repo.blob(file.digest), missing) ? 0 : file.size;
  }
  return plan;
}

PullReport report_of(
    const ModelName& name,
    const std::string& commit,
    const RepoCache& repo,
    const std::string& gguf,
    const std::vector<RemoteFile>& files
) {
  PullReport report{
      .repo = name.repo,
      .revision = std::string(name.revision.empty() ? kMainRevision : name.revision),
      .commit = commit,
      .path = repo.snapshots() / commit,
      .files = {},
  };
  if (!gguf.empty()) {
    report.path /= gguf;
  }
  for (const RemoteFile& file : files) {
    report.files.push_back(file.path);
    report.bytes += file.size;
  }
  return report;
}

void check_parallel(const PullOptions& options) {
  require(
      options.parallel >= 1 && options.parallel <= kMaxParallel,
      ErrorCode::kInvalidArgument,
      "{} files at a time, expected 1 to {}",
      options.parallel,
      kMaxParallel
  );
}

}  // namespace

PullReport pull(const ModelName& name, const PullOptions& options) {
  check_parallel(options);
  const RepoCache repo(options.cache.empty() ? cache_dir() : options.cache, name.repo);
  HubSession session(
      name, {.limit = options.list_limit, .retrying = options.retrying, .stop = options.stop}
  );
  Fetcher& fetcher = session.fetcher();
  const std::string& commit = session.commit();
  PullChoice choice = choose_files(session.files(), name, options.include);
  if (options.planned) {
    options.planned(plan_of(session, choice, repo));
  }
  repo.make_folders();
  Downloads downloads(fetcher, repo, name, commit, options);
  downloads.add(choice.files);
  downloads.run();
  std::vector<RemoteFile> files = std::move(choice.files);
  if (choice.gguf.empty()) {
    const auto weights = choose_weights(session.files(), [&](const RemoteFile& index) {
      return read_file(repo.blob(index.digest), kMaxIndex);
    });
    downloads.add(weights);
    downloads.run();
    files = joined(std::move(files), weights);
  }
  link_all(repo, commit, files);
  PullReport report = report_of(name, commit, repo, choice.gguf, files);
  if (report.revision != commit) {
    repo.write_ref(report.revision, commit);
  }
  report.received = downloads.received();
  return report;
}

}  // namespace saker::hub
