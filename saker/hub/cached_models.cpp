// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/cached_models.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/blob_lock.h"
#include "saker/hub/cached_path.h"
#include "saker/hub/gguf_choice.h"
#include "saker/hub/model_name.h"
#include "saker/hub/repo_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIncomplete = ".incomplete";

struct FileFacts {
  std::uintmax_t bytes = 0;
  std::int64_t modified = 0;
};

// Follows links; zeros if there is no file.
FileFacts facts_of(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return {};
  }
  return {static_cast<std::uintmax_t>(status.st_size), status.st_mtime};
}

// Refs by the commit that they name.
std::map<std::string, std::vector<std::string>> refs_of(const RepoCache& repo) {
  std::map<std::string, std::vector<std::string>> found;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(repo.refs(), failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().lexically_relative(repo.refs()).native();
    if (const auto commit = repo.read_ref(name)) {
      found[*commit].push_back(name);
    }
  }
  for (auto& [commit, names] : found) {
    std::sort(names.begin(), names.end());
  }
  return found;
}

std::vector<CachedGguf> ggufs_of(const fs::path& snapshot, const std::vector<std::string>& files) {
  const auto models = gguf_models(files);
  std::vector<CachedGguf> found;
  for (const GgufModel& model : models) {
    CachedGguf gguf{.label = gguf_label(model, models), .paths = model.paths};
    for (const std::string& path : model.paths) {
      gguf.bytes += facts_of(snapshot / path).bytes;
    }
    found.push_back(std::move(gguf));
  }
  return found;
}

CachedRevision read_revision(const RepoCache& repo, const fs::path& snapshot) {
  CachedRevision revision{
      .commit = snapshot.filename().native(),
      .refs = {},
      .path = snapshot,
      .blobs = {},
      .ggufs = {},
      .modified = facts_of(snapshot).modified,
  };
  std::set<fs::path> blobs;
  std::int64_t newest = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(snapshot, failed), end; !failed && it != end;
       it.increment(failed)) {
    if (it->is_directory(failed) && !it->is_symlink(failed)) {
      continue;
    }
    ++revision.files;
    const auto [place, added] = blobs.insert(repo.blob_of(it->path()));
    if (added) {
      const FileFacts facts = facts_of(*place);
      revision.bytes += facts.bytes;
      newest = std::max(newest, facts.modified);
    }
  }
  const auto paths = snapshot_files(snapshot);
  revision.ggufs = ggufs_of(snapshot, paths);
  revision.has_safetensors = has_safetensors(paths);
  revision.modified = newest > 0 ? newest : revision.modified;
  revision.blobs.assign(blobs.begin(), blobs.end());
  return revision;
}

CachedModel read_model(const RepoCache& repo, std::string name) {
  CachedModel model{.repo = std::move(name), .path = repo.path(), .revisions = {}};
  auto refs = refs_of(repo);
  std::error_code failed;
  for (fs::directory_iterator it(repo.snapshots(), failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code ignored;
    if (is_plain_name(it->path().filename().native()) && fs::is_directory(it->path(), ignored)) {
      model.revisions.push_back(read_revision(repo, it->path()));
      model.revisions.back().refs = refs[model.revisions.back().commit];
    }
  }
  std::sort(
      model.revisions.begin(),
      model.revisions.end(),
      [](const CachedRevision& a, const CachedRevision& b) {
        return std::pair(b.modified, a.commit) < std::pair(a.modified, b.commit);
      }
  );
  std::set<fs::path> blobs;
  for (const CachedRevision& revision : model.revisions) {
    blobs.insert(revision.blobs.begin(), revision.blobs.end());
    model.modified = std::max(model.modified, revision.modified);
  }
  for (const fs::path& blob : blobs) {
    model.bytes += facts_of(blob).bytes;
  }
  failed.clear();
  for (fs::directory_iterator it(repo.path() / "blobs", failed), end; !failed && it != end;
       it.increment(failed)) {
    if (it->path().native().ends_with(kIncomplete)) {
      model.incomplete_bytes += facts_of(it->path()).bytes;
    }
  }
  return model;
}

bool is_being_fetched(const RepoCache& repo) {
  std::error_code failed;
  for (fs::directory_iterator it(repo.locks(), failed), end; !failed && it != end;
       it.increment(failed)) {
    if (is_locked(it->path())) {
      return true;
    }
  }
  return false;
}

void remove_tree(const fs::path& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be removed: {}", quote_path(path), failed.message()
  );
}

void remove_blobs(const Removal& removal) {
  for (const fs::path& blob : removal.blobs) {
    remove_tree(blob);
  }
}

void check_is_there(const RepoCache& repo, const fs::path& cache, const ModelName& name) {
  std::error_code ignored;
  require(
      fs::is_directory(repo.path(), ignored) && !fs::is_symlink(repo.path(), ignored),
      ErrorCode::kNotFound,
      "{} is not in the hub cache {}",
      quote(name.repo),
      quote_path(cache)
  );
  require(
      !is_being_fetched(repo),
      ErrorCode::kCapacity,
      "{} is being fetched by another process: remove it when that has ended",
      quote(name.repo)
  );
}

