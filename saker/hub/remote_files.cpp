// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/remote_files.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/hub/http/web_address.h"
#include "saker/hub/model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{32} << 20;
constexpr std::size_t kMaxFiles = 100'000;
// The hub's pages have a thousand entries; folders are entries too.
constexpr int kMaxPages = 1000;
constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 50;

// "org/name/x y" with its slashes.
std::string encode_path(std::string_view path) {
  std::string encoded;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    encoded += (begin == 0 ? "" : "/") + percent_encode(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return encoded;
}

RemoteFile parse_file(const Json& entry) {
  RemoteFile file{
      .path = json_string(entry, "path", ""),
      .size = static_cast<std::uintmax_t>(json_int_in(entry, "size", 0, kMaxFileBytes)),
      .digest = json_string(entry, "oid", ""),
  };
  const auto large = entry.find("lfs");
  if (large != entry.end() && !large->is_null()) {
    file.size = static_cast<std::uintmax_t>(json_int_in(*large, "size", 0, kMaxFileBytes));
    file.digest = json_string(*large, "oid", "");
    file.kind = DigestKind::kSha256;
  }
  require(
      is_file_path(file.path),
      ErrorCode::kCorruptData,
      "a file is named {}, expected a path inside the model",
      quote(file.path)
  );
  const std::size_t digits = file.kind == DigestKind::kSha256 ? 64 : 40;
  require(
      is_digest(file.digest) && file.digest.size() == digits,
      ErrorCode::kCorruptData,
      "the digest of {} is {}, expected {} hexadecimal digits",
      quote(file.path),
      quote(file.digest),
      digits
  );
  return file;
}

// `W/"abc"` and `"abc"` become abc.
std::string_view plain_etag(std::string_view etag) {
  if (etag.starts_with("W/")) {
    etag.remove_prefix(2);
  }
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

// The address in `<ADDRESS>; rel="next"`; empty on the last page.
std::string_view next_page(std::string_view link) {
  const std::size_t begin = link.find('<');
  const std::size_t end = link.find('>');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      link.find("rel=\"next\"", end) == std::string_view::npos) {
    return {};
  }
  return link.substr(begin + 1, end - begin - 1);
}

// A page's address as a path under the endpoint. Throws for a page elsewhere.
std::string path_of_page(const std::string& endpoint, std::string_view page) {
  const auto address = resolve_location(endpoint + "/", page);
  auto path = address ? path_below(endpoint, *address) : std::nullopt;
  require(
      path.has_value(),
      ErrorCode::kCorruptData,
      "the list of files goes on at {}, expected an address of {}",
      quote(without_user(page)),
      endpoint
  );
  return *std::move(path);
}

}  // namespace

std::string find_commit(Fetcher& fetcher, const ModelName& name) {
  const std::string what = to_string(name);
  const std::string_view revision = name.revision.empty() ? kMainRevision : name.revision;
  const auto answer = fetcher.get(
      fmt::format("/api/models/{}/revision/{}", encode_path(name.repo), percent_encode(revision)),
      what,
      kMaxAnswer
  );
  const Json info = parse_json(answer.body, what);
  const std::string commit = info.is_object() ? json_string(info, "sha", "") : "";
  require(
      is_commit(commit) && (!is_commit(revision) || commit == revision),
      ErrorCode::kCorruptData,
      "{}: the hub names the commit {}, expected {}",
      what,
      quote(commit),
      is_commit(revision) ? revision : "40 hexadecimal digits"
  );
  return commit;
}

std::vector<RemoteFile> parse_file_list(std::string_view json, std::string_view what) {
  const Json list = parse_json(json, what);
  require(
      list.is_array(),
      ErrorCode::kCorruptData,
      "{}: the list of files is {}, expected an array",
      what,
      describe_json(list)
  );
  std::vector<RemoteFile> files;
  for (const Json& entry : list) {
    try {
      if (entry.is_object() && json_string(entry, "type", "") == "file") {
        files.push_back(parse_file(entry));
      }
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", what, error.what()));
    }
  }
  return files;
}

std::vector<RemoteFile> list_files(
    Fetcher& fetcher,
    const std::string& endpoint,
    const std::string& repo,
    const std::string& commit
) {
  std::vector<RemoteFile> files;
  std::string page =
      fmt::format("/api/models/{}/tree/{}?recursive=true&expand=false", encode_path(repo), commit);
  for (int pages = 1; !page.empty(); ++pages) {
    const auto answer = fetcher.get(page, repo, kMaxAnswer);
    auto more = parse_file_list(answer.body, repo);
    const std::string_view next = next_page(answer.head.header("link"));
    require(
        files.size() + more.size() <= kMaxFiles && (next.empty() || pages < kMaxPages),
        ErrorCode::kCorruptData,
        "{}: the list of files does not end, expected at most {} pages with {} files",
        repo,
        kMaxPages,
        kMaxFiles
    );
    files.insert(
        files.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end())
    );
    page = next.empty() ? "" : path_of_page(endpoint, next);
  }
  std::sort(files.begin(), files.end(), [](const RemoteFile& a, const RemoteFile& b) {
    return a.path < b.path;
  });
  const auto twice =
      std::adjacent_find(files.begin(), files.end(), [](const RemoteFile& a, const RemoteFile& b) {
        return a.path == b.path;
      });
  if (twice != files.end()) {
    throw Error(
        ErrorCode::kCorruptData, fmt::format("{}: {} is listed twice", repo, quote(twice->path))
    );
  }
  return files;
}

std::string file_address(
    const std::string& repo, const std::string& commit, const std::string& path
) {
  return fmt::format("/{}/resolve/{}/{}", encode_path(repo), commit, encode_path(path));
}

void check_answer(const ResponseHead& head, const RemoteFile& file, std::string_view expected) {
  const std::string_view commit = head.header("x-repo-commit");
  require(
      commit == expected,
      ErrorCode::kCorruptData,
      "{}: the hub answers for commit {}, expected {}",
      file.path,
      quote(commit),
      expected
  );
  const std::string_view linked = head.header("x-linked-etag");
  const std::string_view etag = plain_etag(linked.empty() ? head.header("etag") : linked);
  require(
      etag == file.digest,
      ErrorCode::kCorruptData,
      "{}: the hub's etag is {}, expected {}; the model has changed, try again",
      file.path,
      quote(etag),
      file.digest
  );
  const std::string_view size = head.header("x-linked-size");
  require(
      size.empty() || size == std::to_string(file.size),
      ErrorCode::kCorruptData,
      "{}: the hub's size is {}, expected {}",
      file.path,
      quote(size),
      file.size
  );
}

}  // namespace saker::hub
