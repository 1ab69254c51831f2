// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/recurrent.h"

#include "saker/base/error.h"
#include "saker/cache/recurrent_snapshot.h"

#include <algorithm>
#include <new>
#include <utility>

namespace saker::cache {
namespace {

bool same_shapes(const RecurrentState& a, const RecurrentState& b) {
  return std::ranges::equal(a, b, [](const mx::array& x, const mx::array& y) {
    return x.shape() == y.shape() && x.dtype() == y.dtype();
  });
}

std::size_t bytes_of(const RecurrentState& state) {
  std::size_t total = 0;
  for (const mx::array& array : state) {
    total += array.nbytes();
  }
  return total;
}

[[noreturn]] void refuse_attention() {
  throw Error(ErrorCode::kInternal, "[RecurrentCache] a recurrent layer has no rows to attend to");
}

mx::array read_array(const BlockSource& blocks, const mx::array& like) {
  mx::array result(mx::allocator::malloc(like.nbytes()), like.shape(), like.dtype());
  blocks.read({result.data<std::byte>(), like.nbytes()});
  return result;
}

}  // namespace

HeldState held_state(RecurrentState state) {
  auto bytes = std::make_shared<const kernels::HeldBytes>(bytes_of(state));
  return {std::move(state), std::move(bytes)};
}

RecurrentCache::RecurrentCache(RecurrentState empty)
    : empty_(std::move(empty)), state_(held_state(empty_)) {}

void RecurrentCache::advance(int row_count, RecurrentState state, Replay replay) {
  require(
      row_count > 0 && same_shapes(state, empty_),
      ErrorCode::kInternal,
      "[RecurrentCache] a state of other shapes after {} rows",
      row_count
  );
  offset_ += row_count;
  state_ = held_state(std::move(state));
  if (open_) {
    open_->steps.push_back({offset_, state_, std::move(replay)});
  }
}

void RecurrentCache::assign_state(std::int64_t offset, RecurrentState state) {
  require(
      offset >= 0 && same_shapes(state, empty_),
      ErrorCode::kInvalidArgument,
      "[RecurrentCache] a state of other shapes at offset {}",
      offset
  );
  mx::eval(state);
  offset_ = offset;
  state_ = held_state(std::move(state));
}

KeyValues RecurrentCache::update(const mx::array& /*keys*/, const mx::array& /*values*/) {
  refuse_attention();
}

kernels::AttendSpan RecurrentCache::append(int /*first_row*/, int /*row_count*/) {
  refuse_attention();
}

std::int64_t RecurrentCache::trim(std::int64_t count) {
  if (count <= 0 || !can_trim(count)) {
    return 0;
  }
  state_ = held_state(empty_);
  return std::exchange(offset_, 0);
}

void RecurrentCache::clear() {
  require(!open_, ErrorCode::kInternal, "[RecurrentCache] clear inside of a transaction");
  state_ = held_state(empty_);
  offset_ = 0;
}

std::size_t RecurrentCache::nbytes() const {
  return bytes_of(state_.arrays);
}

std::unique_ptr<LayerCache> RecurrentCache::copy() const {
  auto result = std::make_unique<RecurrentCache>(empty_);
  result->state_ = state_;
  result->offset_ = offset_;
  result->open_ = open_;
  return result;
}

LayerSnapshotPtr RecurrentCache::snapshot(std::int64_t from) const {
  from = std::max<std::int64_t>(from, 0);
  const std::int64_t position = open_ ? open_->start : offset_;
  if (from >= position) {
    return nullptr;
  }
  return std::make_shared<RecurrentSnapshot>(
      RecurrentSnapshot::States{{position, open_ ? open_->state : state_}}, from, position
  );
}

LayerSnapshotPtr RecurrentCache::snapshot_of(
    const BlockSource& blocks, std::int64_t first, std::int64_t last
) const {
  RecurrentSnapshot::States states;
  const auto arrays = static_cast<std::int64_t>(empty_.size());
  std::size_t filled = 0;
  std::int64_t next = 0;  // Lowest valid index: no array comes twice.
  try {
    for (const BlockSource::Block& block : blocks.blocks) {
      const std::int64_t position = block.index / arrays;
      require(
          block.index >= next && position > first && position <= last,
          ErrorCode::kCorruptData,
          "[RecurrentCache] array {} at {}, expected one after the last, in ({}, {}]",
          block.index,
          position,
          first,
          last
      );
      next = block.index + 1;
      const auto array = static_cast<std::size_t>(block.index % arrays);
      require(
          block.bytes == empty_[array].nbytes(),
          ErrorCode::kCorruptData,
          "[RecurrentCache] {} bytes of a state, expected {}",
          block.bytes,
          empty_[array].nbytes()
      );
      const auto place = states.try_emplace(position, held_state(empty_)).first;
      place->second.arrays[array] = read_array(blocks, empty_[array]);
      ++filled;
    }
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kCapacity, "[RecurrentCache] no memory for a state");
  }
  const auto held = std::ranges::count_if(empty_, [](const auto& x) { return x.size() > 0; });
  require(
      filled == states.size() * static_cast<std::size_t>(held),
      ErrorCode::kCorruptData,
      "[RecurrentCache] {} arrays of {} states",
      filled,
      states.size()
  );
  return std::make_shared<RecurrentSnapshot>(std::move(states), first, last);
}

std::int64_t RecurrentCache::reach(const LayerSnapshot& rows, std::int64_t target) const {
  const auto* snapshot = dynamic_cast<const RecurrentSnapshot*>(&rows);
  const auto* found = snapshot != nullptr ? snapshot->find(target) : nullptr;
  return found != nullptr ? found->first : -1;
}

bool RecurrentCache::restore(const LayerSnapshot* rows, std::int64_t target) {
  const auto* snapshot = dynamic_cast<const RecurrentSnapshot*>(rows);
  const auto* found = snapshot != nullptr ? snapshot->find(target) : nullptr;
  if (found != nullptr && found->first == target && same_shapes(found->second.arrays, empty_)) {
    state_ = found->second;
    offset_ = target;
    return true;
  }
  if (rows == nullptr && target == 0) {
    clear();
  }
  return rows == nullptr && target == offset_;
}

void RecurrentCache::begin() {
  open_ = Transaction{offset_, state_, {}};
}

bool RecurrentCache::can_commit(std::int64_t count) const {
  if (!open_) {
    return true;
  }
  const std::int64_t target = open_->start + count;
  const auto after =
      std::ranges::find_if(open_->steps, [&](const Step& step) { return step.end >= target; });
  return count == 0 || (after != open_->steps.end() && (after->end == target || after->replay));
}

void RecurrentCache::commit(std::int64_t count) {
  if (!open_) {
    return;
  }
  count = std::clamp<std::int64_t>(count, 0, offset_ - open_->start);
  require(can_commit(count), ErrorCode::kInternal, "[RecurrentCache] commit of {} rows", count);
  Transaction done = *std::exchange(open_, std::nullopt);
  offset_ = done.start + count;
  state_ = done.state;
  std::int64_t before = done.start;
  for (const Step& step : done.steps) {
    if (step.end >= offset_) {
      if (step.end == offset_) {
        state_ = step.state;
      } else if (offset_ > before) {
        const Replay replay = step.replay;
        done.steps.clear();  // At most two states are held.
        state_ = held_state(replay(static_cast<int>(offset_ - before)));
      }
      mx::eval(state_.arrays);
      break;
    }
    before = step.end;
  }
}

void RecurrentCache::roll_back() {
  if (open_) {
    offset_ = open_->start;
    state_ = open_->state;
    open_.reset();
  }
}

}  // namespace saker::cache
