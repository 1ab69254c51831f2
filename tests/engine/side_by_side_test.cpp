// SPDX-License-Identifier: Apache-2.0
// Engines of one process with threads and devices of their own.
#include "saker/engine/engine.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/cpu_operation.h"

#include "tests/engine/model_folder.h"
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace saker::engine {
namespace {

using Ids = std::vector<std::int32_t>;

// What operations of a thread find.
struct Machine {
  bool on_cpu = true;
  int threads = 0;             // On the thread itself.
  int evaluating_threads = 0;  // On MLX's thread, which runs the operations.

  bool operator==(const Machine&) const = default;

  friend void PrintTo(const Machine& machine, std::ostream* out) {
    *out << (machine.on_cpu ? "CPU, " : "GPU, ") << machine.threads << " threads, "
         << machine.evaluating_threads << " of operations";
  }
};

struct EvaluatingThreadsBody {
  int* threads;

  auto operator()(const std::vector<mx::array>&, std::vector<mx::array>&) const {
    return [threads = threads] { *threads = kernels::threads(); };
  }
};

Machine machine_here() {
  Machine machine{.on_cpu = kernels::on_cpu(), .threads = kernels::threads()};
  const EvaluatingThreadsBody body{&machine.evaluating_threads};
  mx::eval(kernels::cpu_operation("EvaluatingThreads", mx::Shape{1}, {}, body));
  return machine;
}

// Runs `job` once on the engine's thread, as a stream's callback.
template <typename Job>
auto on_engine_thread(Engine& engine, Job job) {
  Request request;
  request.prompt.tokens = Ids{3, 14, 15};
  request.output.max_tokens = 400;
  request.output.ignore_eos = true;
  std::promise<decltype(job())> promise;
  auto value = promise.get_future();
  Stream stream = engine.submit(request);
  stream.on_ready([&, caller = std::this_thread::get_id(), done = false]() mutable {
    if (std::this_thread::get_id() != caller && !std::exchange(done, true)) {
      promise.set_value(job());
    }
  });
  while (value.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    stream.next(std::chrono::milliseconds(1));
  }
  stream.on_ready({});
  return value.get();
}

// What operations of an engine find.
Machine machine_of(Engine& engine) {
  return on_engine_thread(engine, machine_here);
}

Request greedy_request() {
  Request request;
  request.prompt.tokens = Ids{3, 14, 15, 92};
  request.output.max_tokens = 40;
  request.output.ignore_eos = true;
  request.output.logprobs = 3;
  return request;
}

std::unique_ptr<Engine> load_pretending(const ModelFolder& folder, const EngineOptions& options) {
  kernels::pretend_gpu(true);
  auto engine = folder.load(options);
  kernels::pretend_gpu(false);
  return engine;
}

void expect_all_same(
    const std::vector<GenerateResult>& results, const std::vector<GenerateResult>& expected
) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE("request " + std::to_string(i));
    expect_same(results[i], expected[i]);
  }
}

TEST(SideBySide, EachEngineHasItsThreads) {
  const ModelFolder folder("qwen3");
  const Machine here = machine_here();
  const auto one = folder.load({.threads = 1});
  EngineOptions options{.threads = 3};
  int layers = 0;
  options.on_load = [&](int, int) {
    ++layers;
    EXPECT_EQ(machine_here(), (Machine{true, 3, 3}));
    EXPECT_EQ(machine_of(*one), (Machine{true, 1, 1}));
  };
  const auto three = folder.load(options);
  EXPECT_GT(layers, 0);
  EXPECT_EQ(machine_of(*one), (Machine{true, 1, 1}));
  EXPECT_EQ(machine_of(*three), (Machine{true, 3, 3}));
  EXPECT_EQ(machine_here(), here);
}

TEST(SideBySide, AnswersAtTheSameTimeHaveTheBitsOfOneAlone) {
  const ModelFolder qwen("qwen3_q4");
  const ModelFolder gemma("gemma3");
  const auto requests = mixed_requests(60);
  const auto alone_qwen = run_together(*qwen.load({.threads = 2}), requests);
  const auto alone_gemma = run_together(*gemma.load({.threads = 2}), requests);
  const auto one = qwen.load({.threads = 1});
  const auto three = gemma.load({.threads = 3});
  auto of_one = std::async(std::launch::async, [&] { return run_together(*one, requests); });
  const auto of_three = run_together(*three, requests);
  expect_all_same(of_one.get(), alone_qwen);
  expect_all_same(of_three, alone_gemma);
}

TEST(SideBySide, AnEngineOnAGpuLeavesTheOtherOnTheCpu) {
  const ModelFolder folder("qwen3");
  const Request request = greedy_request();
  const GenerateResult alone_cpu = folder.load({.threads = 1})->generate(request);
  const GenerateResult alone_gpu = load_pretending(folder, {.threads = 1})->generate(request);
  const auto gpu = load_pretending(folder, {.threads = 2});
  const auto cpu = folder.load({.threads = 3});
  EXPECT_EQ(gpu->facts().instruction_set, "gpu");
  EXPECT_NE(cpu->facts().instruction_set, "gpu");
  EXPECT_EQ(machine_of(*gpu), (Machine{false, 2, 2}));
  EXPECT_EQ(machine_of(*cpu), (Machine{true, 3, 3}));
  auto of_gpu = std::async(std::launch::async, [&] { return gpu->generate(request); });
  expect_same(cpu->generate(request), alone_cpu);
  expect_same(of_gpu.get(), alone_gpu);
}

// The engine's thread may wait for another engine.
TEST(SideBySide, AThreadOfOneEngineAsksTheOther) {
  const ModelFolder folder("qwen3");
  const auto cpu = folder.load({.threads = 1});
  const auto gpu = load_pretending(folder, {.threads = 1});
  const GenerateResult answer =
      on_engine_thread(*cpu, [&] { return gpu->generate(greedy_request()); });
  EXPECT_EQ(answer.tokens.size(), 40U);
}

#if defined(__linux__)

// Polls, since a joined thread may be listed for a moment.
bool soon_has_tasks(int count) {
  const auto tasks = [] {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator("/proc/self/task"), {})
    );
  };
  for (int i = 0; i < 500 && tasks() != count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(tasks(), count);
  return tasks() == count;
}

TEST(SideBySide, ThreadsEndWithTheirEngine) {
  const ModelFolder folder("qwen3");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto directory = std::filesystem::directory_iterator("/proc/self/task");
  const auto before = static_cast<int>(std::distance(directory, {}));
  auto engine = folder.load({.threads = 5});
  engine->generate(greedy_request());
  // The engine's thread, MLX's for its operations, four workers.
  EXPECT_TRUE(soon_has_tasks(before + 6));
  engine.reset();
  EXPECT_TRUE(soon_has_tasks(before + 1));  // MLX keeps its thread.
}

#endif

}  // namespace
}  // namespace saker::engine
