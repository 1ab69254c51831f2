// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_model.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/gguf/blocks/gguf_coded_block.h"
#include "saker/load/gguf/blocks/gguf_types.h"
#include "saker/load/gguf/gguf_config.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_parts.h"
#include "saker/load/gguf/gguf_rows.h"
#include "saker/load/gguf/gguf_tokenizer.h"
#include "saker/load/importers/quantization_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

using importers::ImportedModel;
using importers::LazyTensor;

// Values that are checked together.
constexpr std::size_t kBlock = 1 << 12;

// The form of matrices with codes: MLX's affine layout or the file's blocks.
enum class CodeForm : std::uint8_t { kAffine, kBlocks };

class Model {
 public:
  explicit Model(
      JoinedParts joined, Values values = Values::kThere, CodeForm form = CodeForm::kAffine
  )
      : values_(values),
        form_(form),
        parts_(std::move(joined.parts)),
        header_(std::move(joined.header)),
        family_(family_of(header_)),
        dtype_(model_dtype()) {}

  // Blocks are for layers, which need no texts.
  ImportedModel texts(CodeForm form = CodeForm::kAffine) const {
    ImportedModel model;
    model.config = model_config(header_, family_, rope_factors());
    const std::optional<Vocabulary> vocabulary = read_vocabulary(header_);
    if (vocabulary) {
      add_token_ids(*vocabulary, model.config);
    }
    if (vocabulary && form == CodeForm::kAffine) {
      model.files = tokenizer_files(header_, *vocabulary);
    }
    model.notes = vocabulary_notes(header_, vocabulary);
    return model;
  }

  ImportedModel build() {
    ImportedModel model = texts(form_);
    for (const TensorEntry& entry : header_.tensors) {
      const std::vector<TensorRole> roles = roles_of(header_, family_, entry.name);
      for (const TensorRole& role : roles) {
        model.tensors.push_back(derived(entry, role));
      }
      drafting_ += roles.empty() && !is_rope_table(entry.name) ? 1 : 0;
    }
    std::ranges::sort(model.tensors, {}, [](const LazyTensor& tensor) -> const std::string& {
      return tensor.outputs.front().name;
    });
    importers::add_quantization(model.config, formats_);
    if (!has_wide_scales_) {  // Else a conversion would round them to this dtype.
      model.config["torch_dtype"] = float_name(dtype_);
    }
    add_notes(model);
    return model;
  }

  BlockModel build_blocks() {
    ImportedModel model = build();
    return {.model = std::move(model), .formats = std::move(block_formats_)};
  }

 private:
  // The dtype of tensors without codes.
  DType model_dtype() const {
    DType dtype = DType::kFloat32;
    for (const TensorEntry& entry : header_.tensors) {
      const auto plain = plain_dtype(entry.type);
      if (!plain) {
        return DType::kFloat16;
      }
      dtype = entry.name == "token_embd.weight" ? *plain : dtype;
    }
    return dtype;
  }

  const Part& part(const TensorEntry& entry) const { return parts_[entry.part]; }

  const std::byte* data(const TensorEntry& entry) const {
    return part(entry).bytes.data() + entry.begin;
  }

  std::vector<float> rope_factors() const {
    const auto found =
        std::ranges::find(header_.tensors, rope_table(header_, family_), &TensorEntry::name);
    if (found == header_.tensors.end() || values_ == Values::kToCome) {
      return {};
    }
    // The maximum for a head; no model has more.
    constexpr std::int64_t kMax = 1 << 14;
    std::vector<float> factors(static_cast<std::size_t>(std::min(found->element_count, kMax)));
    require(
        plain_dtype(found->type).has_value() && found->element_count <= kMax,
        ErrorCode::kCorruptData,
        "{}: {} is {} {}, expected at most {} plain numbers",
        part(*found).what,
        quote(found->name),
        facts_of(found->type).name,
        shape_text(found->shape),
        kMax
    );
    to_floats(found->type, data(*found), factors.size(), factors.data());
    return factors;
  }

