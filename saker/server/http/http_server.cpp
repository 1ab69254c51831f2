// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/http_server.h"

#include "saker/base/error.h"
#include "saker/server/http/connection.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/socket_base.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace saker::server::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kSystemd = "systemd";

void require_ok(const error_code& error, const std::string& address) {
  require(!error, ErrorCode::kInvalidArgument, "can't listen on {}: {}", address, error.message());
}

// Removes a socket that nobody listens on: a server that was killed left it.
void remove_stale(const std::string& path, asio::io_context& context) {
  struct stat found{};
  if (lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) {
    return;
  }
  Local::socket socket(context);
  error_code error;
  socket.connect(Local::endpoint(path), error);
  if (error == asio::error::connection_refused) {
    unlink(path.c_str());
  }
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const ServerOptions& options, Handler handler, Refusal refusal)
      : workers_(static_cast<std::size_t>(options.workers)),
        shared_{
            .limits = options.limits,
            .handler = std::move(handler),
            .refusal = std::move(refusal),
            .workers = workers_
        },
        pause_(context_),
        signals_(context_) {
    require(
        options.certificate.empty() == options.certificate_key.empty(),
        ErrorCode::kInvalidArgument,
        "TLS needs a certificate and its key"
    );
    if (!options.certificate.empty()) {
      tls_.emplace(options.certificate, options.certificate_key);
    }
    if (options.host == kSystemd) {
      take_inherited();
    } else if (options.host.starts_with(kUnix)) {
      listen_local(options.host.substr(kUnix.size()));
    } else {
      listen_tcp(options);
    }
  }

  ~Impl() {
    close_all();
    workers_.join();
    context_.restart();
    context_.poll();  // Ends what the handlers still posted.
    if (!path_.empty()) {
      unlink(path_.c_str());
    }
  }

  void listen_local(const std::string& path) {
    const std::string address = std::string(kUnix) + path;
    require(
        !path.empty() && path.size() < sizeof(sockaddr_un::sun_path),
        ErrorCode::kInvalidArgument,
        "can't listen on {}: expected a path of 1 to {} bytes",
        address,
        sizeof(sockaddr_un::sun_path) - 1
    );
    remove_stale(path, context_);
    error_code error;
    auto& acceptor = local_.emplace(context_);
    acceptor.open(Local(), error);
    require_ok(error, address);
    const mode_t before = umask(0177);  // For its owner alone.
    acceptor.bind(Local::endpoint(path), error);
    umask(before);
    require_ok(error, address);
    path_ = path;
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    require_ok(error, address);
    is_loopback_ = true;
    address_ = address;
    accept(acceptor);
  }

  void listen_tcp(const ServerOptions& options) {
    const std::string address = fmt::format("{}:{}", options.host, options.port);
    error_code error;
    Tcp::resolver resolver(context_);
    const auto found = resolver.resolve(options.host, std::to_string(options.port), error);
    require_ok(error, address);
    const Tcp::endpoint endpoint = found.begin()->endpoint();
    auto& acceptor = tcp_.emplace(context_);
    acceptor.open(endpoint.protocol(), error);
    require_ok(error, address);
    acceptor.set_option(asio::socket_base::reuse_address(true), error);
    acceptor.bind(endpoint, error);
    require_ok(error, address);
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    require_ok(error, address);
    begin_tcp(acceptor);
  }

  void begin_tcp(Tcp::acceptor& acceptor) {
    const Tcp::endpoint endpoint = acceptor.local_endpoint();
    port_ = endpoint.port();
    is_loopback_ = endpoint.address().is_loopback();
    const std::string host = endpoint.address().to_string();
    const std::string_view scheme = tls_ ? "https" : "http";
    address_ = endpoint.address().is_v6() ? fmt::format("{}://[{}]:{}", scheme, host, port_)
                                          : fmt::format("{}://{}:{}", scheme, host, port_);
    accept(acceptor);
  }

  // A socket that listens already, as systemd hands it over (sd_listen_fds(3)).
  void take_inherited() {
    constexpr int kFirst = 3;
    const char* pid = std::getenv("LISTEN_PID");
    const char* count = std::getenv("LISTEN_FDS");
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    require(
        pid != nullptr && count != nullptr && std::to_string(getpid()) == pid &&
            std::string_view(count) == "1" &&
            getsockname(kFirst, reinterpret_cast<sockaddr*>(&bound), &size) == 0,
        ErrorCode::kInvalidArgument,
        "can't listen on {}: no socket was handed over (LISTEN_PID, LISTEN_FDS=1)",
        kSystemd
    );
    fcntl(kFirst, F_SETFD, FD_CLOEXEC);
    error_code error;
    if (bound.ss_family == AF_UNIX) {
      auto& acceptor = local_.emplace(context_);
      acceptor.assign(Local(), kFirst, error);
      require_ok(error, std::string(kSystemd));
      is_loopback_ = true;
      address_ = std::string(kUnix) + acceptor.local_endpoint().path();
      return accept(acceptor);
    }
    auto& acceptor = tcp_.emplace(context_);
    acceptor.assign(bound.ss_family == AF_INET6 ? Tcp::v6() : Tcp::v4(), kFirst, error);
    require_ok(error, std::string(kSystemd));
    begin_tcp(acceptor);
  }

  template <typename Acceptor>
  void accept(Acceptor& acceptor) {
    using Socket = typename Acceptor::protocol_type::socket;
    acceptor.async_accept([this, &acceptor](const error_code& error, Socket socket) {
      if (error == asio::error::operation_aborted || !acceptor.is_open()) {
        return;
      }
      if (error) {  // Descriptors are out: wait, so that this does not spin.
        pause_.expires_after(std::chrono::milliseconds(100));
        pause_.async_wait([this, &acceptor](const error_code& ended) {
          if (!ended) {
            accept(acceptor);
          }
        });
        return;
      }
      begin(std::move(socket));
      accept(acceptor);
    });
  }

  template <typename Socket>
  void begin(Socket socket) {
    if (shared_.connections.size() >= shared_.limits.connections) {
      return;  // The socket closes.
    }
    bool is_loopback = true;
    error_code ignored;
    if constexpr (std::is_same_v<Socket, Tcp::socket>) {
      socket.set_option(Tcp::no_delay(true), ignored);
      const auto peer = socket.remote_endpoint(ignored);
      is_loopback = !ignored && peer.address().is_loopback();
    }
    std::unique_ptr<TlsSession> tls = tls_ ? tls_->session() : nullptr;
    if (tls_ && !tls) {
      return;
    }
    std::make_shared<Connection>(
        Connection::Socket(std::move(socket)), shared_, is_loopback, std::move(tls)
    )
        ->start();
  }

  void close_acceptors() {
    error_code ignored;
    if (tcp_) {
      tcp_->close(ignored);
    }
    if (local_) {
      local_->close(ignored);
    }
  }

  std::vector<std::shared_ptr<Connection>> connections() {
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [_, connection] : shared_.connections) {
      if (auto one = connection.lock()) {
        all.push_back(std::move(one));
      }
    }
    return all;
  }

  void close_all() {
    close_acceptors();
    signals_.cancel();
    for (const auto& connection : connections()) {
      connection->close();
    }
  }

  void close_after_answers() {
    close_acceptors();
    shared_.is_closing = true;
    for (const auto& connection : connections()) {
      connection->close_after_answer();
    }
  }

  void wait_for_signal() {
    signals_.async_wait([this](const error_code& error, int signal) {
      if (error) {
        return;
      }
      if (signal == SIGHUP) {
        tls_->reload();
      } else {
        on_signal_();
      }
      wait_for_signal();
    });
  }

  asio::io_context context_{1};
  asio::thread_pool workers_;
  Shared shared_;
  std::optional<TlsContext> tls_;
  std::optional<Tcp::acceptor> tcp_;
  std::optional<Local::acceptor> local_;
  asio::steady_timer pause_;
  asio::signal_set signals_;
  std::function<void()> on_signal_;
  std::string path_;  // A unix socket's path.
  std::string address_;
  int port_ = 0;
  bool is_loopback_ = false;
};

