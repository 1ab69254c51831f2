// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/safetensors.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors_length.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace saker::load {
namespace {

struct FormatDType {
  std::string_view name;
  std::int64_t bits;
  std::optional<DType> dtype;
};

constexpr std::array<FormatDType, 23> kDTypes = {{
    {"BOOL", 8, DType::kBool},        {"U8", 8, DType::kUInt8},
    {"I8", 8, DType::kInt8},          {"U16", 16, DType::kUInt16},
    {"I16", 16, DType::kInt16},       {"F16", 16, DType::kFloat16},
    {"BF16", 16, DType::kBFloat16},   {"U32", 32, DType::kUInt32},
    {"I32", 32, DType::kInt32},       {"F32", 32, DType::kFloat32},
    {"U64", 64, DType::kUInt64},      {"I64", 64, DType::kInt64},
    {"F64", 64, DType::kFloat64},     {"F8_E4M3", 8, DType::kFloat8E4M3},
    {"F8_E5M2", 8, std::nullopt},     {"F8_E8M0", 8, DType::kUInt8},
    {"F8_E4M3FNUZ", 8, std::nullopt}, {"F8_E5M2FNUZ", 8, std::nullopt},
    {"F4", 4, std::nullopt},          {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},     {"C64", 64, std::nullopt},
    {"C128", 128, std::nullopt},
}};

// 0 bits: a dtype of a later format, whose elements may have any size.
constexpr FormatDType kLater{"of a later format", 0, std::nullopt};
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxDTypeName = 16;

// The place of an error, for messages.
struct Place {
  std::string_view file;
  std::string_view tensor = {};

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(
        ErrorCode::kCorruptData,
        tensor.empty() ? fmt::format("{}: {}", file, problem)
                       : fmt::format("{}: tensor {}: {}", file, quote(tensor), problem)
    );
  }
};

// The header's length, from a file's beginning.
std::uint64_t header_length(
    std::span<const std::byte> file, std::size_t file_bytes, const Place& place
) {
  if (file.size() < kLengthBytes) {
    place.fail(fmt::format("{} bytes, too short for a safetensors file", file.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  }
  if (length > kMaxSafetensorsHeader) {
    place.fail(fmt::format(
        "no safetensors file, or a damaged one: a header of {} bytes, expected at most {}",
        length,
        kMaxSafetensorsHeader
    ));
  }
  if (length > file_bytes - kLengthBytes) {
    place.fail(fmt::format(
        "the file ends inside the header: {} bytes, expected at least {}",
        file_bytes,
        length + kLengthBytes
    ));
  }
  return length;
}

const Json& field(const Json& entry, const char* key, const Place& place) {
  const auto found = entry.find(key);
  if (found == entry.end()) {
    place.fail(fmt::format("'{}' is missing", key));
  }
  return *found;
}

std::uint64_t unsigned_item(const Json& item, const char* key, const Place& place) {
  if (!item.is_number_unsigned()) {
    place.fail(
        fmt::format("'{}' holds {}, expected non-negative integers", key, describe_json(item))
    );
  }
  return item.get<std::uint64_t>();
}

// True if an unknown dtype may have this name.
bool is_dtype_name(std::string_view name) {
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  return !name.empty() && name.size() <= kMaxDTypeName && is_capital(name.front()) &&
         std::ranges::all_of(name, [&](char c) {
           return is_capital(c) || (c >= '0' && c <= '9') || c == '_';
         });
}

FormatDType entry_dtype(const Json& value, const Place& place) {
  if (value.is_string()) {
    const std::string_view name = value.get_ref<const std::string&>();
    const auto* found = std::ranges::find(kDTypes, name, &FormatDType::name);
    if (found != kDTypes.end()) {
      return *found;
    }
    if (is_dtype_name(name)) {
      return kLater;
    }
  }
  place.fail(
      fmt::format("'dtype' is {}, expected a dtype of the safetensors format", describe_json(value))
  );
}

std::vector<std::int64_t> entry_shape(const Json& value, const Place& place) {
  if (!value.is_array()) {
    place.fail(fmt::format("'shape' is {}, expected an array", describe_json(value)));
  }
  if (value.size() > kMaxTensorRank) {
    place.fail(
        fmt::format("'shape' has {} dimensions, expected at most {}", value.size(), kMaxTensorRank)
    );
  }
  std::vector<std::int64_t> shape;
  for (const Json& item : value) {
    const std::uint64_t size = unsigned_item(item, "shape", place);
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      place.fail(fmt::format("'shape' holds {}, which is too large", size));
    }
    shape.push_back(static_cast<std::int64_t>(size));
  }
  return shape;
}

// The number of elements; empty if it or its bits overflow 64 bits.
std::optional<std::int64_t> checked_count(std::span<const std::int64_t> shape, std::int64_t bits) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) {
      return std::nullopt;
    }
  }
  std::int64_t all_bits = 0;
  return __builtin_mul_overflow(count, bits, &all_bits) ? std::nullopt : std::optional(count);
}