  LazyTensor derived(const TensorEntry& entry, const TensorRole& role) {
    check_heads(entry, role, part(entry).what);
    const auto kind = block_kind(entry.type);
    const bool is_matrix =
        role.name.ends_with(".weight") && entry.shape.size() >= 2 && !role.is_flat;
    if (form_ == CodeForm::kBlocks && kind && is_matrix &&
        heads_are_whole(role, kernels::block_format(*kind).columns)) {
      return with_blocks(entry, role, *kind);
    }
    LazyTensor tensor = is_matrix ? matrix(entry, role) : plain(entry, role);
    tensor.release = release_of(entry);
    return tensor;
  }

  // In MLX's format for the type if it has one that holds all weights.
  LazyTensor matrix(const TensorEntry& entry, const TensorRole& role) {
    const auto holds = [&](const kernels::WeightFormat& format, auto fits) {
      return heads_are_whole(role, format.group_size) &&
             (values_ == Values::kToCome || fits(entry.type, data(entry), count_of(entry)));
    };
    if (const auto layout = affine_layout(entry.type);
        layout && holds(layout->format, fits_affine)) {
      return with_codes(entry, role, *layout);
    }
    if (const auto format = small_float_format(entry.type);
        format && holds(*format, fits_small_floats)) {
      return with_small_floats(entry, role, *format);
    }
    return plain(entry, role);
  }

  // Frees the tensor's pages of the file; empty for files in memory.
  std::function<void()> release_of(const TensorEntry& entry) const {
    if (const auto& mapped = part(entry).mapped) {
      return [mapped, begin = entry.begin, length = entry.end - entry.begin] {
        mapped->release(begin, length);
      };
    }
    return {};
  }

  static std::size_t count_of(const TensorEntry& entry) {
    return static_cast<std::size_t>(entry.element_count);
  }

  // `count`: the folder's rows.
  FileRows rows(const TensorEntry& entry, const TensorRole& role, std::int64_t count) const {
    const auto file_count = static_cast<std::size_t>(count * role.parts);
    return {
        .type = entry.type,
        .count = count_of(entry) / file_count,
        .bytes = (entry.end - entry.begin) / file_count,
        .data = data(entry),
        .mapped = part(entry).mapped,
        .order = row_order(entry, role),
        .columns = role.columns,
    };
  }

