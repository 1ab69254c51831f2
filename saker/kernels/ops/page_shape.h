// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/kernels/cpu/dispatch/attend_bodies.h"
#include "saker/kernels/layout/lanes.h"
#include "saker/kernels/storage/kv_pages.h"

namespace saker::kernels {

// How `heads` heads attend to pages of a cache. See AttendOptions (attend.h) for scale and softcap.
inline AttendShape attend_shape(const KvPages& pages, int heads, float scale, float softcap) {
  const KvPageLayout& layout = pages.layout();
  const KvPageLayout& first = pages.layout(0);
  AttendShape shape{};
  shape.heads = heads;
  shape.group = heads / layout.kv_heads;
  shape.head_dim = layout.head_dim;
  shape.query_stride = (layout.head_dim + 31) / 32 * 32;
  shape.value_head_dim = layout.value_head_dim;
  shape.value_chunks = (layout.value_head_dim + kLanes - 1) / kLanes;
  shape.bf16 = layout.bf16;
  shape.values_in_keys = layout.values_in_keys;
  shape.key_codes = layout.key_codes;
  shape.value_codes = layout.value_codes;
  shape.head_bytes = layout.head_bytes;
  shape.key_bytes = layout.key_bytes;
  shape.first_head_bytes = first.head_bytes;
  shape.first_key_bytes = first.key_bytes;
  shape.scale = scale;
  shape.softcap = softcap;
  return shape;
}

}  // namespace saker::kernels
