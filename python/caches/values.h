// SPDX-License-Identifier: Apache-2.0
#pragma once

// Python values of caches: masks, lists of integers, and the state tuples of mlx-lm 0.32.2.
// Threading: with the GIL.

#include "saker/base/error.h"
#include "saker/caches/cache.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <string_view>
#include <vector>

namespace saker::python {

using CachePtr = std::shared_ptr<caches::Cache>;

// None, "causal" or an array.
nanobind::object mask_object(const caches::Mask& mask);

// Integers of a sequence or of a one-dimensional array. Throws TypeError beginning with `what`.
std::vector<int> integers(nanobind::handle values, std::string_view what);
// As above; None is empty.
std::vector<int> integers_or_none(nanobind::handle values, std::string_view what);
// int32 [n]
mx::array positions(const std::vector<int>& values);

// The state tuple of mlx-lm's class of this name.
nanobind::object state_of(const caches::Cache& cache);
// A cache of that class with this state. Throws kCorruptData for another form, kUnsupported for an
// unknown class.
CachePtr from_state_of(std::string_view class_name, nanobind::handle state);

// Throws kInvalidArgument for None among the caches.
template <typename Pointer>
void check_no_none(const std::vector<Pointer>& caches) {
  for (const Pointer& cache : caches) {
    require(cache != nullptr, ErrorCode::kInvalidArgument, "None among the caches");
  }
}

// As above, and if there are no caches.
template <typename Pointer>
void check_caches(const std::vector<Pointer>& caches) {
  require(!caches.empty(), ErrorCode::kInvalidArgument, "no caches, expected one or more");
  check_no_none(caches);
}

}  // namespace saker::python
