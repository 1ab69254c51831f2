// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/turn.h"

#include "saker/base/error.h"
#include "saker/server/turns/collected_answer.h"
#include "saker/text/chat_template.h"
#include "saker/text/tokenizer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

namespace saker::server {
namespace {

using Clock = std::chrono::steady_clock;

void count_end(Counters& counters, const engine::GenerateResult& result, double seconds) {
  const engine::GenerateStats& stats = result.stats;
  const auto tokens = [](int count) { return static_cast<std::uint64_t>(std::max(count, 0)); };
  counters.prompt_tokens += tokens(stats.prompt_tokens);
  counters.cached_tokens += tokens(stats.cached_tokens);
  counters.generation_tokens += tokens(stats.generation_tokens);
  counters.preemptions += tokens(stats.preemptions);
  counters.draft_rounds += tokens(stats.rounds);
  counters.drafted_tokens += tokens(stats.drafted);
  counters.accepted_tokens += tokens(stats.accepted);
  counters.request_prompt_tokens.add(stats.prompt_tokens);
  counters.request_generation_tokens.add(stats.generation_tokens);
  counters.request_seconds.add(seconds);
  if (stats.generation_tokens > 0) {
    counters.first_token_seconds.add(stats.time_to_first_token_s);
  }
  if (stats.generation_tps > 0) {
    counters.token_seconds.add(1.0 / stats.generation_tps);
  }
  if (is_whole(result)) {
    ++counters.stopped;
  } else if (result.finish_reason == engine::FinishReason::kLength) {
    ++counters.cut;
  } else {
    ++counters.cancelled;
  }
}

// All members run on the server's thread.
class Turn : public std::enable_shared_from_this<Turn> {
 public:
  Turn(
      std::shared_ptr<http::Exchange> exchange,
      std::shared_ptr<const ServedModel> model,
      std::vector<engine::Stream> streams,
      int choices_each,
      std::unique_ptr<Encoder> encoder,
      Delivery delivery
  )
      : exchange_(std::move(exchange)),
        model_(std::move(model)),
        streams_(std::move(streams)),
        choices_each_(choices_each),
        encoder_(std::move(encoder)),
        delivery_(std::move(delivery)) {
    ++model_->counters().running;
    ++model_->counters().waiting;
  }

  ~Turn() { stop(); }

  void start() {
    exchange_->on_gone([self = shared_from_this()] { self->stop(); });
    if (delivery_.streams) {
      exchange_->start(delivery_.head);
      exchange_->set_ping(delivery_.ping);
      exchange_->write(encoder_->begin());
      exchange_->on_room([weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
          self->pump();
        }
      });
    }
    for (engine::Stream& stream : streams_) {
      stream.on_ready([weak = weak_from_this(), exchange = exchange_] {
        exchange->post([weak] {
          if (const auto self = weak.lock()) {
            self->pump();
          }
        });
      });
    }
  }

 private:
  // The first event ends the time in the queue.
  void seen() {
    if (!std::exchange(is_seen_, true)) {
      --model_->counters().waiting;
    }
  }

  void stop() {
    if (std::exchange(is_over_, true)) {
      return;
    }
    report_.model = model_->name();
    report_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    exchange_->report(report_);
    streams_.clear();  // Cancels what runs.
    seen();
    --model_->counters().running;
  }

  void pump() {
    while (!is_over_ && (!delivery_.streams || exchange_->has_room())) {
      std::optional<engine::Event> event = next();
      if (!event) {
        break;
      }
      seen();
      take(std::move(*event));
    }
    const bool is_done =
        std::ranges::all_of(streams_, [](const engine::Stream& stream) { return stream.ended(); });
    if (!is_over_ && is_done) {
      finish();
    }
  }

  // The next event of any stream, with the choice's number among all.
  std::optional<engine::Event> next() {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const std::size_t at = (turn_ + i) % streams_.size();
      if (auto event = streams_[at].next(std::chrono::nanoseconds(0))) {
        event->choice += static_cast<int>(at) * choices_each_;
        turn_ = at + 1;
        return event;
      }
    }
    return std::nullopt;
  }

  void take(engine::Event event) {
    if (const auto* failure = std::get_if<engine::Failure>(&event.what)) {
      return fail(as_api_error(failure->error));
    }
    if (const auto* end = std::get_if<engine::End>(&event.what)) {
      const std::chrono::duration<double> time = Clock::now() - start_;
      count_end(model_->counters(), *end->result, time.count());
      add_to_report(event.choice, *end->result);
    }
    std::string out;
    encoder_->add(std::move(event), out);
    if (delivery_.streams && !out.empty()) {
      exchange_->write(std::move(out));
    }
  }

