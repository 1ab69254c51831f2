// SPDX-License-Identifier: Apache-2.0
#include "saker/base/mapped_file.h"

#include "saker/base/error.h"
#include "saker/base/open_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace saker {
namespace {

struct PageRange {
  std::size_t begin;
  std::size_t length;
};

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

void advise(const std::byte* data, PageRange range, int advice) {
  if (range.length == 0) {
    return;
  }
  // Only a hint: callers do not notice a failure.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  ::madvise(const_cast<std::byte*>(data) + range.begin, range.length, advice);
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const OpenFile file(path);
  const std::byte* data = nullptr;
  if (file.size() > 0) {
    require(
        file.size() <= std::numeric_limits<std::size_t>::max() / 2,
        ErrorCode::kCapacity,
        "{}: {} bytes do not fit the address space",
        path.native(),
        file.size()
    );
    void* mapped = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
    require(
        mapped != MAP_FAILED,
        ErrorCode::kCapacity,
        "{}: {} bytes cannot be mapped: {}",
        path.native(),
        file.size(),
        system_reason(errno)
    );
    data = static_cast<const std::byte*>(mapped);
#if defined(MADV_HUGEPAGE)
    advise(data, {.begin = 0, .length = file.size()}, MADV_HUGEPAGE);
#endif
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, file.size()));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
}

void MappedFile::release(std::size_t offset, std::size_t length) const {
  offset = std::min(offset, size_);
  const std::size_t end = offset + std::min(length, size_ - offset);
  const std::size_t page = page_size();
  const std::size_t first = (offset + page - 1) / page * page;
  // The file's end also ends its last page.
  const std::size_t last = end == size_ ? end : end / page * page;
  advise(data_, {.begin = first, .length = last > first ? last - first : 0}, MADV_DONTNEED);
}

std::string read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const OpenFile file(path);
  require(
      file.size() <= max_bytes,
      ErrorCode::kCorruptData,
      "{}: {} bytes, expected at most {}",
      path.native(),
      file.size(),
      max_bytes
  );
  std::string text(file.size(), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.descriptor(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    require(
        got >= 0,
        ErrorCode::kNotFound,
        "{}: cannot be read: {}",
        path.native(),
        system_reason(errno)
    );
    if (got == 0) {
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace saker
