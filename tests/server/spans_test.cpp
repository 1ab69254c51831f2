// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"
#include "saker/server/request_spans.h"
#include "saker/server/spans/sampler.h"
#include "saker/server/spans/span.h"
#include "saker/server/spans/span_queue.h"
#include "saker/server/trace_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace saker::server {
namespace {

using spans::Sent;
using spans::Span;
using spans::SpanQueue;
using std::chrono::milliseconds;

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00f067aa0ba902b7";

http::Request post(const std::string& path) {
  http::Request request;
  request.method = "POST";
  request.path = path;
  return request;
}

LoggedRequest ended(int status) {
  LoggedRequest logged{
      .id = "req_1", .trace = kTrace, .span = "1111111111111111", .parent = kParent
  };
  logged.status = status;
  logged.start = std::chrono::system_clock::time_point(std::chrono::seconds(1000));
  logged.seconds = 2.0;
  return logged;
}

TEST(Spans, AGenerationIsBelowItsRequest) {
  LoggedRequest logged = ended(200);
  logged.report = http::Report{
      .model = "m",
      .prompt_tokens = 5,
      .cached_tokens = 2,
      .generated_tokens = 7,
      .first_token_seconds = 0.25,
      .seconds = 1.0,
      .finish = "stop"
  };
  logged.report_seconds = 1.5;
  const auto found = spans_of(post("/v1/chat/completions"), logged);
  ASSERT_EQ(found.size(), 2U);
  const Span& server = found[0];
  const Span& generation = found[1];
  EXPECT_EQ(server.name, "POST /v1/chat/completions");
  EXPECT_EQ(server.kind, spans::SpanKind::kServer);
  EXPECT_EQ(server.parent, kParent);
  EXPECT_EQ(server.start_ns, 1'000'000'000'000);
  EXPECT_EQ(server.end_ns, 1'002'000'000'000);
  EXPECT_EQ(server.attributes["http.response.status_code"], 200);
  EXPECT_TRUE(server.error.empty());
  EXPECT_EQ(generation.name, "chat m");
  EXPECT_EQ(generation.trace, kTrace);
  EXPECT_EQ(generation.parent, server.id);
  EXPECT_EQ(generation.start_ns, 1'000'500'000'000);
  EXPECT_EQ(generation.end_ns, 1'001'500'000'000);
  EXPECT_EQ(generation.attributes["gen_ai.usage.input_tokens"], 5);
  EXPECT_EQ(generation.attributes["gen_ai.usage.output_tokens"], 7);
  EXPECT_EQ(generation.attributes["gen_ai.response.finish_reasons"], Json::array({"stop"}));
  EXPECT_EQ(spans_of(post("/x"), ended(503)).front().error, "status 503");
  EXPECT_FALSE(has_spans("/metrics"));
  EXPECT_FALSE(has_spans("/page/katex.js"));
  EXPECT_TRUE(has_spans("/v1/models"));
}

TEST(Spans, AreWrittenAsOtlp) {
  const Span span{
      .trace = kTrace,
      .id = "1111111111111111",
      .parent = kParent,
      .name = "a",
      .start_ns = 1,
      .end_ns = 2,
      .attributes = {{"text", "t"}, {"count", 3}, {"share", 0.5}, {"yes", true}, {"list", {"a"}}},
      .error = "broken"
  };
  const Json body = parse_json(spans::otlp_json({{"service.name", "s"}}, {span}), "body");
  const Json& resource = body["resourceSpans"][0];
  EXPECT_EQ(
      resource["resource"]["attributes"][0],
      (Json{{"key", "service.name"}, {"value", {{"stringValue", "s"}}}})
  );
  const Json& written = resource["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(written["traceId"], kTrace);
  EXPECT_EQ(written["parentSpanId"], kParent);
  EXPECT_EQ(written["kind"], 1);
  EXPECT_EQ(written["startTimeUnixNano"], "1");
  EXPECT_EQ(written["status"], (Json{{"code", 2}, {"message", "broken"}}));
  const Json& attributes = written["attributes"];
  EXPECT_EQ(attributes[1]["value"], (Json{{"intValue", "3"}}));
  EXPECT_EQ(attributes[2]["value"], (Json{{"doubleValue", 0.5}}));
  EXPECT_EQ(attributes[3]["value"], (Json{{"boolValue", true}}));
  EXPECT_EQ(attributes[4]["value"]["arrayValue"]["values"][0], (Json{{"stringValue", "a"}}));
}

TEST(Spans, SamplersDecideAsTheirNamesSay) {
  const std::string low = std::string(31, '0') + "1";
  const std::string high(32, 'f');
  EXPECT_TRUE(spans::parse_sampler("", "").samples(std::nullopt, high));
  EXPECT_FALSE(spans::parse_sampler("", "").samples(false, high));
  EXPECT_TRUE(spans::parse_sampler("always_on", "").samples(false, high));
  EXPECT_FALSE(spans::parse_sampler("always_off", "").samples(true, low));
  EXPECT_TRUE(spans::parse_sampler("parentbased_always_off", "").samples(true, low));
  const spans::Sampler half = spans::parse_sampler("parentbased_traceidratio", "0.5");
  EXPECT_TRUE(half.samples(std::nullopt, low));
  EXPECT_FALSE(half.samples(std::nullopt, high));
  EXPECT_TRUE(half.samples(true, high));
  EXPECT_FALSE(spans::parse_sampler("traceidratio", "0").samples(std::nullopt, low));
  for (const auto& [name, argument] :
       {std::pair("jaeger_remote", ""),
        std::pair("traceidratio", "2"),
        std::pair("traceidratio", "x")}) {
    EXPECT_THROW(spans::parse_sampler(name, argument), Error);
  }
}

// A collector that keeps bodies, and says what it is told to.
struct Collector {
  std::mutex mutex;
  std::vector<std::string> bodies;
  std::atomic<Sent> says = Sent::kYes;
  milliseconds takes{0};

  spans::SpanQueueOptions options() {
    return {
        .send =
            [this](const std::string& body, milliseconds limit, const std::stop_token& stop) {
              const auto end = std::chrono::steady_clock::now() + std::min(limit, takes);
              while (std::chrono::steady_clock::now() < end && !stop.stop_requested()) {
                std::this_thread::sleep_for(milliseconds(1));
              }
              const std::lock_guard lock(mutex);
              bodies.push_back(body);
              return takes > limit || stop.stop_requested() ? Sent::kLater : says.load();
            },
        .most_spans = 8,
        .batch = 4,
        .delay = milliseconds(20),
    };
  }
};

std::vector<Span> some(int count) {
  return std::vector<Span>(
      static_cast<std::size_t>(count), Span{.trace = kTrace, .id = kParent, .name = "a"}
  );
}

bool becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return condition();
}

TEST(SpanQueue, SendsBatchesAndWhatIsLeft) {
  Collector collector;
  {
    SpanQueue queue(collector.options());
    queue.add(some(3));
    ASSERT_TRUE(becomes([&] { return queue.sent() == 3; }));
    queue.add(some(6));
  }
  std::size_t count = 0;
  for (const std::string& body : collector.bodies) {
    count += parse_json(body, "body")["resourceSpans"][0]["scopeSpans"][0]["spans"].size();
  }
  EXPECT_EQ(count, 9U);
}

TEST(SpanQueue, AFullQueueDropsAndNobodyWaits) {
  Collector collector;
  collector.takes = std::chrono::hours(1);
  auto options = collector.options();
  options.limit = std::chrono::hours(1);
  const auto start = std::chrono::steady_clock::now();
  {
    SpanQueue queue(std::move(options));
    for (int i = 0; i < 1000; ++i) {
      queue.add(some(2));
    }
    EXPECT_GE(queue.dropped(), 1900U);
  }
  // The end gives a hanging collector two seconds.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

TEST(SpanQueue, ACollectorThatRefusesLosesTheSpans) {
  Collector collector;
  collector.says = Sent::kNo;
  SpanQueue queue(collector.options());
  queue.add(some(2));
  ASSERT_TRUE(becomes([&] { return queue.dropped() == 2; }));
  collector.says = Sent::kYes;
  queue.add(some(1));
  ASSERT_TRUE(becomes([&] { return queue.sent() == 1; }));
}

}  // namespace
}  // namespace saker::server
