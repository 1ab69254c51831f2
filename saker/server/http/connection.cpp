// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

namespace saker::server::http {

namespace asio = boost::asio;
using boost::system::error_code;

// Forwards to the connection's thread. Calls of an exchange that has ended are ignored.
class Connection::OneExchange : public Exchange {
 public:
  OneExchange(std::shared_ptr<Connection> connection, Request request)
      : connection_(std::move(connection)),
        request_(std::move(request)),
        executor_(connection_->socket_.get_executor()),
        unsent_(connection_->unsent_),
        serial_(connection_->serial_) {}

  ~OneExchange() override {
    asio::post(executor_, [connection = std::move(connection_), serial = serial_] {
      if (connection->is_current(serial) && !connection->ended_) {
        connection->refuse({500, "the request was not answered"});
      }
    });
  }

  const Request& request() const override { return request_; }

  const Caller& caller() const override { return caller_; }

  void report(Report /*report*/) override {}

  void respond(Response response) override {
    run([response = std::move(response)](Connection& one) mutable {
      one.respond(std::move(response));
    });
  }

  void start(Response head) override {
    run([head = std::move(head)](Connection& one) { one.begin_stream(head); });
  }

  void write(std::string piece) override {
    run([piece = std::move(piece)](Connection& one) { one.add(piece); });
  }

  void finish() override {
    run([](Connection& one) { one.end(); });
  }

  bool has_room() const override { return unsent_->load() < kSliceBytes; }

  void on_room(std::function<void()> call) override {
    run([call = std::move(call)](Connection& one) mutable { one.on_room_ = std::move(call); });
  }

  void set_ping(std::string piece) override {
    run([piece = std::move(piece)](Connection& one) mutable {
      one.ping_ = std::move(piece);
      one.set_ping_timer();
    });
  }

  void on_gone(std::function<void()> call) override {
    asio::dispatch(
        executor_,
        [connection = connection_, serial = serial_, call = std::move(call)]() mutable {
          if (!connection->is_current(serial)) {
            call();
          } else {
            connection->on_gone_ = std::move(call);
          }
        }
    );
  }

  void post(std::function<void()> work) override { asio::post(executor_, std::move(work)); }

  void after(int milliseconds, std::function<void()> call) override {
    auto timer =
        std::make_shared<asio::steady_timer>(executor_, std::chrono::milliseconds(milliseconds));
    timer->async_wait([timer, connection = connection_, serial = serial_, call = std::move(call)](
                          const error_code& error
                      ) {
      if (!error && connection->is_current(serial)) {
        call();
      }
    });
  }

 private:
  template <typename Work>
  void run(Work work) {
    asio::dispatch(
        executor_,
        [connection = connection_, serial = serial_, work = std::move(work)]() mutable {
          if (connection->is_current(serial)) {
            work(*connection);
          }
        }
    );
  }

  std::shared_ptr<Connection> connection_;
  Request request_;
  Caller caller_;  // Nobody.
  asio::any_io_executor executor_;
  std::shared_ptr<std::atomic<std::size_t>> unsent_;
  std::size_t serial_;
};

Connection::Connection(
    Socket socket, Shared& shared, bool is_loopback, std::unique_ptr<TlsSession> tls
)
    : socket_(std::move(socket)),
      tls_(std::move(tls)),
      shared_(shared),
      is_loopback_(is_loopback),
      reader_(shared.limits),
      timer_(socket_.get_executor()),
      write_timer_(socket_.get_executor()),
      ping_timer_(socket_.get_executor()) {}

Connection::~Connection() = default;

void Connection::start() {
  shared_.connections.emplace(this, weak_from_this());
  error_code ignored;
  socket_.non_blocking(true, ignored);
  set_timer(tls_ ? shared_.limits.head_time : shared_.limits.idle_time);
  wait_readable();
}

void Connection::close_after_answer() {
  keep_alive_ = false;
  if (!answering_ && !lingering_) {
    close();
  }
}

void Connection::close() {
  if (std::exchange(closed_, true)) {
    return;
  }
  const auto self = shared_from_this();
  timer_.cancel();
  write_timer_.cancel();
  ping_timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  shared_.connections.erase(this);
  shared_.answering -= std::exchange(answering_, false) ? 1 : 0;
  count_bytes(0);
  on_room_ = nullptr;
  if (const auto gone = std::exchange(on_gone_, nullptr)) {
    gone();
  }
}

void Connection::count_bytes(std::size_t now) {
  shared_.body_bytes += now;
  shared_.body_bytes -= std::exchange(counted_bytes_, now);
}

void Connection::wait_readable() {
  if (waiting_ || closed_) {
    return;
  }
  waiting_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->waiting_ = false;
    if (!self->closed_ && !error) {
      self->read_some();
    }
  });
}

