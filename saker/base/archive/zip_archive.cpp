// SPDX-License-Identifier: Apache-2.0
#include "saker/base/archive/zip_archive.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>
#include <saker_rs.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace saker {
namespace {

// Zeros compress a thousandfold, other numbers hardly at all: a higher ratio is not our data.
constexpr std::uint64_t kMaxRatio = 64;
constexpr std::uint64_t kAlwaysAllowed = std::uint64_t{64} << 20;

class RustBytes {
 public:
  RustBytes() = default;
  RustBytes(const RustBytes&) = delete;
  RustBytes& operator=(const RustBytes&) = delete;

  ~RustBytes() { saker_rs_bytes_free(bytes_); }

  SakerRsBytes* target() { return &bytes_; }

  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(bytes_.data), bytes_.size};
  }

  std::string text() const { return {reinterpret_cast<const char*>(bytes_.data), bytes_.size}; }

 private:
  SakerRsBytes bytes_{};
};

}  // namespace

void ZipArchive::Free::operator()(SakerRsZip* zip) const {
  saker_rs_zip_free(zip);
}

ZipArchive::ZipArchive(
    std::shared_ptr<const MappedFile> file, std::unique_ptr<SakerRsZip, Free> zip
)
    : file_(std::move(file)), zip_(std::move(zip)) {
  const std::size_t count = saker_rs_zip_count(zip_.get());
  for (std::size_t i = 0; i < count; ++i) {
    RustBytes name;
    RustBytes error;
    require(
        saker_rs_zip_name(zip_.get(), i, name.target(), error.target()),
        ErrorCode::kCorruptData,
        "{}: entry {}: {}",
        quote_path(file_->path()),
        i,
        error.text()
    );
    names_.push_back(name.text());
  }
}

ZipArchive ZipArchive::open(const std::filesystem::path& path) {
  auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  SakerRsZip* zip = nullptr;
  RustBytes error;
  const bool ok = saker_rs_zip_open(
      reinterpret_cast<const std::uint8_t*>(bytes.data()),
      bytes.size(),
      std::max(kAlwaysAllowed, bytes.size() * kMaxRatio),
      &zip,
      error.target()
  );
  require(
      ok,
      ErrorCode::kCorruptData,
      "{}: is no zip archive that can be read: {}",
      quote_path(path),
      error.text()
  );
  return {std::move(file), std::unique_ptr<SakerRsZip, Free>(zip)};
}

std::shared_ptr<const std::vector<std::byte>> ZipArchive::read(std::size_t index) {
  RustBytes data;
  RustBytes error;
  require(
      saker_rs_zip_read(zip_.get(), index, data.target(), error.target()),
      ErrorCode::kCorruptData,
      "{}: entry {}: {}",
      quote_path(file_->path()),
      quote(names_.at(index)),
      error.text()
  );
  const auto bytes = data.bytes();
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

}  // namespace saker
