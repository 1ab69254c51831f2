// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/prefix_store.h"

#include "saker/base/checksum.h"
#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace saker::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".saker-prefix";
constexpr std::array<char, 8> kMagic = {'S', 'A', 'K', 'E', 'R', 'P', 'F', 'X'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kMaxKey = 4096;
constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 26;
// Bytes that may wait to be written; a single file may exceed it.
constexpr std::uintmax_t kMaxPending = std::uintmax_t{256} << 20;

// As stored in the file; no padding.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t key_bytes = 0;
  std::uint64_t tokens = 0;
  std::uint64_t first = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_checksum = 0;
  std::uint64_t index_checksum = 0;  // Over the fields above, key and path.

  std::uint64_t index_bytes() const { return sizeof(Header) + key_bytes + 4 * tokens; }
};

static_assert(sizeof(Header) == 56);

// True for a file of a process that ended while it wrote (see AtomicFile).
bool is_left_over(const fs::path& path) {
  constexpr auto kLongestWrite = std::chrono::hours(1);
  const std::string name = path.filename().string();
  std::error_code failed;
  const auto written = fs::last_write_time(path, failed);
  return name.starts_with('.') && name.ends_with(".tmp") &&
         name.find(std::string(kSuffix) + ".") != std::string::npos && !failed &&
         fs::file_time_type::clock::now() - written > kLongestWrite;
}

template <typename T>
std::span<const std::byte> bytes_of(const T* data, std::size_t count) {
  return std::as_bytes(std::span(data, count));
}

std::uint64_t index_checksum(const Header& header, std::string_view key, PrefixStore::Tokens path) {
  Checksum sum;
  sum.add(bytes_of(&header, 1).first(offsetof(Header, index_checksum)));
  sum.add(bytes_of(key.data(), key.size()));
  sum.add(std::as_bytes(path));
  return sum.value();
}

struct Index {
  Header header;
  PrefixStore::Entry entry;
};

// Reads and checks everything before the payload, where the file then is.
Index read_index(CheckedReader& file, const fs::path& path) {
  const std::uint64_t size = file.size();
  Index index;
  Header& header = index.header;
  file.read(std::as_writable_bytes(std::span(&header, 1)));
  require(header.magic == kMagic, ErrorCode::kCorruptData, "it does not start as such a file");
  require(
      header.version == kVersion,
      ErrorCode::kUnsupported,
      "its version is {}, expected {}",
      header.version,
      kVersion
  );
  require(
      header.key_bytes <= kMaxKey && header.tokens >= 1 && header.tokens <= kMaxTokens &&
          header.first < header.tokens && header.payload_bytes <= size &&
          header.index_bytes() + header.payload_bytes == size,
      ErrorCode::kCorruptData,
      "it has {} bytes, its header says otherwise",
      size
  );
  PrefixStore::Entry& entry = index.entry;
  entry.key.resize(header.key_bytes);
  entry.path.resize(header.tokens);
  file.read(std::as_writable_bytes(std::span(entry.key)));
  file.read(std::as_writable_bytes(std::span(entry.path)));
  require(
      index_checksum(header, entry.key, entry.path) == header.index_checksum,
      ErrorCode::kCorruptData,
      "the checksum of its index is wrong"
  );
  entry.file = path;
  entry.first = static_cast<std::int64_t>(header.first);
  entry.bytes = size;
  return index;
}

// Equal rows always have equal names.
std::string file_name(std::string_view key, PrefixStore::Tokens path, std::int64_t first) {
  Checksum sum;
  sum.add(bytes_of(&first, 1));
  sum.add(bytes_of(key.data(), key.size()));
  sum.add(std::as_bytes(path));
  return fmt::format("{:016x}{}", sum.value(), kSuffix);
}

void write_file(const PrefixStore::Entry& entry, const std::vector<PrefixStore::Bytes>& payload) {
  Header header;
  Checksum sum;
  for (const PrefixStore::Bytes part : payload) {
    sum.add(part);
    header.payload_bytes += part.size();
  }
  header.key_bytes = static_cast<std::uint32_t>(entry.key.size());
  header.tokens = entry.path.size();
  header.first = static_cast<std::uint64_t>(entry.first);
  header.payload_checksum = sum.value();
  header.index_checksum = index_checksum(header, entry.key, entry.path);
  AtomicFile file(entry.file, FileReaders::kOwner);
  file.write(bytes_of(&header, 1));
  file.write(entry.key);
  file.write(std::as_bytes(std::span(entry.path)));
  for (const PrefixStore::Bytes part : payload) {
    file.write(part);
  }
  file.commit();
}

bool starts_with(PrefixStore::Tokens tokens, PrefixStore::Tokens path) {
  return tokens.size() >= path.size() && std::equal(path.begin(), path.end(), tokens.begin());
}

// True if another process that shares the folder removed the file.
bool is_missing(const fs::path& file) {
  std::error_code failed;
  return fs::status(file, failed).type() == fs::file_type::not_found;
}

void warn(const fs::path& file, std::string_view why) {
  spdlog::warn("prefix cache: {} is left out: {}", file.string(), why);
}

}  // namespace

PrefixStore::PrefixStore(fs::path folder, std::uintmax_t byte_budget)
    : folder_(std::move(folder)), byte_budget_(byte_budget) {
  std::error_code failed;
  fs::create_directories(fs::absolute(folder_, failed).parent_path(), failed);
  constexpr mode_t kOwnerOnly = 0700;  // Rows reveal what people wrote.
  ::mkdir(folder_.c_str(), kOwnerOnly);
  require(
      fs::is_directory(folder_, failed),
      ErrorCode::kNotFound,
      "prefix cache: {} is no folder and cannot be made one",
      folder_.string()
  );
  scan();
  make_room(0);
  writer_ = std::thread([this] {
    while (auto write = writes_.pop()) {
      (*write)();
    }
  });
}

