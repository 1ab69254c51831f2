// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_parts.h"

#include "saker/base/error.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/model_fingerprint.h"

#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

namespace fs = std::filesystem;

using saker::testing::expect_error;
using saker::testing::GgufBuilder;
using saker::testing::TemporaryDir;

fs::path golden() {
  return fs::path(SAKER_SOURCE_DIR) / "tests/golden/gguf";
}

// A part with one tensor of its own name.
GgufBuilder part(std::uint32_t number, std::uint32_t count, std::string_view tensor) {
  GgufBuilder builder;
  builder.integer("split.no", number).integer("split.count", count);
  builder.tensor(tensor, {8}, 0, std::string(32, static_cast<char>('a' + number)));
  return builder;
}

// All parts of a model of three, "m-0000N-of-00003.gguf".
struct Model {
  TemporaryDir dir;
  std::vector<fs::path> paths;

  Model() {
    for (std::uint32_t i = 0; i < 3; ++i) {
      paths.push_back(write(i, part(i, 3, std::string(1, static_cast<char>('x' + i)))));
    }
  }

  fs::path write(std::uint32_t index, const GgufBuilder& builder) const {
    return dir.write("m-0000" + std::to_string(index + 1) + "-of-00003.gguf", builder.file());
  }

  void expect_corrupt(const std::vector<std::string_view>& words) const {
    for (const fs::path& path : paths) {
      expect_error(ErrorCode::kCorruptData, words, [&] { open_parts(path); });
    }
  }
};

// By the gguf package: the first part has keys and no tensors.
TEST(GgufParts, AnyPartNamesTheWholeModel) {
  const auto whole = open_gguf(golden() / "whole.gguf");
  const auto expected = importers::make_tensors(whole);
  ASSERT_EQ(expected.size(), 5);
  const auto known = fingerprint(golden() / "split-00001-of-00004.gguf");
  for (int i = 1; i <= 4; ++i) {
    const fs::path path = golden() / ("split-0000" + std::to_string(i) + "-of-00004.gguf");
    const auto model = open_gguf(path);
    EXPECT_EQ(model.config, whole.config);
    EXPECT_EQ(model.files, whole.files);
    const auto tensors = importers::make_tensors(model);
    ASSERT_EQ(tensors.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      EXPECT_TRUE(std::ranges::equal(tensors.at(name).bytes(), tensor.bytes())) << name;
    }
    EXPECT_EQ(fingerprint(path).weights, known.weights);
    EXPECT_EQ(fingerprint(path).config, known.config);
  }
}

TEST(GgufParts, TensorsKnowTheirPart) {
  const Model model;
  const auto joined = open_parts(model.paths[1]);
  ASSERT_EQ(joined.parts.size(), 3);
  ASSERT_EQ(joined.header.tensors.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const TensorEntry& entry = joined.header.tensors[i];
    EXPECT_EQ(entry.part, i);
    EXPECT_EQ(joined.parts[i].mapped->path(), model.paths[i]);
    EXPECT_EQ(static_cast<char>(joined.parts[i].bytes[entry.begin]), static_cast<char>('a' + i));
  }
}

TEST(GgufParts, ALinkedPartHasItsNeighboursBesideTheLink) {
  const Model model;
  const TemporaryDir links;  // As the hub's cache: names here, blobs elsewhere.
  for (std::size_t i = 0; i < 3; ++i) {
    const fs::path blob = model.dir.path() / ("blob" + std::to_string(i));
    fs::rename(model.paths[i], blob);
    fs::create_symlink(blob, links.path() / model.paths[i].filename());
  }
  EXPECT_EQ(open_parts(links.path() / "m-00002-of-00003.gguf").parts.size(), 3);
}

TEST(GgufParts, MissingPartsAreNamed) {
  const Model model;
  fs::remove(model.paths[0]);
  fs::remove(model.paths[1]);
  const std::vector<std::string_view> words = {
      "m-00003-of-00003.gguf", "missing: m-00001-of-00003.gguf, m-00002-of-00003.gguf"
  };
  expect_error(ErrorCode::kNotFound, words, [&] { open_parts(model.paths[2]); });
  // Of as many as keys can promise, a message names a few.
  const auto many = model.dir.write("m-00001-of-65535.gguf", part(0, 65535, "x").file());
  expect_error(ErrorCode::kNotFound, {"and 65531 more"}, [&] { open_parts(many); });
}

TEST(GgufParts, NamesMustBeThoseOfTheKeys) {
  const Model model;
  for (const char* name :
       {"m.gguf", "m-00002-of-00003.gguf", "m-00001-of-00004.gguf", "m-1.gguf"}) {
    const TemporaryDir dir;
    const auto path = dir.write(name, part(0, 3, "x").file());
    expect_error(
        ErrorCode::kCorruptData,
        {"part 1 of 3", "expected the name NAME-00001-of-00003.gguf"},
        [&] { open_parts(path); }
    );
  }
  // One file by its keys, whatever its name.
  EXPECT_EQ(open_parts(model.write(0, part(0, 1, "x"))).parts.size(), 1);
  EXPECT_EQ(open_parts(model.write(0, part(0, 0, "x"))).parts.size(), 1);
}

TEST(GgufParts, PartsMustBeThoseOfOneModel) {
  Model model;
  model.write(1, part(0, 3, "y"));
  expect_error(ErrorCode::kCorruptData, {"part 1 of 3, expected part 2 of 3"}, [&] {
    open_parts(model.paths[0]);
  });
  model.write(1, part(1, 4, "y"));
  expect_error(ErrorCode::kCorruptData, {"part 2 of 4, expected part 2 of 3"}, [&] {
    open_parts(model.paths[2]);
  });
  model.write(1, part(1, 3, "x"));
  model.expect_corrupt({"tensor 'x' is in both", "m-00001-of-00003.gguf", "m-00002-of-00003.gguf"});
  model.write(1, part(1, 3, "y").integer("split.tensors.count", 4));
  model.expect_corrupt({"m-00002", "'split.tensors.count' is 4, but the 3 parts have 3 tensors"});
  model.write(0, part(0, 3, "x").string("general.architecture", "llama"));
  model.write(1, part(1, 3, "y").string("general.architecture", "qwen2"));
  model.expect_corrupt({"'general.architecture' is 'qwen2', but 'llama' in"});
  model.write(1, part(1, 3, "y").string("split.no", "one"));
  for (const fs::path& path : model.paths) {
    expect_error(ErrorCode::kCorruptData, {"m-00002"}, [&] { open_parts(path); });
  }
  model.dir.write("m-00002-of-00003.gguf", "GGU");
  model.expect_corrupt({"m-00002"});
}

}  // namespace
}  // namespace saker::load::gguf