HttpServer::HttpServer(const ServerOptions& options, Handler handler, Refusal refusal)
    : impl_(std::make_unique<Impl>(options, std::move(handler), std::move(refusal))) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return impl_->port_;
}

bool HttpServer::is_loopback() const {
  return impl_->is_loopback_;
}

std::string HttpServer::address() const {
  return impl_->address_;
}

void HttpServer::run() {
  while (true) {
    try {
      impl_->context_.run();
      return;
    } catch (const std::exception& error) {  // Without memory one answer is lost, not all.
      spdlog::error("the server's thread: {}", error.what());
    }
  }
}

std::size_t HttpServer::answering() const {
  return impl_->shared_.answering;
}

void HttpServer::stop() {
  asio::post(impl_->context_, [this] {
    impl_->close_all();
    impl_->context_.stop();
  });
}

void HttpServer::close_after_answers() {
  asio::post(impl_->context_, [this] { impl_->close_after_answers(); });
}

void HttpServer::after(int milliseconds, std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(
      impl_->context_, std::chrono::milliseconds(milliseconds)
  );
  timer->async_wait([timer, work = std::move(work)](const error_code& error) {
    if (!error) {
      work();
    }
  });
}

void HttpServer::on_signal(std::function<void()> call) {
  impl_->on_signal_ = std::move(call);
  impl_->signals_.add(SIGINT);
  impl_->signals_.add(SIGTERM);
  if (impl_->tls_) {
    impl_->signals_.add(SIGHUP);
  }
  impl_->wait_for_signal();
}

}  // namespace saker::server::http
