// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_file.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/gguf/blocks/gguf_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 30;
constexpr std::array<std::size_t, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

[[noreturn]] void fail_in(std::string_view what, const std::string& problem) {
  throw Error(ErrorCode::kCorruptData, fmt::format("{}: {}", what, problem));
}

// Thrown if the header continues behind the given bytes.
class Unfinished : public Error {
 public:
  using Error::Error;
};

// Reads the header from front to back, never past its end.
class Cursor {
 public:
  // `bytes` is the beginning of a file of `file_bytes` bytes.
  Cursor(std::span<const std::byte> bytes, std::size_t file_bytes, std::string_view what)
      : bytes_(bytes), file_bytes_(file_bytes), what_(what) {}

  std::size_t position() const { return at_; }

  [[noreturn]] void fail(const std::string& problem) const { fail_in(what_, problem); }

  std::span<const std::byte> take(std::uint64_t bytes, std::string_view of) {
    if (bytes > file_bytes_ - at_) {
      fail(fmt::format(
          "the file ends at byte {} inside {}, which needs {} bytes from byte {} on",
          file_bytes_,
          of,
          bytes,
          at_
      ));
    }
    if (bytes > bytes_.size() - at_) {
      throw Unfinished(
          ErrorCode::kCorruptData,
          fmt::format(
              "{}: {} needs {} bytes from byte {} on, expected the header to end before byte {}",
              what_,
              of,
              bytes,
              at_,
              bytes_.size()
          )
      );
    }
    const auto taken = bytes_.subspan(at_, bytes);
    at_ += bytes;
    return taken;
  }

  template <typename T>
  T number(std::string_view of) {
    T value{};
    std::memcpy(&value, take(sizeof(T), of).data(), sizeof(T));
    return value;
  }

  std::string_view string(std::string_view of, std::uint64_t limit) {
    const auto length = number<std::uint64_t>(of);
    if (length > limit) {
      fail(fmt::format("{} has {} bytes, expected at most {}", of, length, limit));
    }
    const auto bytes = take(length, of);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // The name of a key or a tensor.
  std::string name(std::string_view of) {
    const std::string_view text = string(of, kMaxNameBytes);
    const bool has_control =
        std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (text.empty() || has_control || find_invalid_utf8(text)) {
      fail(fmt::format("{} is {}, expected a printable name", of, quote(text)));
    }
    return std::string(text);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t file_bytes_;
  std::string_view what_;
  std::size_t at_ = 0;
};

ValueType read_type(Cursor& cursor, const std::string& of) {
  const auto number = cursor.number<std::uint32_t>(of);
  if (number >= kValueBytes.size()) {
    cursor.fail(fmt::format("{} has type {}, expected 0 to 12", of, number));
  }
  return static_cast<ValueType>(number);
}

void skip_elements(
    Cursor& cursor, ValueType type, std::uint64_t count, const std::string& of, int depth
);

void skip_array(Cursor& cursor, const std::string& of, int depth) {
  if (depth >= kMaxDepth) {
    cursor.fail(fmt::format("{} has arrays in arrays deeper than {}", of, kMaxDepth));
  }
  const ValueType type = read_type(cursor, of);
  const auto count = cursor.number<std::uint64_t>(of);
  skip_elements(cursor, type, count, of, depth + 1);
}

void skip_elements(
    Cursor& cursor, ValueType type, std::uint64_t count, const std::string& of, int depth
) {
  if (type == ValueType::kString) {
    for (std::uint64_t i = 0; i < count; ++i) {
      cursor.string(of, std::numeric_limits<std::uint64_t>::max());
    }
  } else if (type == ValueType::kArray) {
    for (std::uint64_t i = 0; i < count; ++i) {
      skip_array(cursor, of, depth);
    }
  } else {
    const std::uint64_t size = kValueBytes.at(static_cast<std::size_t>(type));
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) {
      cursor.fail(fmt::format("{} has {} elements, which is too many", of, count));
    }
    cursor.take(bytes, of);
  }
}

Value read_value(Cursor& cursor, std::span<const std::byte> bytes, const std::string& of) {
  Value value;
  value.type = read_type(cursor, of);
  if (value.type == ValueType::kArray) {
    value.is_array = true;
    value.type = read_type(cursor, of);
    value.count = cursor.number<std::uint64_t>(of);
  }
  const std::size_t begin = cursor.position();
  skip_elements(cursor, value.type, value.count, of, 1);
  value.bytes = bytes.subspan(begin, cursor.position() - begin);
  return value;
}

void check_start(Cursor& cursor) {
  constexpr std::string_view kMagic = "GGUF";
  const auto magic = cursor.take(kMagic.size(), "the magic number");
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    cursor.fail("does not begin with GGUF");
  }
}

