// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/export_gguf.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/load/convert/conversion_source.h"
#include "saker/load/export/export_tensor.h"
#include "saker/load/export/gguf_recipe.h"
#include "saker/load/export/gguf_writer.h"
#include "saker/load/export/imatrix_file.h"
#include "saker/load/export/model_metadata.h"
#include "saker/load/export/vocabulary_metadata.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/sources/open_texts.h"
#include "saker/models/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

// Values that a thread encodes at a time, or one row.
constexpr std::int64_t kSliceValues = 1 << 18;

// Rows [first, first + count) of tensor `index`.
struct RowSlice {
  std::size_t index = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Steps that read all tensors as float32.
ConvertOptions float_options() {
  ConvertOptions options;
  options.dequantize = true;
  options.dtype = DType::kFloat32;
  return options;
}

// A folder's name, or a file's without its ending.
std::string name_of(const std::filesystem::path& source) {
  const auto path = (source / "").parent_path();
  return path.extension() == ".gguf" ? path.stem() : path.filename();
}

class GgufExport {
 public:
  GgufExport(const std::filesystem::path& path, const GgufOptions& options)
      : options_(options),
        path_(path),
        source_(open_source(path)),
        conversion_(plan_conversion(source_, as_floats_, true)),
        steps_(conversion_.steps()) {}

  ConvertReport write(const std::filesystem::path& target) {
    const Json config =
        models::detect_architecture(source_.config, tensor_names(source_.tensors)).config;
    const ModelMetadata model = model_metadata(config, facts());
    add_tensors(model);
    const Recipe& recipe = find_recipe(options_.type.empty() ? own_type() : options_.type);
    choose_types(model, recipe);
    Metadata metadata = model.pairs;
    metadata.push_back({"general.file_type", recipe_number(recipe)});
    constexpr std::uint32_t kQuantizationVersion = 2;
    metadata.push_back({"general.quantization_version", kQuantizationVersion});
    add_vocabulary(config, model, metadata);
    GgufWriter writer(target, metadata, planned());
    run(writer);
    report_.bytes = writer.file_bytes();
    writer.commit();
    add_warnings();
    return std::move(report_);
  }

 private:
  void add_tensors(const ModelMetadata& model) {
    for (TensorStep& step : steps_) {
      auto file = file_tensor(model, step.source.name);
      if (!file) {
        drafting_ += step.source.name.find("mtp.") != std::string::npos ? 1 : 0;
        continue;
      }
      auto shape = step.source.shape();
      shape.back() = shape.back() * step.part_elements() /
                     step.source.parts.front().element_count();  // Codes become values.
      auto in_file = file_shape(*file, shape);
      tensors_.push_back(
          {.file = *std::move(file), .shape = std::move(in_file), .step = step, .values = {}}
      );
    }
    if (!model.rope_factors.empty()) {
      tensors_.push_back({
          .file = {.name = "rope_freqs.weight", .role = {.name = "rope_freqs.weight"}},
          .shape = {static_cast<std::int64_t>(model.rope_factors.size())},
          .step = {},
          .values = model.rope_factors,
      });
    }
    std::ranges::sort(tensors_, precedes, [](const ExportTensor& one) -> std::string_view {
      return one.file.name;
    });
  }

  // The configuration does not say it.
  ModelFacts facts() const {
    ModelFacts facts{.name = options_.name.empty() ? name_of(path_) : options_.name};
    for (const TensorStep& step : steps_) {
      if (step.source.name.starts_with("dense.") && step.source.shape().size() == 2) {
        const auto shape = step.source.shape();
        facts.dense.push_back({.inputs = shape[1], .outputs = shape[0]});
      }
    }
    return facts;
  }

  void add_vocabulary(const Json& config, const ModelMetadata& model, Metadata& metadata) {
    VocabularyMetadata vocabulary = vocabulary_metadata(open_texts(path_), config, model);
    for (KeyValue& pair : vocabulary.pairs) {
      metadata.push_back(std::move(pair));
    }
    notes_ = std::move(vocabulary.notes);
  }

  // The dtype of the embedding, as a recipe's name.
  std::string own_type() const {
    for (const ExportTensor& tensor : tensors_) {
      if (tensor.file.name == "token_embd.weight" && !tensor.step.codes) {
        const DType dtype = tensor.step.source.dtype();
        return dtype == DType::kFloat32 ? "F32" : dtype == DType::kBFloat16 ? "BF16" : "F16";
      }
    }
    return "F16";
  }

  void choose_types(const ModelMetadata& model, const Recipe& recipe) {
    std::vector<RecipeTensor> facts;
    facts.reserve(tensors_.size());
    for (const ExportTensor& tensor : tensors_) {
      facts.push_back({
          .name = tensor.file.name,
          .columns = tensor.shape.back(),
          .rank = static_cast<int>(tensor.shape.size()),
      });
    }
    add_importance(recipe);
    const auto types = tensor_types(
        recipe,
        {
            .architecture = model.family->name,
            .layers = model.layers,
            .heads = model.heads,
            .kv_heads = model.kv_heads,
            .experts = experts(),
            .importance = !options_.importance.empty(),
        },
        facts
    );
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      tensors_[i].type = types[i];
    }
  }

  int experts() const {
    for (const ExportTensor& tensor : tensors_) {
      if (tensor.shape.size() == 3) {
        return static_cast<int>(tensor.shape.front());
      }
    }
    return 0;
  }