SafetensorsEntry read_entry(
    const std::string& name, const Json& value, std::size_t data_bytes, const Place& place
) {
  if (!value.is_object()) {
    place.fail(fmt::format("is {}, expected an object", describe_json(value)));
  }
  const FormatDType dtype = entry_dtype(field(value, "dtype", place), place);
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype_name = dtype.name;
  entry.dtype = dtype.dtype;
  entry.shape = entry_shape(field(value, "shape", place), place);
  const auto count = checked_count(entry.shape, dtype.bits);
  if (!count) {
    place.fail(fmt::format("shape {} has too many elements", shape_text(entry.shape)));
  }
  entry.element_count = *count;

  const Json& offsets = field(value, "data_offsets", place);
  if (!offsets.is_array() || offsets.size() != 2) {
    place.fail(fmt::format("'data_offsets' is {}, expected an array of 2", describe_json(offsets)));
  }
  const std::uint64_t begin = unsigned_item(offsets[0], "data_offsets", place);
  const std::uint64_t end = unsigned_item(offsets[1], "data_offsets", place);
  if (begin > end || end > data_bytes) {
    place.fail(fmt::format(
        "'data_offsets' is [{}, {}], expected a range within the file's {} bytes of data",
        begin,
        end,
        data_bytes
    ));
  }
  const std::int64_t bits = entry.element_count * dtype.bits;
  const bool fits = bits % 8 == 0 && static_cast<std::uint64_t>(bits / 8) == end - begin;
  if (dtype.bits > 0 && !fits) {
    place.fail(fmt::format(
        "{} bytes of data, expected {} for {} {}",
        end - begin,
        (bits + 7) / 8,
        dtype.name,
        shape_text(entry.shape)
    ));
  }
  entry.begin = begin;
  entry.end = end;
  return entry;
}

void read_metadata(SafetensorsHeader& header, const Json& value, const Place& place) {
  if (value.is_null()) {
    return;  // As MLX writes "none".
  }
  if (!value.is_object()) {
    place.fail(fmt::format("'__metadata__' is {}, expected an object", describe_json(value)));
  }
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      place.fail(fmt::format(
          "'__metadata__': {} is {}, expected a string", quote(key), describe_json(text)
      ));
    }
    header.metadata.emplace(key, text.get_ref<const std::string&>());
  }
}

// The tensors must cover the data exactly, one after the other. Sorts the entries.
void check_cover(SafetensorsHeader& header, std::size_t data_bytes, std::string_view file) {
  auto& entries = header.entries;
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::size_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at) {
      Place{file, entry.name}.fail(fmt::format(
          "its data begins at byte {}, {} {}",
          entry.begin,
          entry.begin < at ? "inside the tensor that ends at" : "leaving a hole after",
          at
      ));
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    Place{file}.fail(fmt::format("{} bytes of data, expected {}", data_bytes, at));
  }
}

bool has_control_character(std::string_view name) {
  return std::any_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x20 || c == 0x7f;
  });
}

}  // namespace

std::size_t safetensors_data_begin(
    std::span<const std::byte> begin, std::size_t file_bytes, std::string_view what
) {
  return kLengthBytes + header_length(begin, file_bytes, Place{what});
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view what) {
  const Place place{what};
  const std::uint64_t length = header_length(file, file.size(), place);
  const std::span<const std::byte> text = file.subspan(kLengthBytes, length);
  const std::size_t data_begin = kLengthBytes + length;
  const std::size_t data_bytes = file.size() - data_begin;
  // A private copy, since another process may write to the file.
  const std::string json(reinterpret_cast<const char*>(text.data()), text.size());
  if (!json.starts_with('{')) {
    place.fail("the header does not begin with '{'");
  }
  const Json root = parse_json(json, fmt::format("{}: header", what), RepeatedKeys::kRefuse);

  SafetensorsHeader header;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") {
      read_metadata(header, value, place);
      continue;
    }
    const Place tensor{what, name};
    if (has_control_character(name)) {
      tensor.fail("its name holds a control character");
    }
    header.entries.push_back(read_entry(name, value, data_bytes, tensor));
  }
  check_cover(header, data_bytes, what);
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return header;
}

SafetensorsHeader read_safetensors_header(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  return parse_safetensors(file->bytes(), quote_path(path));
}

Tensor map_tensor(const std::shared_ptr<const MappedFile>& file, const SafetensorsEntry& entry) {
  if (!entry.dtype) {
    const std::string& path = file->path().native();
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format(
            "{}: tensor {} has dtype {}, which can't be loaded",
            quote(path, path.size()),
            quote(entry.name),
            entry.dtype_name
        )
    );
  }
  Tensor tensor;
  tensor.dtype = *entry.dtype;
  tensor.shape = entry.shape;
  tensor.data = std::shared_ptr<const std::byte>(file, file->bytes().data() + entry.begin);
  tensor.release = [file, begin = entry.begin, length = entry.end - entry.begin] {
    file->release(begin, length);
  };
  return tensor;
}

TensorMap read_safetensors(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const auto header = parse_safetensors(file->bytes(), quote_path(path));
  TensorMap tensors;
  for (const SafetensorsEntry& entry : header.entries) {
    tensors.emplace(entry.name, map_tensor(file, entry));
  }
  return tensors;
}

}  // namespace saker::load
