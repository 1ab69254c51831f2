// SPDX-License-Identifier: Apache-2.0
#include "saker/load/model_fingerprint.h"

#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace saker::load {
namespace {

using testing::RawTensor;
using testing::safetensors_file;
using testing::TemporaryDir;

constexpr std::size_t kBytes = std::size_t{9} << 20;  // More than one piece.

RawTensor large(std::size_t changed_at = kBytes) {
  std::string bytes(kBytes, '\1');
  if (changed_at < kBytes) {
    bytes[changed_at] = '\2';
  }
  return {"model.a", "U8", {static_cast<std::int64_t>(kBytes)}, bytes};
}

RawTensor small() {
  return {"model.b", "U8", {3}, "abc"};
}

ModelFingerprint of(const std::vector<RawTensor>& tensors, std::string_view config = "{}") {
  const TemporaryDir dir;
  dir.write("config.json", config);
  dir.write("model.safetensors", safetensors_file(tensors));
  return fingerprint(dir.path());
}

TEST(ModelFingerprint, SeesEveryByte) {
  const auto known = of({large(), small()});
  EXPECT_EQ(of({large(), small()}), known);
  for (const std::size_t at : {std::size_t{0}, std::size_t{70}, kBytes / 2 + 1, kBytes - 1}) {
    EXPECT_NE(of({large(at), small()}).weights, known.weights) << at;
    EXPECT_EQ(of({large(at), small()}).config, known.config);
  }
}

TEST(ModelFingerprint, IsThatOfCopiesAndOtherFiles) {
  const auto known = of({large(), small()});
  const TemporaryDir dir;
  dir.write("config.json", "{}");
  dir.write("model-00001-of-00002.safetensors", safetensors_file({small()}));
  dir.write("model-00002-of-00002.safetensors", safetensors_file({large()}));
  EXPECT_EQ(fingerprint(dir.path()), known);
}

TEST(ModelFingerprint, SeesNamesShapesAndConfiguration) {
  const auto known = of({small()});
  RawTensor other = small();
  other.name = "model.c";
  EXPECT_NE(of({other}).weights, known.weights);
  other = small();
  other.shape = {1, 3};
  EXPECT_NE(of({other}).weights, known.weights);
  other = small();
  other.dtype = "I8";
  EXPECT_NE(of({other}).weights, known.weights);
  EXPECT_NE(of({small()}, R"({"rope_theta": 1})").config, known.config);
  EXPECT_EQ(of({small()}, R"({"b": 1, "a": 2})"), of({small()}, R"({"a": 2, "b": 1})"));
}

}  // namespace
}  // namespace saker::load