  void add_importance(const Recipe& recipe) {
    if (options_.importance.empty()) {
      require(
          !needs_importance(recipe),
          ErrorCode::kInvalidArgument,
          "type {} needs an importance matrix: expected --imatrix FILE",
          recipe_name(recipe)
      );
      return;
    }
    const ImportanceFile file = read_imatrix(options_.importance);
    std::size_t found = 0;
    for (ExportTensor& tensor : tensors_) {
      const auto entry = file.entries.find(tensor.file.name);
      if (entry == file.entries.end()) {
        continue;
      }
      const std::int64_t experts = tensor.shape.size() == 3 ? tensor.shape.front() : 1;
      const auto expected = static_cast<std::size_t>(experts * tensor.columns());
      require(
          entry->second.sums.size() == expected,
          ErrorCode::kCorruptData,
          "{}: {} has {} numbers, expected {} as the model's tensor",
          quote_path(options_.importance),
          quote(tensor.file.name),
          entry->second.sums.size(),
          expected
      );
      tensor.importance = entry->second.means();
      found += 1;
    }
    require(
        found > 0,
        ErrorCode::kCorruptData,
        "{}: none of its {} entries is a tensor of this model",
        quote_path(options_.importance),
        file.entries.size()
    );
  }

  std::vector<PlannedBlocks> planned() {
    std::vector<PlannedBlocks> planned;
    for (const ExportTensor& tensor : tensors_) {
      planned.push_back({tensor.file.name, tensor.type, tensor.shape});
      const bool has_blocks = !plain_dtype(tensor.type);
      report_.tensors += 1;
      report_.parameters += tensor.elements();
      report_.quantized += has_blocks ? 1 : 0;
      report_.dequantized += tensor.step.codes && !has_blocks ? 1 : 0;
      rounded_ += tensor.step.codes && has_blocks ? 1 : 0;
    }
    return planned;
  }

  std::vector<RowSlice> slices() const {
    std::vector<RowSlice> slices;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::int64_t rows = tensors_[i].rows();
      const std::int64_t step = std::max<std::int64_t>(1, kSliceValues / tensors_[i].columns());
      for (std::int64_t first = 0; first < rows; first += step) {
        slices.push_back({.index = i, .first = first, .count = std::min(step, rows - first)});
      }
    }
    return slices;
  }

  void run(GgufWriter& writer) {
    const std::vector<RowSlice> all = slices();
    std::vector<std::atomic<std::int64_t>> left(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      left[i] = tensors_[i].rows();
    }
    std::mutex mutex;  // Guards `done` and the callback.
    std::int64_t done = 0;
    kernels::thread_pool().run(static_cast<int>(all.size()), [&](int number) {
      const RowSlice& slice = all[static_cast<std::size_t>(number)];
      const ExportTensor& tensor = tensors_[slice.index];
      write_slice(slice, writer);
      const std::int64_t rows_left = left[slice.index] -= slice.count;
      if (rows_left == 0) {
        release(tensor);
      }
      const std::lock_guard lock(mutex);
      done += slice.count * tensor.columns();
      if (options_.progress) {
        options_.progress(done, report_.parameters);
      }
    });
  }

  void write_slice(const RowSlice& slice, GgufWriter& writer) const {
    const ExportTensor& tensor = tensors_[slice.index];
    const std::size_t row_bytes = tensor.row_bytes();
    std::vector<std::byte> bytes(static_cast<std::size_t>(slice.count) * row_bytes);
    RowEncoder encoder(tensor, source_.made.get());
    for (std::int64_t i = 0; i < slice.count; ++i) {
      encoder.encode(slice.first + i, bytes.data() + static_cast<std::size_t>(i) * row_bytes);
    }
    writer.write(slice.index, static_cast<std::size_t>(slice.first) * row_bytes, bytes);
  }

  // Frees the pages of the source.
  static void release(const ExportTensor& tensor) {
    for (const ModelTensor* one :
         {&tensor.step.source,
          tensor.step.scales ? &*tensor.step.scales : nullptr,
          tensor.step.biases ? &*tensor.step.biases : nullptr}) {
      for (const Tensor& part : one != nullptr ? one->parts : std::vector<Tensor>()) {
        if (part.release) {
          part.release();
        }
      }
    }
  }

  void add_warnings() {
    report_.warnings = source_.warnings;
    const auto& planned = conversion_.report().warnings;
    report_.warnings.insert(report_.warnings.end(), planned.begin(), planned.end());
    report_.warnings.insert(report_.warnings.end(), notes_.begin(), notes_.end());
    if (rounded_ > 0) {
      report_.warnings.push_back(fmt::format(
          "{} quantized weight{} rounded once more", rounded_, rounded_ == 1 ? " is" : "s are"
      ));
    }
    if (drafting_ > 0) {
      report_.warnings.push_back(
          fmt::format("{} tensors of a head that drafts tokens are not written", drafting_)
      );
    }
  }

  const GgufOptions& options_;
  const std::filesystem::path path_;
  const ConvertOptions as_floats_ = float_options();
  ConversionSource source_;
  Conversion conversion_;
  std::vector<TensorStep> steps_;
  std::vector<ExportTensor> tensors_;  // In the file's order.
  ConvertReport report_;
  std::vector<std::string> notes_;
  std::size_t rounded_ = 0;   // Tensors that were blocks or codes already.
  std::size_t drafting_ = 0;  // Tensors that are left out.
};

}  // namespace

void check_new_file(const std::filesystem::path& target) {
  std::error_code ignored;
  require(
      !std::filesystem::exists(target, ignored),
      ErrorCode::kInvalidArgument,
      "{} exists already, expected the name of a new file",
      quote_path(target)
  );
}

ConvertReport export_gguf(
    const std::filesystem::path& source,
    const std::filesystem::path& target,
    const GgufOptions& options
) {
  check_new_file(target);
  return GgufExport(source, options).write(target);
}

}  // namespace saker::load::gguf