  LazyTensor with_codes(
      const TensorEntry& entry, const TensorRole& role, const AffineLayout& layout
  ) {
    const std::string path = role.name.substr(0, role.name.rfind('.'));
    formats_.emplace(path, layout.format);
    has_wide_scales_ = has_wide_scales_ || layout.scales == DType::kFloat32;
    auto codes = shape_of(entry, role);
    auto groups = codes;
    codes.back() = codes.back() * layout.format.bits / 32;
    groups.back() /= layout.format.group_size;
    LazyTensor tensor;
    tensor.outputs = {
        {path + ".weight", DType::kUInt32, codes},
        {path + ".scales", layout.scales, groups},
        {path + ".biases", layout.scales, groups},
    };
    tensor.rows = rows_of(entry, role);
    const std::size_t row_codes = tensor.row_bytes(0);
    const std::size_t row_scales = tensor.row_bytes(1);
    tensor.make = [from = rows(entry, role, tensor.rows), row_codes, row_scales](
                      std::int64_t first, std::int64_t count, std::span<std::byte* const> to
                  ) {
      // A block gives all three outputs; unwanted ones go to a scratch row.
      std::vector<std::byte> unwanted(std::max(row_codes, row_scales));
      const auto place = [&](std::size_t output, std::size_t row, std::size_t bytes) {
        return to[output] != nullptr ? to[output] + row * bytes : unwanted.data();
      };
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const kernels::QuantizedBytes row = {
            .codes = place(0, at, row_codes),
            .scales = place(1, at, row_scales),
            .biases = place(2, at, row_scales),
        };
        to_affine(from.type, from.at(first + i), from.count, row);
        from.move_columns(row.codes, row_codes);
        from.move_columns(row.scales, row_scales);
        from.move_columns(row.biases, row_scales);
      }
    };
    return tensor;
  }

  LazyTensor with_small_floats(
      const TensorEntry& entry, const TensorRole& role, const kernels::WeightFormat& format
  ) {
    const std::string path = role.name.substr(0, role.name.rfind('.'));
    formats_.emplace(path, format);
    auto codes = shape_of(entry, role);
    auto scales = codes;
    codes.back() /= 8;
    scales.back() /= format.group_size;
    LazyTensor tensor;
    tensor.outputs = {
        {path + ".weight", DType::kUInt32, codes},
        {path + ".scales", DType::kUInt8, scales},
    };
    tensor.rows = rows_of(entry, role);
    const std::size_t row_codes = tensor.row_bytes(0);
    const std::size_t row_scales = tensor.row_bytes(1);
    tensor.make = [from = rows(entry, role, tensor.rows), row_codes, row_scales](
                      std::int64_t first, std::int64_t count, std::span<std::byte* const> to
                  ) {
      std::vector<std::byte> unwanted(std::max(row_codes, row_scales));
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        std::byte* own_codes = to[0] != nullptr ? to[0] + at * row_codes : unwanted.data();
        std::byte* own_scales = to[1] != nullptr ? to[1] + at * row_scales : unwanted.data();
        to_small_floats(from.type, from.at(first + i), from.count, own_codes, own_scales);
        from.move_columns(own_codes, row_codes);
        from.move_columns(own_scales, row_scales);
      }
    };
    return tensor;
  }

  // Blocks: a view of the file, unless its rows come in another order or become other blocks.
  LazyTensor with_blocks(
      const TensorEntry& entry, const TensorRole& role, kernels::BlockKind kind
  ) {
    block_formats_.emplace(role.name.substr(0, role.name.rfind('.')), kernels::weight_format(kind));
    auto shape = shape_of(entry, role);
    shape.back() = kernels::stored_elements(kernels::weight_format(kind), shape.back());
    LazyTensor tensor;
    tensor.rows = rows_of(entry, role);
    tensor.outputs = {{role.name, DType::kUInt8, shape}};
    tensor.release = release_of(entry);
    const FileRows from = rows(entry, role, tensor.rows);
    if (!role.moves_rows() && !role.columns.moves() && has_own_blocks(entry.type)) {
      tensor.same = Tensor{
          .dtype = DType::kUInt8,
          .shape = shape,
          .data = std::shared_ptr<const std::byte>(from.mapped, from.data),
          .release = tensor.release,
      };
    }
    tensor.make = [from, row_bytes = tensor.row_bytes(0)](
                      std::int64_t first, std::int64_t count, std::span<std::byte* const> to
                  ) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * row_bytes;
        to_blocks(from.type, from.at(first + i), from.count, to[0] + at);
        from.move_columns(to[0] + at, row_bytes);
      }
    };
    return tensor;
  }

  LazyTensor plain(const TensorEntry& entry, const TensorRole& role) {
    const float offset = role.plus_one ? -1.0F : 0.0F;
    LazyTensor tensor;
    tensor.rows = rows_of(entry, role);
    const FileRows from = rows(entry, role, tensor.rows);
    const DType dtype = role.is_decay ? DType::kFloat32 : plain_target(entry, offset);
    auto shape = shape_of(entry, role);
    if (role.ends_in_one) {
      shape = {entry.element_count / shape.back(), shape.back(), 1};
    } else if (role.is_flat) {
      shape = {entry.element_count};
    }
    tensor.outputs = {{role.name, dtype, std::move(shape)}};
    const std::string name = fmt::format("{}: tensor {}", part(entry).what, quote(entry.name));
    tensor.make = [from, dtype, offset, name, is_decay = role.is_decay](
                      std::int64_t first, std::int64_t count, std::span<std::byte* const> to
                  ) {
      const std::size_t row_bytes = from.count * dtype_size(dtype);
      std::vector<float> values(from.count);
      for (std::int64_t i = 0; i < count; ++i) {
        to_floats(from.type, from.at(first + i), from.count, values.data());
        for (float& value : values) {
          value = is_decay ? log_of_decay(value, name) : value + offset;
        }
        std::byte* const row = to[0] + static_cast<std::size_t>(i) * row_bytes;
        kernels::quantize_loops().narrow(values.data(), dtype, from.count, row);
        from.move_columns(row, row_bytes);
      }
    };
    return tensor;
  }

  // The dtype to give a tensor without codes.
  DType plain_target(const TensorEntry& entry, float offset) {
    const auto own = plain_dtype(entry.type);
    if (!own) {
      ++dequantized_[facts_of(entry.type).name];
      return holds(entry, offset, DType::kFloat16, false) ? DType::kFloat16 : DType::kFloat32;
    }
    return *own == DType::kFloat32 && holds(entry, offset, dtype_, true) ? dtype_ : *own;
  }

  // True if all numbers are in the dtype's range or, if `exactly`, representable in it.
  bool holds(const TensorEntry& entry, float offset, DType dtype, bool exactly) const {
    if (values_ == Values::kToCome) {
      return true;
    }
    const kernels::QuantizeLoops& loops = kernels::quantize_loops();
    const TypeFacts& facts = facts_of(entry.type);
    std::vector<float> values(kBlock);
    std::vector<float> rounded(kBlock);
    std::vector<std::byte> narrow(kBlock * sizeof(float));
    for (std::size_t first = 0; first < count_of(entry); first += kBlock) {
      const std::size_t count = std::min(kBlock, count_of(entry) - first);
      const std::size_t blocks = first / static_cast<std::size_t>(facts.block);
      to_floats(entry.type, data(entry) + blocks * facts.block_bytes, count, values.data());
      for (std::size_t i = 0; i < count; ++i) {
        values[i] += offset;
      }
      loops.narrow(values.data(), dtype, count, narrow.data());
      loops.widen(narrow.data(), dtype, count, rounded.data());
      for (std::size_t i = 0; i < count; ++i) {
        if (exactly ? rounded[i] != values[i] : !std::isfinite(rounded[i])) {
          return false;
        }
      }
    }
    return true;
  }

  void add_notes(ImportedModel& model) const {
    if (drafting_ > 0) {
      model.notes.push_back(fmt::format(
          "{} {} of a head that drafts tokens {} not read",
          drafting_,
          drafting_ == 1 ? "tensor" : "tensors",
          drafting_ == 1 ? "is" : "are"
      ));
    }
    for (const auto& [type, count] : dequantized_) {
      model.notes.push_back(fmt::format(
          "{} {} of {} {} no format of MLX that holds {}: written as float16",
          count,
          count == 1 ? "tensor" : "tensors",
          type,
          count == 1 ? "has" : "have",
          count == 1 ? "it" : "them"
      ));
    }
  }

  const Values values_;
  const CodeForm form_;
  std::vector<Part> parts_;
  Header header_;
  const Family& family_;
  DType dtype_;
  std::map<std::string, kernels::WeightFormat> formats_;  // By path.
  std::map<std::string, kernels::WeightFormat> block_formats_;
  std::map<std::string_view, std::size_t> dequantized_;  // Tensors by type.
  std::size_t drafting_ = 0;                             // Tensors of a head that have no place.
  bool has_wide_scales_ = false;
};

}  // namespace

ImportedModel open_gguf(const std::filesystem::path& path, Values values) {
  return Model(open_parts(path), values).build();
}

BlockModel open_gguf_blocks(const std::filesystem::path& path, Values values) {
  return Model(open_parts(path), values, CodeForm::kBlocks).build_blocks();
}

ImportedModel open_gguf_texts(const std::filesystem::path& path) {
  return Model(open_parts(path)).texts();
}

namespace {

JoinedParts parts_of(std::span<const std::span<const std::byte>> files, std::string_view what) {
  std::vector<Part> parts;
  parts.reserve(files.size());
  for (const auto file : files) {
    parts.push_back({.what = std::string(what), .bytes = file, .mapped = nullptr});
  }
  return join_parts(std::move(parts));
}

}  // namespace

ImportedModel read_gguf(std::span<const std::span<const std::byte>> files, std::string_view what) {
  return Model(parts_of(files, what)).build();
}

BlockModel read_gguf_blocks(
    std::span<const std::span<const std::byte>> files, std::string_view what
) {
  return Model(parts_of(files, what), Values::kThere, CodeForm::kBlocks).build_blocks();
}

}  // namespace saker::load::gguf
