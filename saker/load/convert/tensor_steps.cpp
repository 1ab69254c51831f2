// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/tensor_steps.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/convert/step_values.h"
#include "saker/load/convert/weighted_affine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;

// Values of a slice, and of a block, which stays in L1. Multiples of all groups.
constexpr std::int64_t kSlice = 1 << 20;
constexpr std::size_t kBlock = 4096;
// Bytes that are made for a slice, or one row if that is more.
constexpr std::size_t kMadeBytes = std::size_t{4} << 20;

// A step's run that one thread converts at a time.
struct Slice : StepRun {
  // Index of the first value in the whole tensor.
  std::size_t place() const {
    return static_cast<std::size_t>(
        static_cast<std::int64_t>(part) * step->part_elements() + begin
    );
  }
};

// Calls body(first, count) for the blocks of a slice.
template <typename Body>
void for_blocks(std::size_t count, Body&& body) {
  for (std::size_t first = 0; first < count; first += kBlock) {
    body(first, std::min(kBlock, count - first));
  }
}

class SliceRun {
 public:
  SliceRun(const Slice& slice, const importers::PlaceholderTensors* made, ModelWriter& writer)
      : slice_(slice),
        source_(slice, made),
        step_(*slice.step),
        writer_(writer),
        count_(static_cast<std::size_t>(slice.count)) {}

  void run() {
    switch (step_.kind) {
      case StepKind::kCopy:
        return copy();
      case StepKind::kCast:
        return cast();
      case StepKind::kEncode:
      case StepKind::kRecode:
        return encode();
      case StepKind::kDecode:
        return decode();
    }
  }

 private:
  void copy() {
    const std::size_t size = dtype_size(step_.source.dtype());
    const auto* from =
        source_.bytes_at(step_.source, static_cast<std::size_t>(slice_.begin) * size);
    writer_.write(step_.output, slice_.place() * size, {from, count_ * size});
  }

  void cast() {
    const std::size_t size = dtype_size(step_.dtype);
    std::vector<std::byte> out(count_ * size);
    for_blocks(count_, [&](std::size_t first, std::size_t count) {
      source_.read(first, count, step_.dtype, values_.data());
      multiply_rows(first, count);
      add_offset(count);
      loops_.narrow(values_.data(), step_.dtype, count, out.data() + first * size);
    });
    writer_.write(step_.output, slice_.place() * size, out);
  }

  // Adds it as arithmetic in the source's dtype does.
  void add_offset(std::size_t count) {
    if (step_.source.offset == 0.0F) {
      return;
    }
    for (float& value : std::span(values_).first(count)) {
      value += step_.source.offset;
    }
    round(step_.source.dtype(), count);
  }

