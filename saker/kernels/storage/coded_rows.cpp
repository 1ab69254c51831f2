// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/storage/coded_rows.h"

#include "saker/base/error.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace saker::kernels {
namespace {

// One side of a store, keys or values, whose rows are read or written as MLX's codes.
struct CodedSide {
  const KvPages& pages;
  CodeSide side;
  CodeBlock block;  // For pages of codes.
  int group;        // MLX's group size.

  CodedSide(const KvPages& of, CodeSide which)
      : pages(of),
        side(which),
        block(is_keys() ? of.layout().key_codes : of.layout().value_codes),
        group(code_group(block.dim)) {}

  bool is_keys() const { return side == CodeSide::kKeys; }

  int words() const { return block.dim / block.codes_per_word(); }

  int groups() const { return block.dim / group; }

  // The codes of a head in a page, or its rows if the page is not quantized.
  std::byte* at(const KvPage& page, int head) const {
    const KvPageLayout& layout = *page.layout;
    return page.data + (is_keys() ? layout.keys_at(head) : layout.values_at(head));
  }

  bool has_codes(const KvPage& page) const { return page.layout->key_codes.is_quantized(); }
};

// A row's codes and the lines of its groups, in MLX's layout.
struct CodedRow {
  std::vector<std::uint8_t> codes;
  std::vector<AffineLine> lines;
};

// True if a row's groups in a page are MLX's: no offsets, and equal lines where groups are
// narrower.
bool has_mlx_groups(const CodedSide& side, const std::byte* at, int slot) {
  const CodeBlock& block = side.block;
  const int parts = side.group / block.group;
  for (int d = 0; block.has_offsets() && d < block.dim; ++d) {
    if (read_offset(block, at, d) != 0.0F) {
      return false;
    }
  }
  for (int g = 0; g < block.groups; ++g) {
    const AffineLine own = read_terms(block, at, slot, g);
    const AffineLine first = read_terms(block, at, slot, g / parts * parts);
    if (own.scale != first.scale || own.bias != first.bias) {
      return false;
    }
  }
  return true;
}

void read_coded(const CodedSide& side, const KvPage& page, int head, int slot, CodedRow& row) {
  const CodeBlock& block = side.block;
  const std::byte* at = side.at(page, head);
  if (side.has_codes(page) && has_mlx_groups(side, at, slot)) {
    for (int d = 0; d < block.dim; ++d) {
      row.codes[d] = read_code(block, side.side, at, slot, d);
    }
    for (int g = 0; g < side.groups(); ++g) {
      row.lines[g] = read_terms(block, at, slot, g * (side.group / block.group));
    }
    return;
  }
  std::vector<std::byte> bytes(block.dim * (block.bf16 ? 2UL : 4UL));
  const auto read = side.is_keys() ? read_key : read_value;
  read(*page.layout, page.data, head, slot, bytes.data());
  std::vector<float> values(block.dim);
  const DType dtype = block.bf16 ? DType::kBFloat16 : DType::kFloat32;
  quantize_loops().widen(bytes.data(), dtype, values.size(), values.data());
  for (int g = 0; g < side.groups(); ++g) {
    const std::size_t first = static_cast<std::size_t>(g) * side.group;
    row.lines[g] = quantize_loops().encode_group(
        dtype, block.bits, values.data() + first, side.group, row.codes.data() + first
    );
  }
}

void write_coded(
    const CodedSide& side, const KvPage& page, int head, int slot, const CodedRow& row
) {
  const CodeBlock& block = side.block;
  if (side.has_codes(page)) {
    for (int g = 0; g < block.groups; ++g) {
      const GroupCodes group{
          row.codes.data() + static_cast<std::ptrdiff_t>(g) * block.group,
          row.lines[g * block.group / side.group],
      };
      write_group(block, side.side, side.at(page, head), slot, g, group);
    }
    return;
  }
  std::vector<float> values(block.dim);
  for (int d = 0; d < block.dim; ++d) {
    const AffineLine& line = row.lines[d / side.group];
    values[d] = line.scale * static_cast<float>(row.codes[d]) + line.bias;
  }
  const auto write = side.is_keys() ? write_key : write_value;
  write(*page.layout, page.data, head, slot, values.data());
}

}  // namespace

mx::array contiguous_float32(const mx::array& rows) {
  auto dense = mx::contiguous(mx::astype(rows, mx::float32));
  dense.eval();
  return dense;
}