void check_version(Cursor& cursor, std::string_view what) {
  const auto version = cursor.number<std::uint32_t>("the version");
  require(
      (version & 0xFFFFU) != 0 || version == 0,
      ErrorCode::kUnsupported,
      "{}: is a big-endian GGUF file, expected a little-endian one",
      what
  );
  require(
      version == 2 || version == 3,
      ErrorCode::kUnsupported,
      "{}: GGUF version {}, expected 2 or 3",
      what,
      version
  );
}

TensorEntry read_entry(Cursor& cursor, std::string_view what) {
  TensorEntry entry;
  entry.name = cursor.name("the name of a tensor");
  const std::string of = fmt::format("tensor {}", quote(entry.name));
  const auto rank = cursor.number<std::uint32_t>(of);
  if (rank == 0 || rank > kMaxRank) {
    cursor.fail(fmt::format("{} has {} dimensions, expected 1 to {}", of, rank, kMaxRank));
  }
  entry.element_count = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto size = static_cast<std::int64_t>(cursor.number<std::uint64_t>(of));
    // A weight has at most 4 bytes, so the sum of bytes fits too.
    constexpr std::int64_t kMaxCount = std::int64_t{1} << 60;
    const bool too_many = size <= 0 ||
                          __builtin_mul_overflow(entry.element_count, size, &entry.element_count) ||
                          entry.element_count > kMaxCount;
    entry.shape.insert(entry.shape.begin(), size);
    if (too_many) {
      cursor.fail(fmt::format(
          "{} has shape {}, expected positive sizes of at most 2^60 weights",
          of,
          shape_text(entry.shape)
      ));
    }
  }
  const auto number = cursor.number<std::uint32_t>(of);
  const TypeFacts* facts = find_type(number);
  require(
      facts != nullptr,
      ErrorCode::kUnsupported,
      "{}: {} is {}, expected {}",
      what,
      of,
      type_name(number),
      supported_types()
  );
  entry.type = facts->type;
  if (entry.shape.back() % facts->block != 0) {
    cursor.fail(fmt::format(
        "{} has rows of {} weights, expected a multiple of {} for {}",
        of,
        entry.shape.back(),
        facts->block,
        facts->name
    ));
  }
  const auto blocks = static_cast<std::size_t>(entry.element_count / facts->block);
  entry.begin = cursor.number<std::uint64_t>(of);
  entry.end = blocks * facts->block_bytes;  // Its size until the data's offset is known.
  return entry;
}