  // As arithmetic in the source's dtype does.
  void multiply_rows(std::size_t first, std::size_t count) {
    const models::RowFactors& factors = step_.source.row_factors;
    if (factors.is_one()) {
      return;
    }
    const DType dtype = step_.source.dtype();
    const float all = rounded(factors.all, dtype);
    const auto columns = static_cast<std::size_t>(step_.columns());
    const std::size_t begin = static_cast<std::size_t>(slice_.begin) + first;
    float factor = all;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t element = begin + i;
      if (!factors.rows.empty() && (i == 0 || element % columns == 0)) {
        factor = rounded(all * rounded(factors.rows.at(element / columns), dtype), dtype);
      }
      values_[i] *= factor;
    }
    round(dtype, count);
  }

  float rounded(float value, DType dtype) const {
    std::array<std::byte, sizeof(float)> bytes;
    loops_.narrow(&value, dtype, 1, bytes.data());
    loops_.widen(bytes.data(), dtype, 1, &value);
    return value;
  }

  void round(DType dtype, std::size_t count) {
    std::array<std::byte, kBlock * sizeof(float)> rounded;
    loops_.narrow(values_.data(), dtype, count, rounded.data());
    loops_.widen(rounded.data(), dtype, count, values_.data());
  }

  void encode() {
    const WeightFormat& format = step_.format;
    const auto scales_of = [&](std::size_t count) {
      return scale_bytes(format, step_.dtype, count);
    };
    const bool affine = format.kind == WeightKind::kAffine;
    std::vector<std::byte> codes(code_bytes(format, count_));
    std::vector<std::byte> scales(scales_of(count_));
    std::vector<std::byte> biases(affine ? scales.size() : 0);
    for_blocks(count_, [&](std::size_t first, std::size_t count) {
      const DType dtype = step_.codes ? step_.decoded : step_.source.dtype();
      source_.read(first, count, dtype, values_.data());
      if (step_.codes) {
        round(dtype, count);
      } else {
        multiply_rows(first, count);
      }
      if (dtype != step_.dtype) {
        round(step_.dtype, count);
      }
      const kernels::QuantizedBytes to{
          .codes = codes.data() + code_bytes(format, first),
          .scales = scales.data() + scales_of(first),
          .biases = affine ? biases.data() + scales_of(first) : nullptr,
      };
      if (step_.importance.empty()) {
        loops_.encode(format, step_.dtype, values_.data(), count, to);
      } else {
        encode_by_importance(first, count, to);
      }
    });
    writer_.write(step_.output, code_bytes(format, slice_.place()), codes);
    writer_.write(step_.output + 1, scales_of(slice_.place()), scales);
    if (affine) {
      writer_.write(step_.output + 2, scales_of(slice_.place()), biases);
    }
  }

  void encode_by_importance(
      std::size_t first, std::size_t count, const kernels::QuantizedBytes& to
  ) {
    const WeightFormat& format = step_.format;
    const auto group = static_cast<std::size_t>(format.group_size);
    const auto columns = static_cast<std::size_t>(step_.columns());
    const std::size_t experts = step_.importance.size() / columns;
    const std::size_t expert_size = static_cast<std::size_t>(step_.elements()) / experts;
    for (std::size_t i = 0; i < count; i += group) {
      const std::size_t place = slice_.place() + first + i;
      const std::size_t of_expert = place / expert_size * columns;
      encode_weighted(
          format,
          step_.dtype,
          std::span(values_).subspan(i, group),
          step_.importance.subspan(of_expert + place % columns, group),
          {.codes = to.codes + code_bytes(format, i),
           .scales = to.scales + scale_bytes(format, step_.dtype, i),
           .biases = to.biases + scale_bytes(format, step_.dtype, i)}
      );
    }
  }

  void decode() {
    const std::size_t size = dtype_size(step_.dtype);
    std::vector<std::byte> out(count_ * size);
    for_blocks(count_, [&](std::size_t first, std::size_t count) {
      source_.read(first, count, step_.dtype, values_.data());
      loops_.narrow(values_.data(), step_.dtype, count, out.data() + first * size);
    });
    writer_.write(step_.output, slice_.place() * size, out);
  }

  const kernels::QuantizeLoops& loops_ = kernels::quantize_loops();
  const Slice& slice_;
  StepValues source_;
  const TensorStep& step_;
  ModelWriter& writer_;
  std::size_t count_;
  std::array<float, kBlock> values_;
};

// One part of a step: its pages are freed with its last slice.
class PartPages {
 public:
  PartPages(const TensorStep& step, std::size_t part, int slices)
      : step_(&step), part_(part), left_(slices) {}

  void finish_slice() {
    if (--left_ > 0) {
      return;
    }
    release(&step_->source);
    release(step_->scales ? &*step_->scales : nullptr);
    release(step_->biases ? &*step_->biases : nullptr);
  }

 private:
  void release(const ModelTensor* tensor) const {
    if (tensor != nullptr && tensor->parts[part_].release) {
      tensor->parts[part_].release();
    }
  }

  const TensorStep* step_;
  std::size_t part_;
  std::atomic<int> left_;
};

// All slices in the order of the tensors, and each slice's part.
struct Work {
  std::vector<Slice> slices;
  std::vector<PartPages*> pages;
  std::vector<std::unique_ptr<PartPages>> parts;
  std::int64_t elements = 0;
};

