// SPDX-License-Identifier: Apache-2.0
#pragma once

// One model in the cache of Python's huggingface_hub
// (https://huggingface.co/docs/huggingface_hub/guides/manage-cache):
//
//   CACHE/models--ORG--NAME/blobs/DIGEST              the bytes of a file, named by its etag
//                           blobs/DIGEST.incomplete   what has arrived of it so far
//                           snapshots/COMMIT/PATH     relative symbolic links into blobs
//                           refs/REVISION             the commit of a branch or tag
//   CACHE/.locks/models--ORG--NAME/DIGEST.lock        held (flock) by the writer of a blob
//
// Changes are atomic, one link or ref at a time. Any number of processes may use one cache.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace saker::hub {

class RepoCache {
 public:
  // `repo` is a repo id from parse_model_name. Changes nothing on disk.
  RepoCache(const std::filesystem::path& cache, std::string_view repo);

  const std::filesystem::path& path() const { return path_; }

  const std::filesystem::path& locks() const { return locks_; }

  std::filesystem::path blob(std::string_view digest) const;
  std::filesystem::path part(std::string_view digest) const;
  std::filesystem::path lock(std::string_view digest) const;

  std::filesystem::path snapshots() const { return path_ / "snapshots"; }

  std::filesystem::path refs() const { return path_ / "refs"; }

  // The folder of a revision. A revision is a branch or tag, a commit, or the first 7 or more
  // digits of exactly one commit. Without a revision: that of main, else the only one. Empty if it
  // is not there.
  std::optional<std::filesystem::path> find_snapshot(std::string_view revision) const;

  // The blob that a file of a snapshot links to, or the file itself if that is not a blob of this
  // model.
  std::filesystem::path blob_of(const std::filesystem::path& file) const;

  // The commit that a ref names.
  std::optional<std::string> read_ref(std::string_view revision) const;

  // The members below change the cache. They throw kNotFound or kCapacity if it takes no files.

  void make_folders() const;
  // Makes snapshots/COMMIT/PATH a link to a blob; replaces what is there.
  void link(std::string_view commit, std::string_view path, std::string_view digest) const;
  void write_ref(std::string_view revision, std::string_view commit) const;

 private:
  std::filesystem::path temporary_name() const;

  std::filesystem::path path_;
  std::filesystem::path locks_;
};

// Converts to "models--org--name", and back; empty for other names of folders.
std::string folder_of_repo(std::string_view repo);
std::optional<std::string> repo_of_folder(std::string_view folder);

}  // namespace saker::hub
