// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/measures/backend_facts.h"

#include "saker/kernels/mx.h"

#include <exception>
#include <string>
#include <variant>

namespace saker::engine {
namespace {

// A GPU whose driver fails is none.
std::string gpu_name() {
  try {
    if (!mx::is_available(mx::Device::gpu)) {
      return {};
    }
    const auto& facts = mx::device_info(mx::Device::gpu);
    const auto found = facts.find("device_name");
    const auto* name = found == facts.end() ? nullptr : std::get_if<std::string>(&found->second);
    return name == nullptr ? "a GPU" : *name;
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

BackendFacts backend_facts() {
  return {.mlx_version = mx::version(), .gpu = gpu_name()};
}

}  // namespace saker::engine