// Blobs of these files of a revision; of all files if none is named.
std::set<fs::path> blobs_of(
    const RepoCache& repo, const CachedRevision& revision, const std::vector<std::string>& files
) {
  std::set<fs::path> blobs;
  if (files.empty()) {
    blobs.insert(revision.blobs.begin(), revision.blobs.end());
  }
  for (const std::string& file : files) {
    blobs.insert(repo.blob_of(revision.path / file));
  }
  return blobs;
}

// Keeps the revisions that hold the GGUF model which the name chooses, and the model's files. Keeps
// no files if these revisions hold nothing else.
void choose_files(const ModelName& name, Removal& removal) {
  std::set<std::string> paths;
  for (const CachedRevision& revision : removal.revisions) {
    for (const CachedGguf& gguf : revision.ggufs) {
      paths.insert(gguf.paths.begin(), gguf.paths.end());
    }
  }
  const std::vector<std::string> all(paths.begin(), paths.end());
  removal.files = choose_gguf(gguf_models(all), name.file, to_string(name)).paths;
  std::erase_if(removal.revisions, [&](const CachedRevision& revision) {
    return std::ranges::none_of(revision.ggufs, [&](const CachedGguf& gguf) {
      return gguf.paths == removal.files;
    });
  });
  const bool alone = std::ranges::all_of(removal.revisions, [&](const CachedRevision& revision) {
    return revision.files == removal.files.size();
  });
  if (alone) {
    removal.files.clear();
  }
}

}  // namespace

std::vector<CachedModel> cached_models(const fs::path& cache) {
  std::vector<CachedModel> models;
  std::error_code failed;
  for (fs::directory_iterator it(cache, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code ignored;
    const auto repo = repo_of_folder(it->path().filename().native());
    if (repo && fs::is_directory(it->path(), ignored)) {
      models.push_back(read_model(RepoCache(cache, *repo), *repo));
    }
  }
  std::sort(models.begin(), models.end(), [](const CachedModel& a, const CachedModel& b) {
    return a.repo < b.repo;
  });
  return models;
}

Removal plan_removal(const fs::path& cache, const ModelName& name) {
  const RepoCache repo(cache, name.repo);
  check_is_there(repo, cache, name);
  Removal removal{.model = read_model(repo, name.repo), .revisions = {}, .files = {}, .blobs = {}};
  const auto snapshot = name.revision.empty() ? std::nullopt : repo.find_snapshot(name.revision);
  require(
      name.revision.empty() || snapshot,
      ErrorCode::kNotFound,
      "{} has no revision {} in the hub cache {}",
      quote(name.repo),
      quote(name.revision),
      quote_path(cache)
  );
  for (const CachedRevision& revision : removal.model.revisions) {
    if (!snapshot || revision.path == *snapshot) {
      removal.revisions.push_back(revision);
    }
  }
  if (!name.file.empty()) {
    choose_files(name, removal);
  }
  std::set<fs::path> going;
  std::set<fs::path> staying;
  for (const CachedRevision& revision : removal.model.revisions) {
    const bool goes = std::ranges::any_of(removal.revisions, [&](const CachedRevision& other) {
      return other.path == revision.path;
    });
    const auto files = goes ? blobs_of(repo, revision, removal.files) : std::set<fs::path>();
    going.insert(files.begin(), files.end());
    std::ranges::set_difference(revision.blobs, files, std::inserter(staying, staying.end()));
  }
  std::set_difference(
      going.begin(), going.end(), staying.begin(), staying.end(), std::back_inserter(removal.blobs)
  );
  for (const fs::path& blob : removal.blobs) {
    removal.bytes += facts_of(blob).bytes;
  }
  removal.whole =
      removal.files.empty() && removal.revisions.size() == removal.model.revisions.size();
  removal.bytes += removal.whole ? removal.model.incomplete_bytes : 0;
  return removal;
}

void remove(const fs::path& cache, const Removal& removal) {
  const RepoCache repo(cache, removal.model.repo);
  if (!removal.files.empty()) {
    for (const CachedRevision& revision : removal.revisions) {
      for (const std::string& file : removal.files) {
        remove_tree(revision.path / file);
      }
    }
    remove_blobs(removal);
    return;
  }
  for (const CachedRevision& revision : removal.revisions) {
    for (const std::string& ref : revision.refs) {
      remove_tree(repo.refs() / ref);
    }
  }
  for (const CachedRevision& revision : removal.revisions) {
    remove_tree(revision.path);
    // huggingface_hub's notes about a commit.
    remove_tree(repo.path() / "trees" / (revision.commit + ".json"));
    remove_tree(repo.path() / ".no_exist" / revision.commit);
  }
  remove_blobs(removal);
  if (removal.whole) {
    remove_tree(repo.path());
    remove_tree(repo.locks());
  }
}

}  // namespace saker::hub
