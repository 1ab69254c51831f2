// SPDX-License-Identifier: Apache-2.0
#pragma once

// The GGUF format, versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):
// "GGUF", a version, counts, key-value pairs, tensor descriptions, padding, then the tensors' bytes
// at aligned offsets; little-endian. The header is a copy: strings and arrays are checked once and
// read where they are asked for, whatever happens to the file meanwhile. Every count, size, nesting
// depth and range is checked before it is used, and tensors may not overlap; a broken file throws
// kCorruptData with one line, and costs memory in proportion to its keys and tensors.

#include "saker/load/gguf/gguf_types.h"

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

// Bytes of a header that we read at most, arrays inside arrays, bytes of a name, dimensions of a
// tensor.
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

// A value of the metadata, in the header's bytes.
struct Value {
  ValueType type = ValueType::kUInt8;  // Of the elements where it is an array.
  bool is_array = false;
  std::uint64_t count = 1;           // Elements of an array.
  std::span<const std::byte> bytes;  // The value, or the elements one after the other.
};

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<std::int64_t> shape;  // Rows first, as safetensors has it: the file's reversed.
  std::int64_t element_count = 0;
  std::size_t begin = 0;  // Bytes [begin, end) of the file.
  std::size_t end = 0;
  std::size_t part = 0;  // The file, of a model in several; see gguf_parts.h.
};

// Look-ups throw kCorruptData, naming file and key, for values of another type than asked for.
class Header {
 public:
  // `metadata` are views of `bytes`.
  Header(
      std::string what,
      std::map<std::string, Value, std::less<>> metadata,
      std::shared_ptr<const std::vector<std::byte>> bytes
  )
      : what_(std::move(what)), metadata_(std::move(metadata)), bytes_(std::move(bytes)) {}

  const std::string& what() const { return what_; }

  bool has(std::string_view key) const { return metadata_.contains(key); }

  bool is_array(std::string_view key) const;

  // None where the key is absent.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // As the shortest decimal has it.
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  // Empty where the key is absent; views that live as long as the header or a copy of it.
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;

  // Keys that begin so.
  std::vector<std::string> keys(std::string_view prefix) const;

  std::vector<TensorEntry> tensors;  // In the file's order.

 private:
  const Value* find(std::string_view key, bool array) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

  std::string what_;
  std::map<std::string, Value, std::less<>> metadata_;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

// Of a file that begins so and has `file_bytes`: the size of its header, none where `begin` ends
// before it does. Throws as parse_gguf does.
std::optional<std::size_t> header_bytes(
    std::span<const std::byte> begin, std::size_t file_bytes, std::string_view what
);

// Checks the whole file's structure. `what` names the file in messages. Another process may write
// to `file` meanwhile. Throws kUnsupported for version 1 and unknown ones, big-endian files, and
// types of tensors that we can't read.
Header parse_gguf(std::span<const std::byte> file, std::string_view what);

}  // namespace saker::load::gguf
