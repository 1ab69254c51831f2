// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/lazy_tensor.h"

#include "saker/kernels/cpu/runtime/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace saker::load::importers {
namespace {

// Bytes of a slice, or one row if that is more.
constexpr std::size_t kSliceBytes = std::size_t{1} << 20;

// Rows [first, first + count) of one tensor.
struct Slice {
  std::size_t tensor = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct Work {
  std::vector<Slice> slices;
  std::vector<std::atomic<int>> left;  // Remaining slices of each tensor.
  std::int64_t bytes = 0;

  explicit Work(std::size_t tensors) : left(tensors) {}
};

std::size_t bytes_per_row(const LazyTensor& tensor) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < tensor.outputs.size(); ++i) {
    bytes += tensor.row_bytes(i);
  }
  return bytes;
}

Work cut(const ImportedModel& model) {
  Work work(model.tensors.size());
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    const LazyTensor& tensor = model.tensors[i];
    const std::size_t row = std::max<std::size_t>(bytes_per_row(tensor), 1);
    const auto step = static_cast<std::int64_t>(std::max<std::size_t>(kSliceBytes / row, 1));
    for (std::int64_t first = 0; first < tensor.rows; first += step) {
      work.slices.push_back({i, first, std::min(step, tensor.rows - first)});
      ++work.left[i];
    }
    work.bytes += tensor.rows * static_cast<std::int64_t>(row);
  }
  return work;
}

// Calls body(slice) for all slices on all threads. The first exception stops the rest and is
// rethrown.
template <typename Body>
void run_slices(
    const ImportedModel& model,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress,
    Body&& body
) {
  Work work = cut(model);
  std::mutex mutex;  // Guards the variables below.
  std::int64_t done = 0;
  kernels::thread_pool().run(static_cast<int>(work.slices.size()), [&](int index) {
    const Slice& slice = work.slices[static_cast<std::size_t>(index)];
    const LazyTensor& tensor = model.tensors[slice.tensor];
    body(slice);
    if (--work.left[slice.tensor] == 0 && tensor.release) {
      tensor.release();
    }
    const std::lock_guard lock(mutex);
    done += slice.count * static_cast<std::int64_t>(bytes_per_row(tensor));
    if (progress) {
      progress(done, work.bytes);
    }
  });
}

// The index of each tensor's first output among all outputs.
std::vector<std::size_t> first_outputs(const ImportedModel& model) {
  std::vector<std::size_t> first;
  std::size_t next = 0;
  first.reserve(model.tensors.size());
  for (const LazyTensor& tensor : model.tensors) {
    first.push_back(next);
    next += tensor.outputs.size();
  }
  return first;
}

}  // namespace

std::size_t LazyTensor::row_bytes(std::size_t output) const {
  return outputs[output].nbytes() / static_cast<std::size_t>(rows);
}

std::vector<PlannedTensor> all_outputs(const ImportedModel& model) {
  std::vector<PlannedTensor> outputs;
  for (const LazyTensor& tensor : model.tensors) {
    outputs.insert(outputs.end(), tensor.outputs.begin(), tensor.outputs.end());
  }
  return outputs;
}

void write_tensors(
    const ImportedModel& model,
    ModelWriter& writer,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress
) {
  const auto first_output = first_outputs(model);
  run_slices(model, progress, [&](const Slice& slice) {
    const LazyTensor& tensor = model.tensors[slice.tensor];
    const auto count = static_cast<std::size_t>(slice.count);
    std::vector<std::vector<std::byte>> made;
    std::vector<std::byte*> places;
    places.reserve(tensor.outputs.size());
    for (std::size_t i = 0; i < tensor.outputs.size(); ++i) {
      places.push_back(made.emplace_back(tensor.row_bytes(i) * count).data());
    }
    tensor.make(slice.first, slice.count, places);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const std::size_t at = tensor.row_bytes(i) * static_cast<std::size_t>(slice.first);
      writer.write(first_output[slice.tensor] + i, at, made[i]);
    }
  });
}

TensorMap make_tensors(const ImportedModel& model) {
  TensorMap tensors;
  std::vector<std::byte*> data;
  for (const LazyTensor& tensor : model.tensors) {
    if (tensor.same) {
      tensors.insert_or_assign(tensor.outputs.front().name, *tensor.same);
      data.push_back(nullptr);
      continue;
    }
    for (const PlannedTensor& output : tensor.outputs) {
      const std::shared_ptr<std::byte[]> bytes(new std::byte[output.nbytes()]);
      data.push_back(bytes.get());
      tensors.insert_or_assign(
          output.name,
          Tensor{
              .dtype = output.dtype,
              .shape = output.shape,
              .data = std::shared_ptr<const std::byte>(bytes, bytes.get()),
              .release = {},
          }
      );
    }
  }
  const auto first_output = first_outputs(model);
  run_slices(model, {}, [&](const Slice& slice) {
    const LazyTensor& tensor = model.tensors[slice.tensor];
    if (tensor.same) {
      return;
    }
    std::vector<std::byte*> places;
    places.reserve(tensor.outputs.size());
    for (std::size_t i = 0; i < tensor.outputs.size(); ++i) {
      const std::size_t at = tensor.row_bytes(i) * static_cast<std::size_t>(slice.first);
      places.push_back(data[first_output[slice.tensor] + i] + at);
    }
    tensor.make(slice.first, slice.count, places);
  });
  return tensors;
}

}  // namespace saker::load::importers