// Number of values in a slice of the step: whole rows if they are made.
std::int64_t slice_size(const TensorStep& step, const importers::PlaceholderTensors* made) {
  std::int64_t size = kSlice;
  for (const auto* tensor : {&step.source, step.scales ? &*step.scales : nullptr}) {
    const auto source =
        made != nullptr && tensor != nullptr ? made->find(tensor->parts.front()) : std::nullopt;
    if (!source || step.part_elements() == 0) {
      continue;
    }
    const std::int64_t row = step.part_elements() / source->tensor->rows;
    const std::size_t bytes = std::max<std::size_t>(source->tensor->row_bytes(source->output), 1);
    const auto fitting = static_cast<std::int64_t>(kMadeBytes / bytes) * row;
    size = std::max(std::min(size, fitting) / row, std::int64_t{1}) * row;
  }
  return size;
}

Work cut(const std::vector<TensorStep>& steps, const importers::PlaceholderTensors* made) {
  Work work;
  for (const TensorStep& step : steps) {
    const std::int64_t elements = step.part_elements();
    const std::int64_t size = slice_size(step, made);
    const auto slices = static_cast<int>((elements + size - 1) / size);
    for (std::size_t part = 0; part < step.source.parts.size(); ++part) {
      work.parts.push_back(std::make_unique<PartPages>(step, part, slices));
      for (std::int64_t begin = 0; begin < elements; begin += size) {
        work.slices.push_back(
            {{.step = &step, .part = part, .begin = begin, .count = std::min(size, elements - begin)
            }}
        );
        work.pages.push_back(work.parts.back().get());
      }
    }
    work.elements += step.elements();
  }
  return work;
}

// "P.weight" -> "P.scales"
std::string sibling(const std::string& name, std::string_view leaf) {
  return name.substr(0, name.rfind('.') + 1).append(leaf);
}

}  // namespace

std::int64_t TensorStep::part_elements() const {
  const std::int64_t stored = source.parts.front().element_count();
  return codes ? stored * 32 / codes->bits : stored;
}

std::int64_t TensorStep::elements() const {
  return part_elements() * static_cast<std::int64_t>(source.parts.size());
}

std::int64_t TensorStep::columns() const {
  const std::int64_t stored = source.shape().back();
  return codes ? stored * 32 / codes->bits : stored;
}

std::vector<PlannedTensor> outputs_of(const TensorStep& step) {
  auto shape = step.source.shape();
  switch (step.kind) {
    case StepKind::kCopy:
      return {{step.source.name, step.source.dtype(), std::move(shape)}};
    case StepKind::kCast:
      return {{step.source.name, step.dtype, std::move(shape)}};
    case StepKind::kDecode:
      shape.back() = shape.back() * 32 / step.codes->bits;
      return {{step.source.name, step.dtype, std::move(shape)}};
    case StepKind::kRecode:
      shape.back() = shape.back() * 32 / step.codes->bits;
      break;
    case StepKind::kEncode:
      break;
  }
  const bool affine = step.format.kind == WeightKind::kAffine;
  auto groups = shape;
  groups.back() /= step.format.group_size;
  shape.back() = shape.back() * step.format.bits / 32;
  std::vector<PlannedTensor> outputs = {
      {step.source.name, DType::kUInt32, std::move(shape)},
      {sibling(step.source.name, "scales"), affine ? step.dtype : DType::kUInt8, groups},
  };
  if (affine) {
    outputs.push_back({sibling(step.source.name, "biases"), step.dtype, groups});
  }
  return outputs;
}

void run_steps(
    const std::vector<TensorStep>& steps,
    const importers::PlaceholderTensors* made,
    ModelWriter& writer,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress
) {
  const Work work = cut(steps, made);
  std::mutex mutex;  // Guards the variables below.
  std::int64_t done = 0;
  kernels::thread_pool().run(static_cast<int>(work.slices.size()), [&](int index) {
    const Slice& slice = work.slices[static_cast<std::size_t>(index)];
    SliceRun(slice, made, writer).run();
    work.pages[static_cast<std::size_t>(index)]->finish_slice();
    const std::lock_guard lock(mutex);
    done += slice.count;
    if (progress) {
      progress(done, work.elements);
    }
  });
}

}  // namespace saker::load