// Turns offsets and sizes into ranges of the file.
void place_tensors(
    std::vector<TensorEntry>& tensors,
    std::size_t header_end,
    std::size_t file_bytes,
    std::uint64_t alignment,
    std::string_view what
) {
  const std::size_t data = (header_end + alignment - 1) / alignment * alignment;
  for (TensorEntry& entry : tensors) {
    const std::size_t offset = entry.begin;
    const std::size_t size = entry.end;
    const std::size_t room = data <= file_bytes ? file_bytes - data : 0;
    if (offset % alignment != 0 || offset > room || size > room - offset) {
      fail_in(
          what,
          fmt::format(
              "tensor {} has {} bytes at offset {}, expected a multiple of {} and an end within "
              "the "
              "file's {} bytes of data",
              quote(entry.name),
              size,
              offset,
              alignment,
              room
          )
      );
    }
    entry.begin = data + offset;
    entry.end = entry.begin + size;
  }
  std::vector<const TensorEntry*> order;
  order.reserve(tensors.size());
  for (const TensorEntry& entry : tensors) {
    order.push_back(&entry);
  }
  std::ranges::sort(order, {}, &TensorEntry::begin);
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->begin < order[i - 1]->end) {
      fail_in(
          what,
          fmt::format("tensors {} and {} overlap", quote(order[i - 1]->name), quote(order[i]->name))
      );
    }
  }
}

std::uint64_t read_alignment(const Header& header) {
  const auto value = header.integer("general.alignment").value_or(kDefaultAlignment);
  const auto alignment = static_cast<std::uint64_t>(value);
  require(
      value >= 1 && alignment <= kMaxAlignment && (alignment & (alignment - 1)) == 0,
      ErrorCode::kCorruptData,
      "{}: 'general.alignment' is {}, expected a power of two of at most 2^30",
      header.what(),
      value
  );
  return alignment;
}

struct HeaderParts {
  std::map<std::string, Value, std::less<>> metadata;  // Views of the bytes.
  std::vector<TensorEntry> tensors;                    // Not yet placed.
  std::size_t end = 0;
};

HeaderParts read_header(
    std::span<const std::byte> bytes, std::size_t file_bytes, std::string_view what
) {
  Cursor cursor(bytes, file_bytes, what);
  check_start(cursor);
  check_version(cursor, what);
  const auto tensor_count = cursor.number<std::uint64_t>("the number of tensors");
  const auto key_count = cursor.number<std::uint64_t>("the number of keys");
  HeaderParts parts;
  for (std::uint64_t i = 0; i < key_count; ++i) {
    const std::string key = cursor.name("a key");
    const Value value = read_value(cursor, bytes, fmt::format("the value of {}", quote(key)));
    if (!parts.metadata.emplace(key, value).second) {
      cursor.fail(fmt::format("the key {} is there twice", quote(key)));
    }
  }
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    parts.tensors.push_back(read_entry(cursor, what));
  }
  std::set<std::string_view> names;
  for (const TensorEntry& entry : parts.tensors) {
    if (!names.insert(entry.name).second) {
      cursor.fail(fmt::format("tensor {} is there twice", quote(entry.name)));
    }
  }
  parts.end = cursor.position();
  return parts;
}

}  // namespace

std::optional<std::size_t> header_bytes(
    std::span<const std::byte> begin, std::size_t file_bytes, std::string_view what
) {
  try {
    return read_header(begin.first(std::min(begin.size(), kMaxHeaderBytes)), file_bytes, what).end;
  } catch (const Unfinished&) {
    if (begin.size() >= kMaxHeaderBytes) {
      throw;
    }
    return std::nullopt;
  }
}

Header parse_gguf(std::span<const std::byte> file, std::string_view what) {
  // The file may change after the first reading: the second one reads a private copy.
  const auto begin = file.first(std::min(file.size(), kMaxHeaderBytes));
  const std::size_t end = read_header(begin, file.size(), what).end;
  const auto bytes = std::make_shared<const std::vector<std::byte>>(
      begin.begin(), begin.begin() + static_cast<std::ptrdiff_t>(end)
  );
  HeaderParts parts = read_header(*bytes, file.size(), what);
  Header header{std::string(what), std::move(parts.metadata), bytes};
  header.tensors = std::move(parts.tensors);
  place_tensors(header.tensors, parts.end, file.size(), read_alignment(header), what);
  return header;
}

}  // namespace saker::load::gguf
