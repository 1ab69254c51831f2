// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/repo_cache.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/files/temporary_path.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/hub/model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";
constexpr std::string_view kBetween = "--";
constexpr std::size_t kMaxRefBytes = 4096;
// A commit may be shortened to this many digits.
constexpr std::size_t kMinCommitDigits = 7;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void make_folder(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be made: {}", quote_path(path), failed.message()
  );
}

// Renames a temporary file to its final name.
void replace(const fs::path& temporary, const fs::path& place) {
  std::error_code failed;
  fs::rename(temporary, place, failed);
  if (failed) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("{}: cannot be made: {}", quote_path(place), failed.message())
    );
  }
}

// Snapshots whose names begin with `beginning`.
std::vector<fs::path> snapshots_like(const fs::path& snapshots, std::string_view beginning) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator it(snapshots, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().filename().native();
    if (is_plain_name(name) && name.starts_with(beginning) && is_folder(it->path())) {
      found.push_back(it->path());
    }
  }
  return found;
}

}  // namespace

RepoCache::RepoCache(const fs::path& cache, std::string_view repo)
    : path_(fs::absolute(cache).lexically_normal() / folder_of_repo(repo)),
      locks_(path_.parent_path() / ".locks" / path_.filename()) {}

fs::path RepoCache::blob(std::string_view digest) const {
  return path_ / "blobs" / digest;
}

fs::path RepoCache::part(std::string_view digest) const {
  return path_ / "blobs" / fmt::format("{}.incomplete", digest);
}

fs::path RepoCache::lock(std::string_view digest) const {
  return locks_ / fmt::format("{}.lock", digest);
}

std::optional<std::string> RepoCache::read_ref(std::string_view revision) const {
  const fs::path ref = refs() / revision;
  std::error_code ignored;
  if (!is_revision(revision) || !fs::is_regular_file(ref, ignored)) {
    return std::nullopt;
  }
  std::string commit = read_file(ref, kMaxRefBytes);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r')) {
    commit.pop_back();
  }
  return is_plain_name(commit) ? std::optional(commit) : std::nullopt;
}

std::optional<fs::path> RepoCache::find_snapshot(std::string_view revision) const {
  const auto commit = read_ref(revision.empty() ? kMainRevision : revision);
  if (commit && is_folder(snapshots() / *commit)) {
    return snapshots() / *commit;
  }
  if (revision.empty()) {
    const auto all = snapshots_like(snapshots(), "");
    return all.size() == 1 ? std::optional(all.front()) : std::nullopt;
  }
  if (is_plain_name(revision) && is_folder(snapshots() / revision)) {
    return snapshots() / revision;
  }
  if (revision.size() < kMinCommitDigits) {
    return std::nullopt;
  }
  const auto found = snapshots_like(snapshots(), revision);
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

fs::path RepoCache::blob_of(const fs::path& file) const {
  std::error_code failed;
  const fs::path target = fs::read_symlink(file, failed);
  if (failed) {
    return file;
  }
  fs::path blob = (file.parent_path() / target).lexically_normal();
  return blob.parent_path() == path_ / "blobs" ? blob : file;
}

void RepoCache::make_folders() const {
  make_folder(path_ / "blobs");
  make_folder(snapshots());
  make_folder(refs());
  make_folder(locks_);
}

void RepoCache::link(std::string_view commit, std::string_view path, std::string_view digest)
    const {
  const fs::path place = snapshots() / commit / path;
  const fs::path folder = place.parent_path();
  make_folder(folder);
  const fs::path target = blob(digest).lexically_relative(folder);
  std::error_code failed;
  if (fs::read_symlink(place, failed) == target) {
    return;
  }
  const fs::path temporary = temporary_name();
  failed.clear();
  fs::create_symlink(target, temporary, failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be made: {}", quote_path(place), failed.message()
  );
  replace(temporary, place);
}

void RepoCache::write_ref(std::string_view revision, std::string_view commit) const {
  if (read_ref(revision) == commit) {
    return;
  }
  const fs::path ref = refs() / revision;
  make_folder(ref.parent_path());
  AtomicFile file(ref, temporary_name());
  file.write(commit);
  file.commit();
}

// Beside the blobs: every name in snapshots and refs has a meaning.
fs::path RepoCache::temporary_name() const {
  return temporary_path(path_ / "blobs" / "name");
}

std::string folder_of_repo(std::string_view repo) {
  std::string folder(kPrefix);
  for (const char c : repo) {
    if (c == '/') {
      folder += kBetween;
    } else {
      folder += c;
    }
  }
  return folder;
}

std::optional<std::string> repo_of_folder(std::string_view folder) {
  if (!folder.starts_with(kPrefix)) {
    return std::nullopt;
  }
  std::string repo(folder.substr(kPrefix.size()));
  if (const std::size_t between = repo.find(kBetween); between != std::string::npos) {
    repo.replace(between, kBetween.size(), "/");
  }
  return parse_model_name(repo) && folder_of_repo(repo) == folder ? std::optional(repo)
                                                                  : std::nullopt;
}

}  // namespace saker::hub