void Connection::read_some() {
  error_code error;
  const std::size_t bytes = socket_.read_some(asio::buffer(shared_.buffer), error);
  if (error == asio::error::would_block || error == asio::error::try_again) {
    return wait_readable();
  }
  if (error) {
    return close();  // The client has gone.
  }
  const auto self = shared_from_this();
  const std::string_view read(shared_.buffer.data(), bytes);
  tls_ ? take_encrypted(read) : take(read);
  if (pending_.size() <= shared_.limits.head_bytes) {
    wait_readable();
  }
}

void Connection::take_encrypted(std::string_view bytes) {
  const bool was_open = tls_->is_open();
  std::string plain;
  const bool goes_on = tls_->take(bytes, plain);
  if (!was_open && tls_->is_open()) {
    set_timer(shared_.limits.idle_time);
  }
  send();  // The handshake's part.
  if (!plain.empty()) {
    take(plain);
  }
  if (!goes_on) {
    close();
  }
}

void Connection::take(std::string_view bytes) {
  if (lingering_) {
    return;
  }
  if (answering_) {
    pending_ += bytes;
    return;
  }
  handle(reader_.take(bytes));
}

void Connection::handle(RequestReader::Stage stage) {
  count_bytes(reader_.held_bytes());
  if (shared_.body_bytes > shared_.limits.all_bodies && stage != RequestReader::Stage::kBad) {
    return refuse({503, "the server holds too many bytes of requests; try again later"});
  }
  switch (stage) {
    case RequestReader::Stage::kHead:
      if (reader_.has_begun() && !std::exchange(in_head_, true)) {
        set_timer(shared_.limits.head_time);
      }
      return;
    case RequestReader::Stage::kBody:
      in_head_ = false;
      set_timer(shared_.limits.body_time);
      if (reader_.wants_continue()) {
        out_ += "HTTP/1.1 100 Continue\r\n\r\n";
        send();
      }
      return;
    case RequestReader::Stage::kDone:
      in_head_ = false;
      return begin_answer();
    case RequestReader::Stage::kBad:
      return refuse(reader_.bad());
  }
}

void Connection::begin_answer() {
  timer_.cancel();
  Request request = reader_.release();
  request.is_loopback = is_loopback_;
  ++serial_;
  answering_ = true;
  ++shared_.answering;
  started_ = false;
  ended_ = false;
  keep_alive_ = request.keep_alive && !shared_.is_closing;
  head_only_ = request.method == "HEAD";
  minor_version_ = request.minor_version;
  count_bytes(request.body.size());
  if (shared_.answering > shared_.limits.requests) {
    return refuse({503, "the server answers too many requests; try again later"});
  }
  asio::post(
      shared_.workers,
      [&handler = shared_.handler,
       exchange = std::shared_ptr<Exchange>(
           std::make_shared<OneExchange>(shared_from_this(), std::move(request))
       )] {
        try {
          handler(exchange);
        } catch (const std::exception& error) {
          spdlog::error("a request failed: {}", error.what());
        }
      }
  );
}

void Connection::refuse(const BadRequest& bad) {
  if (!answering_) {
    ++serial_;
    answering_ = true;
    ++shared_.answering;
    started_ = false;
    ended_ = false;
    head_only_ = false;
  }
  timer_.cancel();
  keep_alive_ = false;
  if (started_) {
    return close();  // Too late for a status: the client sees that the answer is cut off.
  }
  respond(shared_.refusal(bad));
}

void Connection::respond(Response response) {
  if (std::exchange(started_, true)) {
    return;
  }
  out_ += response_head(response, response.body.size(), Framing::kLength, keep_alive_);
  if (!head_only_ && response.status != 204) {
    out_ += response.body;
  }
  ended_ = true;
  send();
}

