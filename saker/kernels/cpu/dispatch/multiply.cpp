// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/multiply.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/product_cuts.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"

namespace saker::kernels {

void check_order(const LinearBodies& bodies, const PackedMatrix& weight) {
  require(
      weight.order == bodies.orders.of(weight.kind),
      ErrorCode::kInternal,
      "[linear] got a weight that was packed for another instruction set"
  );
}

void multiply_rows(const LinearBodies& bodies, std::span<const RowProduct> products) {
  // The stream's thread keeps these, so that passes do not fault in fresh pages each time.
  thread_local AlignedBytes prepared;
  thread_local Cuts kept;
  Cuts& work = kept;
  cut_products(bodies, products, work);
  if (work.rows == 0) {
    return;
  }
  prepared.reserve(work.prepared_bytes);
  work.place(prepared.data());
  prepare_rows(bodies, work, prepared.data());
  const int parts = thread_pool().size();
  thread_pool().run(work.tiles, [&](int turn) {
    const int index = tile_of_turn(turn, work.tiles, parts);
    const Cut& cut = work.of_tile(index);
    multiply_tile(bodies, cut, index - cut.first_tile);
  });
}

}  // namespace saker::kernels