QuantizedRows read_coded_rows(
    const KvPages& pages, CodeSide which, const RowRange& range, mx::Dtype dtype
) {
  const CodedSide side(pages, which);
  const auto [first, count] = range;
  const CodeBlock& block = side.block;
  require(
      block.is_quantized() && block.dim % 32 == 0,
      ErrorCode::kUnsupported,
      "cache: rows of {} elements of {} bits are not groups of codes",
      block.dim,
      block.bits
  );
  const int heads = side.pages.layout().kv_heads;
  const int words = side.words();
  const int groups = side.groups();
  std::vector<std::uint32_t> codes(static_cast<std::size_t>(heads) * count * words);
  std::vector<float> scales(static_cast<std::size_t>(heads) * count * groups);
  std::vector<float> biases(scales.size());
  CodedRow row{std::vector<std::uint8_t>(block.dim), std::vector<AffineLine>(groups)};
  for (int i = 0; i < heads * count; ++i) {
    const std::int64_t position = first + i % count;
    const KvPage page = side.pages.page(position / kPageRows);
    require(page.data != nullptr, ErrorCode::kInternal, "cache: row {} is gone", position);
    read_coded(side, page, i / count, static_cast<int>(position % kPageRows), row);
    for (int d = 0; d < block.dim; ++d) {
      const std::uint32_t code = row.codes[d];
      codes[i * words + d / block.codes_per_word()] |= code
                                                       << (d % block.codes_per_word() * block.bits);
    }
    for (int g = 0; g < groups; ++g) {
      scales[i * groups + g] = row.lines[g].scale;
      biases[i * groups + g] = row.lines[g].bias;
    }
  }
  const mx::Shape terms_shape = {heads, count, groups};
  const auto stored = [&](const std::vector<float>& terms) {
    return mx::astype(mx::array(terms.data(), terms_shape), dtype);
  };
  return {
      mx::array(codes.data(), {heads, count, words}),
      stored(scales),
      stored(biases),
      block.bits,
      side.group,
  };
}

void write_coded_rows(
    const KvPages& pages, CodeSide which, std::int64_t first, const QuantizedRows& rows
) {
  const CodedSide side(pages, which);
  const CodeBlock& block = side.block;
  const int heads = pages.layout().kv_heads;
  const int count = rows.codes.ndim() == 3 ? rows.codes.shape(1) : 0;
  const int words = side.words();
  const int groups = side.groups();
  const mx::Shape terms_shape = {heads, count, groups};
  require(
      block.is_quantized() && block.dim % 32 == 0 && rows.bits == block.bits &&
          rows.group_size == side.group && rows.codes.dtype() == mx::uint32 &&
          rows.codes.shape() == mx::Shape{heads, count, words} &&
          rows.scales.shape() == terms_shape && rows.biases.shape() == terms_shape,
      ErrorCode::kInvalidArgument,
      "cache: codes of {} bits in groups of {} have the wrong shape, expected {} bits in groups of "
      "{} as [{}, n, {}]",
      rows.bits,
      rows.group_size,
      block.bits,
      side.group,
      heads,
      words
  );
  const auto codes = mx::contiguous(rows.codes);
  mx::eval(codes);
  const auto scales = contiguous_float32(rows.scales);
  const auto biases = contiguous_float32(rows.biases);
  const auto mask = (std::uint32_t{1} << block.bits) - 1;
  CodedRow row{std::vector<std::uint8_t>(block.dim), std::vector<AffineLine>(groups)};
  for (int i = 0; i < heads * count; ++i) {
    const std::int64_t position = first + i % count;
    require(
        pages.find_private(position / kPageRows) != nullptr,
        ErrorCode::kInternal,
        "cache: row {} was not prepared",
        position
    );
    const std::uint32_t* packed = codes.data<std::uint32_t>() + static_cast<std::size_t>(i) * words;
    for (int d = 0; d < block.dim; ++d) {
      const std::uint32_t word = packed[d / block.codes_per_word()];
      const std::uint32_t code = word >> (d % block.codes_per_word() * block.bits) & mask;
      row.codes[d] = static_cast<std::uint8_t>(code);
    }
    for (int g = 0; g < groups; ++g) {
      const std::size_t term = static_cast<std::size_t>(i) * groups + g;
      row.lines[g] = {scales.data<float>()[term], biases.data<float>()[term]};
    }
    const int slot = static_cast<int>(position % kPageRows);
    write_coded(side, pages.page(position / kPageRows), i / count, slot, row);
  }
}

}  // namespace saker::kernels