void Connection::begin_stream(const Response& head) {
  if (std::exchange(started_, true)) {
    return;
  }
  chunked_ = minor_version_ >= 1;
  keep_alive_ = keep_alive_ && chunked_;
  out_ += response_head(head, 0, chunked_ ? Framing::kChunked : Framing::kUntilClose, keep_alive_);
  send();
}

void Connection::add(std::string_view piece) {
  if (!started_ || ended_ || head_only_ || piece.empty()) {
    return;
  }
  out_ += chunked_ ? chunk(piece) : std::string(piece);
  send();
  set_ping_timer();
}

void Connection::end() {
  if (!started_ || std::exchange(ended_, true)) {
    return;
  }
  if (chunked_ && !head_only_) {
    out_ += last_chunk();
  }
  ping_timer_.cancel();
  send();
  if (!sending_now_) {  // Nothing is left to send.
    asio::post(socket_.get_executor(), [self = shared_from_this(), serial = serial_] {
      if (self->is_current(serial)) {
        self->end_answer();
      }
    });
  }
}

void Connection::send() {
  unsent_->store(out_.size() + sending_.size() - sent_);
  if (sending_now_ || closed_) {
    return;
  }
  if (sent_ == sending_.size()) {
    sending_ = std::exchange(out_, {});
    if (tls_) {
      sending_ = tls_->wire(sending_);
    }
    sent_ = 0;
    if (sending_.empty()) {
      return;
    }
    set_write_timer();
  }
  sending_now_ = true;
  const std::size_t size = std::min(sending_.size() - sent_, kSliceBytes);
  socket_.async_write_some(
      asio::buffer(sending_.data() + sent_, size),
      [self = shared_from_this()](const error_code& error, std::size_t bytes) {
        self->sending_now_ = false;
        if (self->closed_) {
          return;
        }
        if (error) {
          return self->close();
        }
        self->sent(bytes);
      }
  );
}

void Connection::sent(std::size_t bytes) {
  const std::size_t slice = sent_ / kSliceBytes;
  sent_ += bytes;
  if (sent_ == sending_.size()) {
    write_timer_.cancel();
    sending_.clear();
    sending_.shrink_to_fit();
    sent_ = 0;
  } else if (sent_ / kSliceBytes != slice) {
    set_write_timer();
  }
  send();
  if (!sending_now_ && answering_ && ended_) {
    return end_answer();
  }
  if (const auto call = on_room_; call && unsent_->load() < kSliceBytes) {
    call();
  }
}

void Connection::end_answer() {
  const auto self = shared_from_this();
  answering_ = false;
  --shared_.answering;
  count_bytes(0);
  on_gone_ = nullptr;
  on_room_ = nullptr;
  ping_.clear();
  if (!keep_alive_ || shared_.is_closing) {
    return linger();
  }
  set_timer(shared_.limits.idle_time);
  handle(reader_.take(std::exchange(pending_, {})));
  wait_readable();
}

// Without it the system would discard the answer if the client still sends.
void Connection::linger() {
  lingering_ = true;
  pending_.clear();
  error_code ignored;
  if (tls_) {
    socket_.write_some(asio::buffer(tls_->end()), ignored);
  }
  socket_.shutdown(Socket::shutdown_send, ignored);
  set_timer(shared_.limits.linger_time);
  wait_readable();
}

void Connection::set_timer(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->closed_ || self->answering_ ||
        self->timer_.expiry() > std::chrono::steady_clock::now()) {
      return;
    }
    const bool says_so = !self->lingering_ && self->reader_.is_reading();
    if (says_so) {
      self->refuse({408, "the request took too long to come"});
    } else {
      self->close();
    }
  });
}

void Connection::set_write_timer() {
  write_timer_.expires_after(shared_.limits.write_time);
  write_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && !self->closed_ &&
        self->write_timer_.expiry() <= std::chrono::steady_clock::now()) {
      self->close();  // The client reads too slowly.
    }
  });
}

void Connection::set_ping_timer() {
  if (ping_.empty() || ended_) {
    return;
  }
  ping_timer_.expires_after(shared_.limits.ping_time);
  ping_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && !self->closed_ && self->answering_ && !self->ended_ && !self->ping_.empty()) {
      self->add(std::string(self->ping_));
    }
  });
}

}  // namespace saker::server::http
