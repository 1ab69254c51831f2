// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/experts/moe.h"

#include "saker/kernels/gpu/backend.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/weights/pack_key.h"

#include "tests/nn/random_weights.h"
#include "tests/support/expect_error.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::nn {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;
using testing::expect_error;

constexpr WeightFormat kFloat{.kind = WeightKind::kFloat32};
constexpr WeightFormat kAffine4{.kind = WeightKind::kAffine, .bits = 4, .group_size = 32};
constexpr WeightFormat kAffine8{.kind = WeightKind::kAffine, .bits = 8, .group_size = 32};
constexpr int kExperts = 3;
constexpr MoeOptions kOptions{
    .hidden = 32,
    .intermediate = 64,
    .experts = kExperts,
    .routing = {.chosen = 2, .score = kernels::RouterScore::kSoftmaxOfChosen},
};

void add(
    TensorMap& tensors, WeightFormat format, const std::string& path, int outputs, int inputs
) {
  RandomWeights random(format, static_cast<unsigned>(tensors.size()));
  random.add_linear(path, outputs, inputs);
  tensors.insert(random.tensors().begin(), random.tensors().end());
}

// Experts one by one, "up_proj" in a format of its own.
TensorMap single_experts(WeightFormat format, WeightFormat up_format) {
  TensorMap tensors;
  add(tensors, format, "gate", kExperts, kOptions.hidden);
  for (int expert = 0; expert < kExperts; ++expert) {
    const auto scope = fmt::format("experts.{}.", expert);
    add(tensors, format, scope + "gate_proj", kOptions.intermediate, kOptions.hidden);
    add(tensors, up_format, scope + "up_proj", kOptions.intermediate, kOptions.hidden);
    add(tensors, format, scope + "down_proj", kOptions.hidden, kOptions.intermediate);
  }
  return tensors;
}

