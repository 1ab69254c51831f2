// SPDX-License-Identifier: Apache-2.0
// Adapters of llama.cpp: the same weights as PEFT's folder, in the model's order, and refusals.
#include "saker/adapters/bind.h"
#include "saker/adapters/fuse.h"
#include "saker/adapters/model_fit.h"
#include "saker/adapters/null_adapter.h"
#include "saker/adapters/resized.h"
#include "saker/adapters/save.h"
#include "saker/base/numbered_name.h"
#include "saker/load/checkpoint.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/gguf/gguf_names.h"

#include "tests/adapters/logits.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace saker::adapters {
namespace {

using saker::testing::expect_error;
using saker::testing::GgufBuilder;
using saker::testing::run_alone;
using saker::testing::same_bits;
using saker::testing::TemporaryDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kF16 = 1;
constexpr std::uint32_t kQ80 = 8;
constexpr std::uint32_t kBF16 = 30;

constexpr std::string_view kUp = "layers.0.mlp.up_proj";

std::filesystem::path golden_dir() {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden";
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

GgufBuilder header(std::string_view architecture = "qwen2") {
  GgufBuilder builder;
  builder.string("general.architecture", architecture).string("general.type", "adapter");
  return builder.string("adapter.type", "lora").number("adapter.lora.alpha", 6.0F);
}

// A matrix as rows of columns.
void add(
    GgufBuilder& builder,
    std::string_view name,
    std::uint64_t rows,
    std::uint64_t columns,
    float value = 0.5F
) {
  builder.tensor(name, {columns, rows}, kF32, bytes_of(std::vector<float>(rows * columns, value)));
}

void add_pair(GgufBuilder& builder, const std::string& weight = "blk.0.ffn_up.weight") {
  add(builder, weight + ".lora_a", 2, 3);
  add(builder, weight + ".lora_b", 4, 2);
}

AdapterSource read(const GgufBuilder& builder) {
  const TemporaryDir dir;
  dir.write("a.gguf", builder.file());
  return read_adapter(dir.path() / "a.gguf");
}

// The name in llama.cpp's file: "layers.0.self_attn.q_proj" is "blk.0.attn_q".
std::string gguf_name(std::string_view module) {
  namespace gguf = load::gguf;
  if (const auto layer = numbered_name(module, "layers.")) {
    const auto* found =
        std::ranges::find(gguf::kLayerModules, layer->rest, &gguf::ModuleNames::ours);
    return fmt::format("blk.{}.{}.weight", layer->number, found->gguf);
  }
  return module == kEmbedding ? "token_embd.weight" : "output.weight";
}

// Rows as llama.cpp's converter writes those of queries and keys: rows i and i + head / 2 of a head
// become neighbours.
std::vector<float> in_pairs(const std::vector<float>& values, std::size_t rows, std::size_t head) {
  const std::size_t columns = values.size() / rows;
  std::vector<float> result;
  for (std::size_t first = 0; first < rows; first += head) {
    for (std::size_t i = 0; i < head; ++i) {
      const std::size_t from = first + i / 2 + i % 2 * (head / 2);
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(from * columns);
      result.insert(result.end(), row, row + static_cast<std::ptrdiff_t>(columns));
    }
  }
  return result;
}

// A folder's low-rank changes as llama.cpp's file; 0 for `head`: rows keep their order.
std::string as_gguf(const AdapterSource& source, std::string_view architecture, std::size_t head) {
  GgufBuilder builder = header(architecture);
  for (const auto& [name, module] : source.modules) {
    if (!module.low_rank) {
      continue;
    }
    const LowRank& pair = *module.low_rank;
    const auto shape = [](const Tensor& tensor) {
      return std::vector<std::uint64_t>(tensor.shape.rbegin(), tensor.shape.rend());
    };
    auto up = to_floats(pair.up);
    if (head > 0 && (name.ends_with("q_proj") || name.ends_with("k_proj"))) {
      up = in_pairs(up, static_cast<std::size_t>(pair.up.shape.front()), head);
    }
    const std::string weight = gguf_name(name);
    builder.tensor(weight + ".lora_a", shape(pair.down), kF32, bytes_of(to_floats(pair.down)));
    builder.tensor(weight + ".lora_b", shape(pair.up), kF32, bytes_of(up));
  }
  return builder.file();
}

struct Case {
  std::string_view adapter;
  std::string_view base;
  std::string_view architecture;
  std::size_t head = 0;  // Rows of a head, if they are in the order of rotated pairs.

  friend std::ostream& operator<<(std::ostream& out, const Case& self) {
    return out << self.adapter;
  }
};

constexpr Case kCases[] = {
    {"peft_llama", "llama", "llama", 8},
    {"peft_mistral", "mistral", "llama", 8},
    {"peft_qwen3", "qwen3", "qwen3"},
    {"peft_gemma2", "gemma2", "gemma2"},
    {"peft_gemma3", "gemma3", "gemma3"},
    {"peft_embedding", "qwen3", "qwen3"},
    {"peft_head", "qwen3", "qwen3"},
};

class GgufAdapter : public ::testing::TestWithParam<Case> {
 protected:
  GgufAdapter() : folder_(golden_dir() / "adapters" / GetParam().adapter) {
    source_ = read_adapter(folder_);
    dir_.write("lora.gguf", as_gguf(source_, GetParam().architecture, GetParam().head));
  }

  std::filesystem::path file() const { return dir_.path() / "lora.gguf"; }

  static std::filesystem::path base() { return golden_dir() / GetParam().base; }

  std::filesystem::path folder_;
  AdapterSource source_;
  TemporaryDir dir_;
};

void expect_same_pairs(const AdapterSource& one, const AdapterSource& other) {
  for (const auto& [name, module] : one.modules) {
    if (!module.low_rank) {
      continue;
    }
    const LowRank& pair = *other.modules.at(name).low_rank;
    EXPECT_EQ(pair.scale, module.low_rank->scale) << name;
    EXPECT_EQ(pair.embedding, module.low_rank->embedding) << name;
    EXPECT_TRUE(std::ranges::equal(pair.down.bytes(), module.low_rank->down.bytes())) << name;
    EXPECT_TRUE(std::ranges::equal(pair.up.bytes(), module.low_rank->up.bytes())) << name;
  }
}

TEST_P(GgufAdapter, HasTheFoldersWeights) {
  AdapterSource read = read_adapter(file());
  EXPECT_EQ(read.format, AdapterFormat::kGguf);
  EXPECT_THAT(read.warnings, ElementsAre());
  fit_to_model(read, base());
  expect_same_pairs(source_, read);
}

TEST_P(GgufAdapter, LogitsAreTheFolders) {
  const std::vector<int> ids = {3, 14, 15, 92, 65, 35, 89, 79};
  const auto loaded = load::load_checkpoint(base());
  const auto of_file = load_adapter(file(), *loaded.model);
  const auto expected = run_alone(*loaded.model, {load_adapter(folder_, *loaded.model)}, ids);
  EXPECT_TRUE(same_bits(run_alone(*loaded.model, {of_file}, ids), expected));
  EXPECT_FALSE(same_bits(run_alone(*loaded.model, {}, ids), expected));
  EXPECT_FALSE(has_own_vocabulary(base(), file()));
  const TemporaryDir out;
  fuse(base(), file(), out.path() / "file", {});
  fuse(base(), folder_, out.path() / "folder", {});
  EXPECT_TRUE(same_bits(
      run_alone(*load::load_checkpoint(out.path() / "file").model, {}, ids),
      run_alone(*load::load_checkpoint(out.path() / "folder").model, {}, ids)
  ));
}

TEST_P(GgufAdapter, IsWrittenInTheOtherForms) {
  AdapterSource read = read_adapter(file());
  fit_to_model(read, base());
  const TemporaryDir out;
  for (const auto& save : {save_mlx, save_peft}) {
    save(read, out.path() / "saved");
    expect_same_pairs(source_, read_adapter(out.path() / "saved"));
    std::filesystem::remove_all(out.path() / "saved");
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufAdapter, ::testing::ValuesIn(kCases), [](const auto& test) {
  return std::string(test.param.adapter);
});

TEST(GgufAdapters, TypesKeepTheirValues) {
  GgufBuilder builder = header();
  builder.tensor("blk.0.ffn_up.weight.lora_a", {2, 1}, kF16, std::string("\x00\x3c\x00\xc0", 4));
  builder.tensor("blk.0.ffn_up.weight.lora_b", {1, 2}, kBF16, std::string("\x80\x3f\x00\x40", 4));
  // One block: a scale of 0.5 and the codes 1, 2, 0, 0, ...
  std::string block("\x00\x38\x01\x02", 4);
  block.resize(34);
  builder.tensor("blk.0.ffn_down.weight.lora_a", {32, 1}, kQ80, block);
  add(builder, "blk.0.ffn_down.weight.lora_b", 2, 1);
  const AdapterSource source = read(builder);
  const LowRank& plain = *source.modules.at("layers.0.mlp.up_proj").low_rank;
  EXPECT_EQ(plain.down.dtype, DType::kFloat16);
  EXPECT_THAT(to_floats(plain.down), ElementsAre(1.0F, -2.0F));
  EXPECT_EQ(plain.up.dtype, DType::kBFloat16);
  EXPECT_THAT(to_floats(plain.up), ElementsAre(1.0F, 2.0F));
  EXPECT_EQ(plain.scale, 6.0F);
  const LowRank& coded = *source.modules.at("layers.0.mlp.down_proj").low_rank;
  EXPECT_EQ(coded.down.dtype, DType::kFloat32);
  EXPECT_EQ(to_floats(coded.down)[1], 1.0F);
}

TEST(GgufAdapters, ScaleIsAlphaByRank) {
  GgufBuilder builder = header();
  add_pair(builder);
  const AdapterSource source = read(builder);
  EXPECT_EQ(source.modules.at(std::string(kUp)).low_rank->scale, 3.0F);
  EXPECT_EQ(source.modules.at(std::string(kUp)).name, "model.layers.0.mlp.up_proj");
  EXPECT_EQ(source.base_type, "qwen2");
}

TEST(GgufAdapters, OtherBytesAreAnotherAdapter) {
  GgufBuilder one = header();
  add_pair(one);
  GgufBuilder other = header();
  add(other, "blk.0.ffn_up.weight.lora_a", 2, 3, 0.25F);
  add(other, "blk.0.ffn_up.weight.lora_b", 4, 2);
  EXPECT_EQ(read(one).identity, read(one).identity);
  EXPECT_NE(read(one).identity, read(other).identity);
}

TEST(GgufAdapters, NormsAreLeftOut) {
  GgufBuilder builder = header();
  add_pair(builder);
  builder.tensor("blk.0.attn_norm.weight", {3}, kF32, bytes_of({1, 2, 3}));
  const AdapterSource source = read(builder);
  EXPECT_EQ(source.modules.size(), 1U);
  EXPECT_THAT(source.warnings, ElementsAre(HasSubstr("1 tensor is of norms")));
}

// Only a model tells where a head ends.
TEST(GgufAdapters, RowsInPairsWaitForAModel) {
  GgufBuilder builder = header("llama");
  add(builder, "blk.0.attn_q.weight.lora_a", 1, 3);
  builder.tensor("blk.0.attn_q.weight.lora_b", {1, 8}, kF32, bytes_of({0, 2, 1, 3, 4, 6, 5, 7}));
  AdapterSource source = read(builder);
  const TemporaryDir dir;
  for (const auto& save : {save_mlx, save_peft}) {
    expect_error(ErrorCode::kUnsupported, {"self_attn.q_proj", "MODEL"}, [&] {
      save(source, dir.path() / "out");
    });
  }
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "out"));
  for (const std::int64_t head : {0, 3, 6, 16}) {
    expect_error(ErrorCode::kInvalidArgument, {"q_proj", "8 rows"}, [&] {
      order_rows(source, head);
    });
  }
  order_rows(source, 4);
  order_rows(source, 8);  // Changes nothing more.
  const LowRank& pair = *source.modules.at("layers.0.self_attn.q_proj").low_rank;
  EXPECT_THAT(to_floats(pair.up), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_FALSE(pair.rotated_pairs);
}

TEST(GgufAdapters, ModelsOfOtherTypesAreRefused) {
  GgufBuilder builder = header("qwen2");
  add_pair(builder);
  AdapterSource source = read(builder);
  const auto loaded = load::load_checkpoint(golden_dir() / "llama");
  expect_error(ErrorCode::kInvalidArgument, {"qwen2", "llama"}, [&] {
    bind(source, *loaded.model);
  });
  expect_error(ErrorCode::kInvalidArgument, {"qwen2", "llama"}, [&] {
    fit_to_model(source, golden_dir() / "llama");
  });
  source.base_type = "gemma3_text";
  fit_to_model(source, golden_dir() / "gemma3_nested");
  const auto null = null_adapter(source, {.seed = 1});
  EXPECT_EQ(null.base_type, "gemma3_text");
}

TEST(GgufAdapters, ALoneFileOfAFolderIsTheAdapter) {
  GgufBuilder builder = header();
  add_pair(builder);
  const TemporaryDir dir;
  dir.write("a.gguf", builder.file());
  EXPECT_EQ(read_adapter(dir.path()).dir, dir.path() / "a.gguf");
  dir.write("b.gguf", builder.file());
  expect_error(ErrorCode::kNotFound, {"no adapter"}, [&] { read_adapter(dir.path()); });
}

struct Refused {
  std::string_view name;
  ErrorCode code;
  std::vector<std::string_view> words;
  GgufBuilder builder;
};

GgufBuilder keys(std::string_view type, std::string_view kind, float alpha) {
  GgufBuilder builder;
  builder.string("general.architecture", "qwen2").string("general.type", type);
  builder.string("adapter.type", kind).number("adapter.lora.alpha", alpha);
  add_pair(builder);
  return builder;
}

std::vector<Refused> refused_keys() {
  std::vector<Refused> cases = {
      {"AModel",
       ErrorCode::kInvalidArgument,
       {"general.type", "'model'", "adapter"},
       keys("model", "lora", 6.0F)},
      {"AnotherType",
       ErrorCode::kUnsupported,
       {"adapter.type", "'loha'", "lora"},
       keys("adapter", "loha", 6.0F)},
      {"NaN",
       ErrorCode::kCorruptData,
       {"adapter.lora.alpha", "nan"},
       keys("adapter", "lora", std::numeric_limits<float>::quiet_NaN())},
      {"Zero",
       ErrorCode::kCorruptData,
       {"adapter.lora.alpha", "is 0"},
       keys("adapter", "lora", 0.0F)},
      {"AnotherFamily", ErrorCode::kUnsupported, {"'phi2'", "qwen2"}, header("phi2")},
      {"Nothing", ErrorCode::kCorruptData, {"no low-rank matrices"}, header()},
  };
  GgufBuilder missing;
  missing.string("general.architecture", "qwen2");
  cases.push_back({"NoType", ErrorCode::kInvalidArgument, {"general.type", "missing"}, missing});
  missing.string("general.type", "adapter").string("adapter.type", "lora");
  add_pair(missing);
  cases.push_back({"NoAlpha", ErrorCode::kCorruptData, {"adapter.lora.alpha", "missing"}, missing});
  GgufBuilder vectors;
  vectors.string("general.architecture", "controlvector");
  cases.push_back({"Vectors", ErrorCode::kUnsupported, {"control vector"}, vectors});
  GgufBuilder invoked = header();
  invoked.integers("adapter.alora.invocation_tokens", {1, 2});
  add_pair(invoked);
  cases.push_back({"Invoked", ErrorCode::kUnsupported, {"aLoRA"}, invoked});
  return cases;
}

Refused refused_pair(
    std::string_view name,
    ErrorCode code,
    std::vector<std::string_view> words,
    const std::vector<std::string>& tensors
) {
  Refused result{name, code, std::move(words), header()};
  for (const std::string& tensor : tensors) {
    add(result.builder, tensor, tensor.ends_with("lora_b") ? 4 : 2, 2);
  }
  return result;
}

std::vector<Refused> refused_tensors() {
  const std::string up = "blk.0.ffn_up.weight";
  std::vector<Refused> cases = {
      refused_pair("NoUp", ErrorCode::kCorruptData, {"up_proj", "only one"}, {up + ".lora_a"}),
      refused_pair("NoDown", ErrorCode::kCorruptData, {"up_proj", "only one"}, {up + ".lora_b"}),
      refused_pair(
          "UnknownModule",
          ErrorCode::kUnsupported,
          {"blk.0.wonder.weight.lora_a", "qwen2"},
          {"blk.0.wonder.weight.lora_a"}
      ),
      refused_pair("NoPart", ErrorCode::kUnsupported, {"blk.0.ffn_up.weight]"}, {up}),
      refused_pair("ABias", ErrorCode::kUnsupported, {"bias"}, {"blk.0.ffn_up.bias.lora_a"}),
      refused_pair("OnlySuffix", ErrorCode::kUnsupported, {".lora_a"}, {".lora_a"}),
  };
  Refused experts{"Experts", ErrorCode::kUnsupported, {"experts"}, header("qwen3moe")};
  experts.builder.tensor(
      "blk.0.ffn_up_exps.weight.lora_a", {2, 1, 2}, kF32, bytes_of({1, 2, 3, 4})
  );
  cases.push_back(experts);
  Refused ranks{"Ranks", ErrorCode::kCorruptData, {"up_proj", "ranks 3 and 2"}, header()};
  add(ranks.builder, up + ".lora_a", 3, 2);
  add(ranks.builder, up + ".lora_b", 4, 2);
  cases.push_back(ranks);
  Refused flat{"Flat", ErrorCode::kCorruptData, {"lora_a", "2 extents"}, header()};
  flat.builder.tensor(up + ".lora_a", {2}, kF32, bytes_of({1, 2}));
  cases.push_back(flat);
  Refused infinite{"Infinite", ErrorCode::kCorruptData, {"lora_a", "inf"}, header()};
  add(infinite.builder, up + ".lora_a", 1, 2, std::numeric_limits<float>::infinity());
  cases.push_back(infinite);
  Refused integers{"Integers", ErrorCode::kUnsupported, {"lora_a", "I8"}, header()};
  integers.builder.tensor(up + ".lora_a", {2, 1}, 24, "ab");
  cases.push_back(integers);
  return cases;
}

TEST(GgufAdapters, BadFilesAreRefusedInOneLine) {
  std::vector<Refused> cases = refused_keys();
  const auto more = refused_tensors();
  cases.insert(cases.end(), more.begin(), more.end());
  for (const Refused& test : cases) {
    SCOPED_TRACE(test.name);
    std::vector<std::string_view> words = test.words;
    words.emplace_back("a.gguf");
    expect_error(test.code, words, [&] { read(test.builder); });
  }
}

TEST(GgufAdapters, BrokenFilesAreNoAdapters) {
  const TemporaryDir dir;
  dir.write("a.gguf", header().file().substr(0, 60));
  expect_error(ErrorCode::kCorruptData, {"a.gguf"}, [&] { read_adapter(dir.path() / "a.gguf"); });
  dir.write("a.txt", "text");
  expect_error(ErrorCode::kNotFound, {"a.txt"}, [&] { read_adapter(dir.path() / "a.txt"); });
}

}  // namespace
}  // namespace saker::adapters
