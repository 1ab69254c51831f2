// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/gguf_writer.h"

#include "saker/load/gguf/gguf_file.h"

#include <array>
#include <bit>
#include <concepts>
#include <string_view>
#include <type_traits>
#include <variant>

namespace saker::load::gguf {
namespace {

// Tensors begin at multiples of it, the format's default.
constexpr std::size_t kTensorAlignment = 32;

std::size_t aligned(std::size_t size) {
  return (size + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

template <typename T>
constexpr ValueType value_type_of() {
  if constexpr (std::same_as<T, bool>) {
    return ValueType::kBool;
  } else if constexpr (std::same_as<T, std::uint32_t>) {
    return ValueType::kUInt32;
  } else if constexpr (std::same_as<T, std::int32_t>) {
    return ValueType::kInt32;
  } else if constexpr (std::same_as<T, float>) {
    return ValueType::kFloat32;
  } else {
    static_assert(std::same_as<T, std::string>);
    return ValueType::kString;
  }
}

class HeaderText {
 public:
  void raw(std::string_view bytes) { text_ += bytes; }

  template <std::unsigned_integral T>
  void integer(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      text_ += static_cast<char>(value >> (8 * i) & 0xff);
    }
  }

  void string(std::string_view value) {
    integer(std::uint64_t{value.size()});
    raw(value);
  }

  void type(ValueType value) { integer(static_cast<std::uint32_t>(value)); }

  void value(const MetadataValue& value) {
    std::visit([this](const auto& held) { tagged(held); }, value);
  }

  void align() { text_.resize(aligned(text_.size()), '\0'); }

  std::string take() { return std::move(text_); }

 private:
  template <typename T>
  void tagged(const T& value) {
    type(value_type_of<T>());
    plain(value);
  }

  template <typename T>
  void tagged(const std::vector<T>& values) {
    type(ValueType::kArray);
    type(value_type_of<T>());
    integer(std::uint64_t{values.size()});
    for (const auto& value : values) {
      plain(static_cast<const T&>(value));
    }
  }

  void plain(bool value) { text_ += static_cast<char>(value ? 1 : 0); }

  void plain(std::uint32_t value) { integer(value); }

  void plain(std::int32_t value) { integer(std::bit_cast<std::uint32_t>(value)); }

  void plain(float value) { integer(std::bit_cast<std::uint32_t>(value)); }

  void plain(const std::string& value) { string(value); }

  std::string text_;
};

}  // namespace

std::size_t PlannedBlocks::row_bytes() const {
  const TypeFacts& facts = facts_of(type);
  return static_cast<std::size_t>(shape.back() / facts.block) * facts.block_bytes;
}

std::size_t PlannedBlocks::bytes() const {
  std::size_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    rows *= static_cast<std::size_t>(shape[i]);
  }
  return rows * row_bytes();
}

GgufWriter::GgufWriter(
    const std::filesystem::path& path,
    const Metadata& metadata,
    const std::vector<PlannedBlocks>& tensors
)
    : file_(path) {
  constexpr std::uint32_t kVersion = 3;
  HeaderText header;
  header.raw("GGUF");
  header.integer(kVersion);
  header.integer(std::uint64_t{tensors.size()});
  header.integer(std::uint64_t{metadata.size()});
  for (const KeyValue& pair : metadata) {
    header.string(pair.key);
    header.value(pair.value);
  }
  std::size_t offset = 0;
  for (const PlannedBlocks& tensor : tensors) {
    header.string(tensor.name);
    header.integer(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      header.integer(static_cast<std::uint64_t>(*size));
    }
    header.integer(static_cast<std::uint32_t>(tensor.type));
    header.integer(std::uint64_t{offset});
    begin_.push_back(offset);
    offset = aligned(offset + tensor.bytes());
  }
  header.align();
  const std::string text = header.take();
  for (std::size_t& begin : begin_) {
    begin += text.size();
  }
  file_bytes_ = text.size() + offset;
  file_.write(text);
  // The last tensor is padded, too; gaps between the others read as zeros.
  if (offset > 0) {
    constexpr std::array<std::byte, 1> kZero{};
    file_.write_at(file_bytes_ - 1, kZero);
  }
}

void GgufWriter::write(std::size_t index, std::size_t offset, std::span<const std::byte> bytes) {
  file_.write_at(begin_.at(index) + offset, bytes);
}

void GgufWriter::commit() {
  file_.commit();
}

}  // namespace saker::load::gguf
