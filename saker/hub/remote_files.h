// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks the hub for a model's commit and files at a revision (https://huggingface.co/docs/hub/api:
// GET /api/models/REPO/revision/REVISION and .../tree/COMMIT).

#include "saker/hub/digest.h"
#include "saker/hub/http/fetcher.h"
#include "saker/hub/http/receiver.h"
#include "saker/hub/model_name.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {

struct RemoteFile {
  std::string path;  // A plain relative path, is_file_path.
  std::uintmax_t size = 0;
  std::string digest;  // In lower-case hexadecimal digits; the name of its blob.
  DigestKind kind = DigestKind::kGitBlob;

  bool operator==(const RemoteFile&) const = default;
};

// The commit that a revision means now. Throws as Fetcher::get does, and kCorruptData if the answer
// is not a hub's.
std::string find_commit(Fetcher& fetcher, const ModelName& name);

// All files of a commit, sorted by path. Throws as find_commit does, and for more than 100 000
// files or 1000 pages and for paths that lead out of the folder.
std::vector<RemoteFile> list_files(
    Fetcher& fetcher,
    const std::string& endpoint,
    const std::string& repo,
    const std::string& commit
);

// One page of that list, as JSON.
std::vector<RemoteFile> parse_file_list(std::string_view json, std::string_view what);

// The path under the endpoint from which a file is fetched.
std::string file_address(
    const std::string& repo, const std::string& commit, const std::string& path
);

// Throws kCorruptData unless the endpoint's answer matches this commit and the listed file.
void check_answer(const ResponseHead& head, const RemoteFile& file, std::string_view commit);

}  // namespace saker::hub