PrefixStore::~PrefixStore() {
  writes_.close();
  writer_.join();
}

void PrefixStore::scan() {
  std::error_code failed;
  for (const auto& item : fs::directory_iterator(folder_, failed)) {
    const fs::path& path = item.path();
    if (is_left_over(path)) {
      fs::remove(path, failed);
    }
    if (path.extension() != kSuffix || path.filename().string().starts_with('.') ||
        !item.is_regular_file(failed)) {
      continue;
    }
    try {
      CheckedReader file(path);
      Entry entry = read_index(file, path).entry;
      entry.used = fs::last_write_time(path, failed);
      bytes_ += entry.bytes;
      entries_.emplace(path.filename().string(), std::move(entry));
    } catch (const Error& error) {
      if (!is_missing(path)) {
        warn(path, error.what());
      }
      if (error.code() == ErrorCode::kCorruptData) {
        fs::remove(path, failed);
      }
    } catch (const std::exception& error) {
      if (!is_missing(path)) {
        warn(path, error.what());
      }
    }
  }
}

bool PrefixStore::has(std::string_view key, Tokens path, std::int64_t first) const {
  return std::ranges::any_of(entries_, [&](const auto& item) {
    const Entry& entry = item.second;
    return entry.key == key && entry.first <= first && starts_with(entry.path, path);
  });
}

void PrefixStore::write(std::string_view key, Tokens path, std::int64_t first, Payload payload) {
  if (key.size() > kMaxKey || path.empty() || path.size() > kMaxTokens || has(key, path, first)) {
    return;
  }
  std::uintmax_t size = sizeof(Header) + key.size() + path.size_bytes();
  for (const Bytes part : payload.parts) {
    size += part.size();
  }
  if (size > byte_budget_) {
    return;
  }
  make_room(size);
  bound_pending(size);
  const std::string name = file_name(key, path, first);
  Entry entry{
      .file = folder_ / name,
      .key = std::string(key),
      .path = {path.begin(), path.end()},
      .first = first,
      .bytes = size,
      .used = fs::file_time_type::clock::now(),
      .written = {},
  };
  std::packaged_task<bool()> task([entry, payload = std::move(payload)]() mutable {
    const Payload rows = std::move(payload);  // Free when the result is there.
    try {
      write_file(entry, rows.parts);
      return true;
    } catch (const std::exception& error) {
      warn(entry.file, error.what());
      return false;
    }
  });
  entry.written = task.get_future().share();
  pending_.push_back({entry.written, size});
  pending_bytes_ += size;
  if (entries_.insert_or_assign(name, std::move(entry)).second) {
    bytes_ += size;
  }
  writes_.push(std::move(task));
}

bool PrefixStore::finish_one() {
  if (pending_.empty()) {
    return false;
  }
  pending_.front().written.wait();
  pending_bytes_ -= pending_.front().bytes;
  pending_.pop_front();
  return true;
}

void PrefixStore::bound_pending(std::uintmax_t bytes) {
  const auto is_done = [](const Pending& file) {
    return file.written.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  while (!pending_.empty() && (pending_bytes_ + bytes > kMaxPending || is_done(pending_.front()))) {
    finish_one();
  }
}

const PrefixStore::Entry* PrefixStore::find(std::string_view key, Tokens tokens, std::int64_t known)
    const {
  const Entry* best = nullptr;
  std::int64_t longest = known;
  for (const auto& [name, entry] : entries_) {
    if (entry.key != key || entry.first > known) {
      continue;
    }
    const auto same = std::ranges::mismatch(entry.path, tokens).in1 - entry.path.begin();
    if (same > longest) {
      longest = same;
      best = &entry;
    }
  }
  return best;
}

bool PrefixStore::read(const Entry& entry, const std::function<void(CheckedReader& payload)>& use) {
  if (entry.written.valid() && !entry.written.get()) {
    remove(entry);
    return false;
  }
  try {
    CheckedReader file(entry.file);
    const Index index = read_index(file, entry.file);
    require(
        index.entry.key == entry.key && index.entry.path == entry.path &&
            index.entry.first == entry.first,
        ErrorCode::kCorruptData,
        "it holds other rows than before"
    );
    file.take_checksum();
    use(file);
    require(
        file.left() == 0 && file.take_checksum() == index.header.payload_checksum,
        ErrorCode::kCorruptData,
        "the checksum of its rows is wrong"
    );
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCapacity) {
      throw;
    }
    if (is_missing(entry.file)) {
      spdlog::debug("prefix cache: {} was taken by another process", entry.file.string());
    } else {
      warn(entry.file, error.what());
    }
    remove(entry);
    return false;
  }
  const auto now = fs::file_time_type::clock::now();
  std::error_code ignored;
  fs::last_write_time(entry.file, now, ignored);
  entries_.at(entry.file.filename().string()).used = now;
  return true;
}

void PrefixStore::remove(const Entry& entry) {
  const auto found = entries_.find(entry.file.filename().string());
  if (found->second.written.valid()) {
    found->second.written.wait();
  }
  std::error_code ignored;
  fs::remove(found->second.file, ignored);
  bytes_ -= found->second.bytes;
  entries_.erase(found);
}

void PrefixStore::make_room(std::uintmax_t bytes) {
  while (!entries_.empty() && bytes_ + bytes > byte_budget_) {
    // If two are equally old, the longer path goes: it needs the shorter one.
    const auto oldest = std::ranges::min_element(entries_, [](const auto& a, const auto& b) {
      return a.second.used != b.second.used ? a.second.used < b.second.used
                                            : a.second.path.size() > b.second.path.size();
    });
    remove(oldest->second);
  }
}

}  // namespace saker::cache
