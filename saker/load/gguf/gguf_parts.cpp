// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_parts.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace saker::load::gguf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".gguf";
// A message lists at most this many names.
constexpr std::size_t kListedParts = 3;

// A file's place among the model's files, by its keys.
struct Split {
  std::int64_t number = 0;  // From 0.
  std::int64_t count = 1;
};

Split split_of(const Header& header) {
  // Files that were joined again have 0.
  return {
      .number = header.integer("split.no").value_or(0),
      .count = std::max<std::int64_t>(header.integer("split.count").value_or(1), 1),
  };
}

Part open_part(const fs::path& path) {
  auto mapped = MappedFile::open(path);
  const auto bytes = mapped->bytes();
  return {.what = quote_path(path), .bytes = bytes, .mapped = std::move(mapped)};
}

void check_present(const fs::path& path, const PartName& name) {
  std::vector<std::string> missing;
  for (int i = 1; i <= name.count; ++i) {
    std::error_code ignored;
    if (i != name.number && !fs::exists(path.parent_path() / name.sibling(i), ignored)) {
      missing.push_back(name.sibling(i));
    }
  }
  const std::size_t shown = std::min(missing.size(), kListedParts);
  const std::string more =
      shown < missing.size() ? fmt::format(" and {} more", missing.size() - shown) : "";
  require(
      missing.empty(),
      ErrorCode::kNotFound,
      "{}: parts of the model are missing: {}{}",
      quote_path(path),
      fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      more
  );
}

void check_part(const Header& header, const Header& first, std::size_t index, std::size_t count) {
  const Split split = split_of(header);
  require(
      std::cmp_equal(split.number, index) && std::cmp_equal(split.count, count),
      ErrorCode::kCorruptData,
      "{}: its keys say part {} of {}, expected part {} of {}",
      header.what(),
      split.number + 1,
      split.count,
      index + 1,
      count
  );
  constexpr std::string_view kArchitecture = "general.architecture";
  const auto own = header.string(kArchitecture);
  require(
      !own || own == first.string(kArchitecture),
      ErrorCode::kCorruptData,
      "{}: '{}' is {}, but {} in {}",
      header.what(),
      kArchitecture,
      quote(own.value_or("")),
      quote(first.string(kArchitecture).value_or("nothing")),
      first.what()
  );
}

// Each tensor is in exactly one part.
void check_tensors(const std::vector<Header>& headers) {
  std::map<std::string_view, const Header*> owners;
  for (const Header& header : headers) {
    for (const TensorEntry& entry : header.tensors) {
      const auto [owner, is_new] = owners.emplace(entry.name, &header);
      require(
          is_new,
          ErrorCode::kCorruptData,
          "tensor {} is in both {} and {}",
          quote(entry.name),
          owner->second->what(),
          header.what()
      );
    }
  }
  for (const Header& header : headers) {
    const auto promised = header.integer("split.tensors.count");
    require(
        !promised || std::cmp_equal(*promised, owners.size()),
        ErrorCode::kCorruptData,
        "{}: 'split.tensors.count' is {}, but the {} parts have {} tensors",
        header.what(),
        promised.value_or(0),
        headers.size(),
        owners.size()
    );
  }
}

// Gives back the pages before each part's tensors: headers are copies.
void release_headers(const JoinedParts& joined) {
  for (std::size_t i = 0; i < joined.parts.size(); ++i) {
    std::size_t begin = joined.parts[i].bytes.size();
    for (const TensorEntry& entry : joined.header.tensors) {
      begin = entry.part == i ? std::min(begin, entry.begin) : begin;
    }
    joined.parts[i].mapped->release(0, begin);
  }
}

// `headers`: those of the first parts, if they are known.
JoinedParts join_parts(std::vector<Part> parts, std::vector<Header> headers) {
  headers.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == headers.size()) {
      headers.push_back(parse_gguf(parts[i].bytes, parts[i].what));
    }
    check_part(headers[i], headers.front(), i, parts.size());
  }
  if (headers.size() > 1) {
    check_tensors(headers);
  }
  Header joined = std::move(headers.front());
  for (std::size_t i = 1; i < headers.size(); ++i) {
    for (TensorEntry& entry : headers[i].tensors) {
      entry.part = i;
      joined.tensors.push_back(std::move(entry));
    }
  }
  return {.parts = std::move(parts), .header = std::move(joined)};
}

}  // namespace

JoinedParts join_parts(std::vector<Part> parts) {
  return join_parts(std::move(parts), {});
}

JoinedParts open_parts(const fs::path& path) {
  Part given = open_part(path);
  std::vector<Header> headers{parse_gguf(given.bytes, given.what)};
  const Split split = split_of(headers.front());
  std::vector<Part> parts;
  if (split.count == 1) {
    parts.push_back(std::move(given));
    JoinedParts joined = join_parts(std::move(parts), std::move(headers));
    release_headers(joined);
    return joined;
  }
  const auto name = part_name(path.filename().native(), kSuffix);
  require(
      name && name->number == split.number + 1 && name->count == split.count,
      ErrorCode::kCorruptData,
      "{}: its keys say part {} of {}, expected the name NAME-{:05}-of-{:05}.gguf",
      given.what,
      split.number + 1,
      split.count,
      split.number + 1,
      split.count
  );
  check_present(path, *name);
  for (int i = 1; i <= name->count; ++i) {
    const bool is_given = i == name->number;
    parts.push_back(is_given ? given : open_part(path.parent_path() / name->sibling(i)));
  }
  JoinedParts joined = join_parts(std::move(parts));
  release_headers(joined);
  return joined;
}

}  // namespace saker::load::gguf
