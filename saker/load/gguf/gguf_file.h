// SPDX-License-Identifier: Apache-2.0
#pragma once

// The GGUF format, versions 2 and 3, little-endian
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). A file has "GGUF", a version,
// counts, key-value pairs, tensor descriptions, padding, then the tensors' bytes at aligned
// offsets.
//
// The header is a copy: strings and arrays are checked once and read on demand, whatever happens to
// the file meanwhile. Every count, size, nesting depth and range is checked before it is used, and
// tensors may not overlap. A broken file throws kCorruptData with one line, and takes memory in
// proportion to its keys and tensors.

#include "saker/load/gguf/blocks/gguf_types.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

// Limits: bytes of a header, nesting of arrays, bytes of a name, dimensions of a tensor.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{256} << 20;
inline constexpr int kMaxDepth = 4;
inline constexpr std::size_t kMaxNameBytes = 65535;
inline constexpr std::uint32_t kMaxRank = 4;

enum class ValueType : std::uint8_t {
  kUInt8,
  kInt8,
  kUInt16,
  kInt16,
  kUInt32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUInt64,
  kInt64,
  kFloat64,
};

// A metadata value; a view of the header's bytes.
struct Value {
  ValueType type = ValueType::kUInt8;  // For an array, of its elements.
  bool is_array = false;
  std::uint64_t count = 1;           // Number of elements of an array.
  std::span<const std::byte> bytes;  // The value, or all elements in order.
};

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<std::int64_t> shape;  // Rows first, as in safetensors; reversed in the file.
  std::int64_t element_count = 0;
  std::size_t begin = 0;  // Bytes [begin, end) of the file.
  std::size_t end = 0;
  std::size_t part = 0;  // Which file of a model in several, see gguf_parts.h.
};

// Look-ups throw kCorruptData, naming file and key, if a value has another type.
class Header {
 public:
  // `metadata` holds views of `bytes`.
  Header(
      std::string what,
      std::map<std::string, Value, std::less<>> metadata,
      std::shared_ptr<const std::vector<std::byte>> bytes
  )
      : what_(std::move(what)), metadata_(std::move(metadata)), bytes_(std::move(bytes)) {}

  const std::string& what() const { return what_; }

  bool has(std::string_view key) const { return metadata_.contains(key); }

  bool is_array(std::string_view key) const;

  // Empty if the key is absent.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // Read as its shortest decimal.
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  // Empty if the key is absent. Views live as long as the header or a copy of it.
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<bool> booleans(std::string_view key) const;

  // All keys that begin with `prefix`.
  std::vector<std::string> keys(std::string_view prefix) const;

  std::vector<TensorEntry> tensors;  // In the file's order.

 private:
  const Value* find(std::string_view key, bool array) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

  std::string what_;
  std::map<std::string, Value, std::less<>> metadata_;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

// Size of the header of a file of `file_bytes` bytes that starts with `begin`. Empty if `begin`
// ends inside the header. Throws as parse_gguf does.
std::optional<std::size_t> header_bytes(
    std::span<const std::byte> begin, std::size_t file_bytes, std::string_view what
);

// Checks the whole file's structure. `what` names the file in messages. Another process may write
// to `file` meanwhile. Throws kUnsupported for other versions, big-endian files, and tensor types
// that we can't read.
Header parse_gguf(std::span<const std::byte> file, std::string_view what);

}  // namespace saker::load::gguf
