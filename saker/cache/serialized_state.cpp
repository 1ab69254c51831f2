// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/serialized_state.h"

#include "saker/base/error.h"
#include "saker/cache/host_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

// Converts our axes to those of files, and back.
mx::array exchanged(const mx::array& array) {
  return array.ndim() < 3 ? array : mx::swapaxes(array, -1, -2);
}

}  // namespace

SerializedCache serialize_state(const RecurrentCache& layer) {
  SerializedCache serialized;
  serialized.kind = layer.kind();
  std::vector<std::size_t> present;
  if (!layer.is_empty()) {
    for (const mx::array& array : layer.state()) {
      serialized.state.push_back(to_tensor(mx::expand_dims(exchanged(array), 0)));
    }
    present.resize(layer.state().size());
    std::iota(present.begin(), present.end(), std::size_t{0});
  }
  serialized.meta = {
      fmt::to_string(layer.state().size()), fmt::format("{}", fmt::join(present, ",")), "", ""
  };
  return serialized;
}

void restore_state(RecurrentCache& layer, const SerializedCache& serialized, std::int64_t offset) {
  check_serialized(serialized);
  require(
      serialized.kind == "ArraysCache" || serialized.kind == "MambaCache",
      ErrorCode::kInvalidArgument,
      "got a {}, expected an {}",
      serialized.kind,
      layer.kind()
  );
  require(
      serialized.state.empty() == (offset == 0),
      ErrorCode::kCorruptData,
      "{} arrays of a state after {} rows",
      serialized.state.size(),
      offset
  );
  if (offset == 0) {
    layer.trim(layer.offset());
    return;
  }
  const SlotLayout layout = slot_layout(serialized.meta, serialized.state.size());
  require(
      layout.slots == layer.state().size() && layout.present.size() == layout.slots,
      ErrorCode::kInvalidArgument,
      "{} of {} arrays of a state, expected {}",
      layout.present.size(),
      layout.slots,
      layer.state().size()
  );
  RecurrentState state;
  for (std::size_t i = 0; i < serialized.state.size(); ++i) {
    const mx::Shape expected = mx::expand_dims(exchanged(layer.state()[i]), 0).shape();
    const mx::array array = to_array(serialized.state[i]);
    require(
        array.shape() == expected,
        ErrorCode::kInvalidArgument,
        "array {} of a state has shape [{}], expected [{}]",
        i,
        fmt::join(array.shape(), ", "),
        fmt::join(expected, ", ")
    );
    const auto rows = exchanged(mx::squeeze(array, 0));
    state.push_back(mx::contiguous(mx::astype(rows, mx::float32)));
  }
  layer.assign_state(offset, std::move(state));
}

}  // namespace saker::cache
