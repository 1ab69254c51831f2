// SPDX-License-Identifier: Apache-2.0
// Any bytes as an archive of NumPy's arrays, and as one array: a typed error, or numbers that are
// all there.
#include "saker/base/error.h"
#include "saker/base/tensor.h"
#include "saker/load/files/npz.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace {

unsigned read_all(const saker::Tensor& tensor) {
  unsigned sum = 0;
  for (const std::byte byte : tensor.bytes()) {
    sum += std::to_integer<unsigned>(byte);
  }
  return sum;
}

const std::filesystem::path& archive() {
  static const auto path = std::filesystem::temp_directory_path() /
                           ("saker-fuzz-" + std::to_string(::getpid()) + ".npz");
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  volatile unsigned sum = 0;
  try {
    const auto file = std::make_shared<const std::vector<std::byte>>(bytes, bytes + size);
    sum = sum + read_all(saker::load::parse_npy(file, "fuzz"));
  } catch (const saker::Error&) {  // NOLINT(bugprone-empty-catch): expected of most inputs.
  }
  std::ofstream(archive(), std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    for (const auto& [name, tensor] : saker::load::read_npz(archive())) {
      sum = sum + read_all(tensor);
    }
  } catch (const saker::Error&) {  // NOLINT(bugprone-empty-catch): the same.
  }
  return 0;
}