  void add_to_report(int choice, const engine::GenerateResult& result) {
    const engine::GenerateStats& stats = result.stats;
    if (choice % choices_each_ == 0) {  // Choices share their prompt.
      report_.prompt_tokens += stats.prompt_tokens;
      report_.cached_tokens += stats.cached_tokens;
    }
    if (choice == 0) {
      report_.first_token_seconds = stats.time_to_first_token_s;
    }
    report_.generated_tokens += stats.generation_tokens;
    report_.finish = is_whole(result)                                        ? "stop"
                     : result.finish_reason == engine::FinishReason::kLength ? "length"
                                                                             : "cancelled";
  }

  void finish() {
    stop();
    if (delivery_.streams) {
      exchange_->write(encoder_->end());
      exchange_->finish();
    } else {
      delivery_.head.body = encoder_->end();
      exchange_->respond(std::move(delivery_.head));
    }
    let_go();
  }

  // A client that reads slowly does not keep the model.
  void let_go() {
    encoder_.reset();
    model_.reset();
  }

  void fail(const ApiError& error) {
    ++model_->counters().failed;
    report_.finish = "failed";
    stop();
    if (delivery_.streams) {
      exchange_->write(encoder_->failure(error));
      exchange_->finish();
    } else {
      exchange_->respond(delivery_.failed(error));
    }
    let_go();
  }

  std::shared_ptr<http::Exchange> exchange_;
  std::shared_ptr<const ServedModel> model_;
  std::vector<engine::Stream> streams_;
  int choices_each_;
  std::unique_ptr<Encoder> encoder_;
  Delivery delivery_;
  Clock::time_point start_ = Clock::now();
  http::Report report_{.finish = "cancelled"};
  std::size_t turn_ = 0;  // The stream that is asked first.
  bool is_over_ = false;
  bool is_seen_ = false;
};

// Tokens of a request's prompt, or at least `most`, without the check against the context.
std::int64_t count_tokens(
    const engine::LanguageModel& model, const engine::Prompt& prompt, std::size_t most
) {
  if (prompt.tokens) {
    return static_cast<std::int64_t>(prompt.tokens->size());
  }
  const text::Tokenizer* tokenizer = model.tokenizer();
  if (tokenizer == nullptr || (prompt.messages && model.chat_template() == nullptr)) {
    return 0;
  }
  const std::string text = prompt.messages ? model.chat_template()->render(
                                                 *prompt.messages,
                                                 {.tools = prompt.tools,
                                                  .continues_last = prompt.continues_last,
                                                  .think = prompt.think,
                                                  .template_kwargs = prompt.template_kwargs}
                                             )
                                           : prompt.text.value_or("");
  return static_cast<std::int64_t>(
      tokenizer->encode(text, {.add_special_tokens = !prompt.messages, .most_tokens = most}).size()
  );
}

}  // namespace

void run_turn(
    const std::shared_ptr<http::Exchange>& exchange,
    const std::shared_ptr<const ServedModel>& model,
    std::vector<engine::Stream> streams,
    int choices_each,
    std::unique_ptr<Encoder> encoder,
    Delivery delivery
) {
  auto turn = std::make_shared<Turn>(
      exchange, model, std::move(streams), choices_each, std::move(encoder), std::move(delivery)
  );
  exchange->post([turn = std::move(turn)] { turn->start(); });
}

engine::Stream submit(
    const http::Exchange& exchange, const ServedModel& model, engine::Request request
) {
  const http::Caller& caller = exchange.caller();
  if (!caller.name.empty()) {
    request.placement.user = caller.name;
  }
  // The class of a key outranks what its requests ask for.
  constexpr int kMostPriority = 1'000'000;
  request.placement.priority =
      std::clamp(request.placement.priority, -kMostPriority, kMostPriority) + caller.priority;
  constexpr std::int64_t kCountedContexts = 8;  // Longer prompts are not counted to their end.
  try {
    return model.model().submit(request);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCapacity) {
      ++model.counters().rejected;
    }
    const std::int64_t context = model.context();
    if (error.code() != ErrorCode::kInvalidArgument || context <= 0) {
      throw;
    }
    const std::int64_t tokens = count_tokens(
        model.model(), request.prompt, static_cast<std::size_t>(context * kCountedContexts)
    );
    if (tokens < context) {
      throw;
    }
    throw ApiError(
        400,
        fmt::format(
            "the prompt has {} tokens, but the model's context is {} tokens long", tokens, context
        )
    )
        .with_param(request.prompt.messages ? "messages" : "prompt")
        .with_code("context_length_exceeded")
        .with_counts(tokens, context);
  }
}

}  // namespace saker::server