// The same tensors as MLX stacks them.
TensorMap stacked(const TensorMap& tensors) {
  TensorMap result;
  for (const auto& [name, first] : tensors) {
    const std::string start = "experts.0.";
    if (!name.starts_with("experts.")) {
      result[name] = first;
    }
    if (!name.starts_with(start)) {
      continue;
    }
    const auto rest = name.substr(start.size());
    std::vector<std::byte> bytes;
    for (int expert = 0; expert < kExperts; ++expert) {
      const auto part = tensors.at(fmt::format("experts.{}.{}", expert, rest)).bytes();
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    result["switch_mlp." + rest] =
        make_tensor(first.dtype, {kExperts, first.shape[0], first.shape[1]}, bytes);
  }
  return result;
}

mx::array random_rows(int rows) {
  return mx::random::normal({rows, kOptions.hidden}, mx::float32, mx::random::key(3));
}

struct PretendedGpu {
  PretendedGpu() { kernels::pretend_gpu(true); }

  ~PretendedGpu() { kernels::pretend_gpu(false); }

  PretendedGpu(const PretendedGpu&) = delete;
  PretendedGpu& operator=(const PretendedGpu&) = delete;
};

bool same(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

void add_bias(TensorMap& tensors, const std::string& path, int outputs) {
  RandomWeights random(kFloat, static_cast<unsigned>(tensors.size()));
  random.add_vector(path + ".bias", outputs, 0.0F, 1.0F);
  tensors.insert(random.tensors().begin(), random.tensors().end());
}

// Some projections have no bias.
TensorMap with_biases(TensorMap tensors) {
  for (int expert = 0; expert < kExperts; ++expert) {
    const auto scope = fmt::format("experts.{}.", expert);
    if (expert != 1) {
      add_bias(tensors, scope + "gate_proj", kOptions.intermediate);
    }
    add_bias(tensors, scope + "up_proj", kOptions.intermediate);
    add_bias(tensors, scope + "down_proj", kOptions.hidden);
  }
  return tensors;
}

class MoeSum : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Biases, MoeSum, ::testing::Bool());

TEST_P(MoeSum, IsTheSharedSumOfItsMlps) {
  const auto plain = single_experts(kFloat, kFloat);
  const Weights weights(GetParam() ? with_biases(plain) : plain, {});
  const auto x = random_rows(9);
  const auto y = Moe(weights, kOptions)(x, {});
  const Linear router(weights / "gate", kOptions.hidden, kExperts);
  const auto choice = kernels::choose_experts(router(x, {}), kOptions.routing);
  auto expected = mx::zeros(x.shape(), mx::float32);
  for (int expert = 0; expert < kExperts; ++expert) {
    const GatedMlp mlp(
        weights / "experts" / fmt::to_string(expert), {kOptions.hidden, kOptions.intermediate}
    );
    const auto chosen = mx::astype(mx::equal(choice.ids, mx::array(expert)), mx::float32);
    expected = expected + mx::sum(chosen * choice.weights, 1, true) * mlp(x, {});
  }
  EXPECT_LT(mx::max(mx::abs(y - expected)).item<float>(), 1e-5F);
}

// Whatever the checkpoint keeps them in: rounded rows would choose other experts at near ties.
TEST(Moe, RoutersAreMultipliedInFloat32) {
  constexpr WeightFormat kBf16{.kind = WeightKind::kBFloat16};
  for (const auto format : {kBf16, kAffine4, kAffine8}) {
    auto narrow = single_experts(kFloat, kFloat);
    narrow.erase("gate.weight");
    add(narrow, format, "gate", kExperts, kOptions.hidden);
    const Linear gate(Weights(narrow, {}) / "gate", kOptions.hidden, kExperts);
    const auto values = mx::contiguous(gate.packed().dequantized());
    mx::eval(values);
    auto wide = single_experts(kFloat, kFloat);
    wide["gate.weight"] = float_tensor(
        {kExperts, kOptions.hidden}, {values.data<float>(), values.data<float>() + values.size()}
    );
    const auto x = random_rows(50);
    EXPECT_TRUE(
        same(Moe(Weights(narrow, {}), kOptions)(x, {}), Moe(Weights(wide, {}), kOptions)(x, {}))
    );
  }
}

// Gates and ups in turns, and all weights transposed.
TensorMap in_turns(const TensorMap& stacks) {
  const auto floats = [&](const std::string& name) {
    const Tensor& tensor = stacks.at(name);
    const auto values = to_floats(tensor);
    return mx::array(values.begin(), mx::Shape(tensor.shape.begin(), tensor.shape.end()));
  };
  TensorMap result;
  const auto put = [&](const std::string& name, const mx::array& array) {
    auto dense = mx::contiguous(array);
    mx::eval(dense);
    const std::vector<std::int64_t> shape(dense.shape().begin(), dense.shape().end());
    result[name] = float_tensor(shape, {dense.data<float>(), dense.data<float>() + dense.size()});
  };
  const auto turns = [](const mx::array& gate, const mx::array& up) {
    return mx::flatten(mx::stack({gate, up}, 2), 1, 2);
  };
  const auto inputs =
      turns(floats("switch_mlp.gate_proj.weight"), floats("switch_mlp.up_proj.weight"));
  put("experts.gate_up_proj", mx::swapaxes(inputs, 1, 2));
  put("experts.gate_up_proj_bias",
      turns(floats("switch_mlp.gate_proj.bias"), floats("switch_mlp.up_proj.bias")));
  put("experts.down_proj", mx::swapaxes(floats("switch_mlp.down_proj.weight"), 1, 2));
  put("experts.down_proj_bias", floats("switch_mlp.down_proj.bias"));
  result["gate.weight"] = stacks.at("gate.weight");
  return result;
}

TEST(Moe, ReadsFusedExpertsInTurns) {
  auto stack = stacked(single_experts(kFloat, kFloat));
  RandomWeights random(kFloat, 9);
  for (const auto& [name, outputs] :
       {std::pair("gate_proj", 64), std::pair("up_proj", 64), std::pair("down_proj", 32)}) {
    const auto flat = fmt::format("switch_mlp.{}.bias", name);
    random.add_vector(flat, kExperts * outputs, 0.0F, 1.0F);
    stack[flat] = random.tensors().at(flat);
    stack[flat].shape = {kExperts, outputs};
  }
  MoeOptions options = kOptions;
  options.activation = kernels::Activation::kSwigluOai;
  const auto x = random_rows(7);
  const auto expected = Moe(Weights(stack, {}), options)(x, {});
  options.names.fused_transposed = true;
  options.names.fused_in_turns = true;
  const Weights fused(in_turns(stack), {});
  EXPECT_TRUE(same(Moe(fused, options)(x, {}), expected));
  EXPECT_TRUE(fused.unused().empty());
}

TEST(Moe, ReadsBothLayoutsOfExperts) {
  for (const auto format : {kFloat, kAffine4}) {
    for (const auto up_format : {format, kAffine8}) {
      const auto single = single_experts(format, up_format);
      const Weights one_by_one(single, {});
      const Weights stack(stacked(single), {});
      const auto x = random_rows(7);
      const auto y = Moe(one_by_one, kOptions)(x, {});
      EXPECT_TRUE(same(y, Moe(stack, kOptions)(x, {})));
      EXPECT_TRUE(one_by_one.unused().empty());
      EXPECT_TRUE(stack.unused().empty());
    }
  }
}

// The pages of a stack leave memory once, after the last expert was read.
TEST(Moe, ReleasesStacksOnce) {
  auto tensors = stacked(single_experts(kAffine4, kAffine4));
  const auto releases = std::make_shared<int>(0);
  for (const auto* name : {"weight", "scales", "biases"}) {
    tensors.at(fmt::format("switch_mlp.down_proj.{}", name)).release = [releases] { ++*releases; };
  }
  const Moe moe(Weights(tensors, {}), kOptions);
  EXPECT_EQ(*releases, 3);
}

TEST(Moe, HonoursFormatsByModule) {
  const auto single = single_experts(kAffine4, kAffine8);
  QuantizationConfig quantization{.format = kAffine4, .overrides = {}};
  quantization.overrides["switch_mlp.up_proj"] = kAffine8;
  const auto x = random_rows(4);
  const auto expected = Moe(Weights(stacked(single), {}), kOptions)(x, {});
  EXPECT_TRUE(same(Moe(Weights(stacked(single), quantization), kOptions)(x, {}), expected));
  quantization.overrides["switch_mlp.up_proj"] = kAffine4;
  expect_error(ErrorCode::kCorruptData, {"switch_mlp.up_proj"}, [&] {
    Moe(Weights(stacked(single), quantization), kOptions);
  });
}

TEST(Moe, ReadsScalesOfSeveralDtypes) {
  const auto x = random_rows(7);
  const auto single = single_experts(kAffine4, kAffine4);
  const auto expected = Moe(Weights(single, {}), kOptions)(x, {});
  // The numbers are the same in float32; a projection, or an expert, has them so.
  for (const std::string& module :
       {std::string("switch_mlp.up_proj"), std::string("experts.1.up_proj")}) {
    auto tensors = module.starts_with("switch") ? stacked(single) : single;
    for (const auto* leaf : {".scales", ".biases"}) {
      Tensor& tensor = tensors.at(module + leaf);
      tensor = as_float32(tensor);
    }
    EXPECT_TRUE(same(Moe(Weights(tensors, {}), kOptions)(x, {}), expected)) << module;
  }
}

// Rows of an expert have the bits that they have where all experts are in its formats.
TEST(Moe, ExpertsKeepTheirFormats) {
  MoeOptions options = kOptions;
  options.routing.chosen = 1;
  constexpr WeightFormat kHalf{.kind = WeightKind::kBFloat16};
  const auto x = random_rows(12);
  const auto run = [&](const TensorMap& tensors) {
    return Moe(Weights(tensors, {}), options)(x, {});
  };
  for (const auto& [format, other] : {std::pair(kHalf, kFloat), {kAffine4, kAffine8}}) {
    const auto usual = single_experts(format, format);
    auto others = single_experts(format, other);
    others["gate.weight"] = usual.at("gate.weight");
    for (const auto* leaf : {"gate.scales", "gate.biases"}) {
      if (usual.contains(leaf)) {
        others[leaf] = usual.at(leaf);
      }
    }
    auto mixed = usual;
    std::erase_if(mixed, [](const auto& tensor) { return tensor.first.starts_with("experts.2."); });
    for (const auto& [name, tensor] : others) {
      if (name.starts_with("experts.2.")) {
        mixed[name] = tensor;
      }
    }
    const Linear router = Linear::in_float32(Weights(usual, {}) / "gate", options.hidden, kExperts);
    const auto ids = kernels::choose_experts(router(x, {}), options.routing).ids;
    const auto is_other = mx::equal(ids, mx::array(2));
    EXPECT_TRUE(mx::any(is_other).item<bool>() && !mx::all(is_other).item<bool>());
    EXPECT_TRUE(same(run(mixed), mx::where(is_other, run(others), run(usual))));
  }
}

TEST(Moe, AGpuWidensFloatsAndRefusesCodesOfSeveralFormats) {
  const PretendedGpu gpu;
  constexpr WeightFormat kHalf{.kind = WeightKind::kBFloat16};
  auto tensors = single_experts(kHalf, kHalf);
  const auto wide = single_experts(kHalf, kFloat);
  Tensor& up = tensors.at("experts.2.up_proj.weight");
  up = as_float32(up);
  EXPECT_EQ(
      Moe(Weights(tensors, {}), kOptions).nbytes(), Moe(Weights(wide, {}), kOptions).nbytes()
  );
  auto mixed = single_experts(kFloat, kFloat);
  mixed.erase("experts.1.up_proj.weight");
  add(mixed, kAffine4, "experts.1.up_proj", kOptions.intermediate, kOptions.hidden);
  expect_error(ErrorCode::kUnsupported, {"experts.1.up_proj.weight"}, [&] {
    Moe(Weights(mixed, {}), kOptions);
  });
}

// Gates and ups of all experts in one tensor, and down projections in another; rows or columns first.
TensorMap fused(const TensorMap& single, bool is_transposed) {
  std::vector<mx::array> inputs;
  std::vector<mx::array> downs;
  const auto array_of = [&](int expert, std::string_view name) {
    return Linear(
               Weights(single, {}) / "experts" / fmt::to_string(expert) / name,
               name == "down_proj" ? kOptions.intermediate : kOptions.hidden,
               name == "down_proj" ? kOptions.hidden : kOptions.intermediate
    )
        .packed()
        .dequantized();
  };
  for (int expert = 0; expert < kExperts; ++expert) {
    inputs.push_back(
        mx::concatenate({array_of(expert, "gate_proj"), array_of(expert, "up_proj")}, 0)
    );
    downs.push_back(array_of(expert, "down_proj"));
  }
  TensorMap result{{"gate.weight", single.at("gate.weight")}};
  const auto add_stack = [&](const std::string& name, const std::vector<mx::array>& parts) {
    auto stack = mx::stack(parts);
    stack = mx::contiguous(is_transposed ? mx::swapaxes(stack, 1, 2) : stack);
    mx::eval(stack);
    const auto* data = stack.data<float>();
    result[name] =
        float_tensor({stack.shape(0), stack.shape(1), stack.shape(2)}, {data, data + stack.size()});
  };
  add_stack("experts.gate_up_proj", inputs);
  add_stack("experts.down_proj", downs);
  return result;
}

TEST(Moe, ReadsFusedExperts) {
  const auto single = single_experts(kFloat, kFloat);
  const auto x = random_rows(7);
  const auto expected = Moe(Weights(single, {}), kOptions)(x, {});
  for (const bool is_transposed : {false, true}) {
    MoeOptions options = kOptions;
    options.names.fused_transposed = is_transposed;
    const Weights weights(fused(single, is_transposed), {});
    EXPECT_TRUE(same(Moe(weights, options)(x, {}), expected));
    EXPECT_TRUE(weights.unused().empty());
    options.names.fused_transposed = !is_transposed;
    expect_error(ErrorCode::kCorruptData, {"experts.gate_up_proj"}, [&] { Moe(weights, options); });
  }
}

TEST(Moe, TakesNames) {
  MoeOptions options = kOptions;
  options.names.router = "router.layer";
  options.names.single = {.gate = "w1", .up = "w3", .down = "w2"};
  TensorMap renamed;
  for (const auto& [name, tensor] : single_experts(kFloat, kFloat)) {
    std::string own = name;
    for (const auto& [from, to] :
         {std::pair("gate_proj", "w1"), {"up_proj", "w3"}, {"down_proj", "w2"}}) {
      if (const auto at = own.find(from); at != std::string::npos) {
        own.replace(at, std::string_view(from).size(), to);
      }
    }
    renamed[own == "gate.weight" ? "router.layer.weight" : own] = tensor;
  }
  const auto x = random_rows(5);
  EXPECT_TRUE(same(
      Moe(Weights(renamed, {}), options)(x, {}),
      Moe(Weights(single_experts(kFloat, kFloat), {}), kOptions)(x, {})
  ));
}

TEST(Moe, AddsTheSharedExpert) {
  auto tensors = single_experts(kFloat, kFloat);
  for (const auto* name : {"gate_proj", "up_proj"}) {
    add(tensors, kFloat, std::string("shared.") + name, 96, kOptions.hidden);
  }
  add(tensors, kFloat, "shared.down_proj", kOptions.hidden, 96);
  add(tensors, kFloat, "shared_gate", 1, kOptions.hidden);
  const auto x = random_rows(6);
  MoeOptions options = kOptions;
  const Weights weights(tensors, {});
  const auto routed = Moe(weights, options)(x, {});
  const auto shared = GatedMlp(weights / "shared", {kOptions.hidden, 96})(x, {});
  options.shared = {.intermediate = 96, .name = "shared"};
  const Moe ungated(weights, options);
  EXPECT_TRUE(same(ungated(x, {}), routed + shared));
  EXPECT_EQ(ungated.nbytes(), Moe(weights, kOptions).nbytes() + 4U * 3 * 32 * 96);
  options.shared.averaged = true;
  EXPECT_TRUE(same(Moe(weights, options)(x, {}), (routed + shared) * mx::array(0.5F)));
  options.shared.averaged = false;
  options.shared.gate = "shared_gate";
  const auto share = mx::sigmoid(Linear(weights / "shared_gate", kOptions.hidden, 1)(x, {}));
  const auto gated = Moe(weights, options)(x, {});
  EXPECT_LT(mx::max(mx::abs(gated - (routed + shared * share))).item<float>(), 1e-5F);
  for (int row = 0; row < 6; ++row) {
    const auto alone = mx::slice(x, {row, 0}, {row + 1, kOptions.hidden});
    EXPECT_TRUE(same(
        Moe(weights, options)(alone, {}), mx::slice(gated, {row, 0}, {row + 1, kOptions.hidden})
    ));
  }
}

TEST(Moe, RunsExpertsWithoutGates) {
  auto tensors = single_experts(kFloat, kFloat);
  MoeOptions options = kOptions;
  options.gated = false;
  options.activation = kernels::Activation::kRelu2;
  std::erase_if(tensors, [](const auto& entry) {
    return entry.first.find("gate_proj") != std::string::npos;
  });
  const Weights weights(tensors, {});
  const auto x = random_rows(8);
  const auto y = Moe(weights, options)(x, {});
  EXPECT_TRUE(weights.unused().empty());
  const Linear router(weights / "gate", options.hidden, kExperts);
  const auto choice = kernels::choose_experts(router(x, {}), options.routing);
  auto expected = mx::zeros(x.shape(), mx::float32);
  for (int expert = 0; expert < kExperts; ++expert) {
    MlpOptions mlp{options.hidden, options.intermediate, options.activation};
    mlp.gated = false;
    const GatedMlp own(weights / "experts" / fmt::to_string(expert), mlp);
    const auto chosen = mx::astype(mx::equal(choice.ids, mx::array(expert)), mx::float32);
    expected = expected + mx::sum(chosen * choice.weights, 1, true) * own(x, {});
  }
  EXPECT_LT(mx::max(mx::abs(y - expected)).item<float>(), 1e-4F);
}

TEST(Moe, ReadsBiasesThatChoose) {
  auto tensors = single_experts(kFloat, kFloat);
  MoeOptions options = kOptions;
  options.routing.chosen = 1;
  options.names.choice_bias = "bias";
  expect_error(ErrorCode::kCorruptData, {"[bias]"}, [&] { Moe(Weights(tensors, {}), options); });
  tensors["bias"] = float_tensor({1, kExperts}, {0.0F, 0.0F, 1e6F});
  const auto x = random_rows(4);
  const GatedMlp last(
      Weights(tensors, {}) / "experts" / "2", {kOptions.hidden, kOptions.intermediate}
  );
  const auto y = Moe(Weights(tensors, {}), options)(x, {});
  EXPECT_LT(mx::max(mx::abs(y - last(x, {}))).item<float>(), 1e-5F);
  tensors["bias"] = float_tensor({kExperts + 1}, {0.0F, 0.0F, 0.0F, 0.0F});
  expect_error(ErrorCode::kCorruptData, {"[bias]"}, [&] { Moe(Weights(tensors, {}), options); });
}

TEST(Moe, CountsWhatOneRowReads) {
  const Moe moe(Weights(single_experts(kFloat, kFloat), {}), kOptions);
  // The router's outputs fill one block of 16; an expert has three projections.
  EXPECT_EQ(moe.nbytes(), 4U * (16 * 32 + 2 * 3 * 32 * 64));
}

TEST(Moe, RefusesWhatDoesNotFit) {
  const auto refused = [](ErrorCode code, std::string_view word, const TensorMap& tensors) {
    expect_error(code, {word}, [&] { Moe(Weights(tensors, {}), kOptions); });
  };
  const auto single = single_experts(kFloat, kFloat);
  const auto stack = stacked(single);
  auto missing = single;
  missing.erase("experts.2.up_proj.weight");
  refused(ErrorCode::kCorruptData, "experts.2.up_proj.weight", missing);
  auto other = single;
  other["experts.1.down_proj.weight"] = single.at("experts.1.up_proj.weight");
  refused(ErrorCode::kCorruptData, "experts.1.down_proj.weight", other);
  auto flat = stack;
  flat["switch_mlp.up_proj.weight"] = single.at("experts.0.up_proj.weight");
  refused(ErrorCode::kCorruptData, "switch_mlp.up_proj.weight", flat);
  auto few = stack;
  few["switch_mlp.up_proj.weight"].shape[0] = kExperts - 1;
  refused(ErrorCode::kCorruptData, "switch_mlp.up_proj.weight", few);
  auto biased = stack;
  biased["switch_mlp.up_proj.bias"] = stack.at("gate.weight");
  refused(ErrorCode::kCorruptData, "switch_mlp.up_proj.bias", biased);
  auto wrong = single;
  wrong["experts.1.down_proj.bias"] = single.at("gate.weight");
  refused(ErrorCode::kCorruptData, "experts.1.down_proj.bias", wrong);
}

}  // namespace
}  // namespace saker::nn
