// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/tls.h"

#include "saker/base/error.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

namespace saker::server::http {
namespace {

// The first reason that OpenSSL has; the others are dropped.
std::string reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "unknown reason" : text;
}

// OpenSSL takes sizes as int.
int size_of(std::string_view bytes) {
  return static_cast<int>(std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max() / 2));
}

// Of the protocols that a client offers by ALPN, the one that is spoken here.
int choose_protocol(
    SSL* /*ssl*/,
    const unsigned char** out,
    unsigned char* out_size,
    const unsigned char* in,
    unsigned in_size,
    void* /*unused*/
) {
  constexpr std::array<unsigned char, 9> kOurs{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, out_size, kOurs.data(), kOurs.size(), in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

// OpenSSL would ask on the terminal for the passphrase of a key, and wait.
int no_passphrase(char* /*to*/, int /*size*/, int /*is_new*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

std::shared_ptr<ssl_ctx_st> read_context(
    const std::filesystem::path& certificate, const std::filesystem::path& key
) {
  ERR_clear_error();
  std::shared_ptr<ssl_ctx_st> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  require(context != nullptr, ErrorCode::kCapacity, "TLS: {}", reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  require(
      SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) == 1,
      ErrorCode::kInvalidArgument,
      "{}: no certificate in PEM: {}",
      certificate.string(),
      reason()
  );
  bool has_passphrase = false;
  SSL_CTX_set_default_passwd_cb(context.get(), no_passphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context.get(), &has_passphrase);
  const bool has_key =
      SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context.get(), nullptr);
  require(
      !has_passphrase,
      ErrorCode::kInvalidArgument,
      "{}: the key has a passphrase, expected one without",
      key.string()
  );
  require(
      has_key,
      ErrorCode::kInvalidArgument,
      "{}: no key in PEM for that certificate: {}",
      key.string(),
      reason()
  );
  require(
      SSL_CTX_check_private_key(context.get()) == 1,
      ErrorCode::kInvalidArgument,
      "{} is not the key of {}",
      key.string(),
      certificate.string()
  );
  return context;
}

// All bytes that wait in a buffer of OpenSSL's.
std::string drain(BIO* bio) {
  std::string bytes(BIO_ctrl_pending(bio), '\0');
  const int read = bytes.empty() ? 0 : BIO_read(bio, bytes.data(), size_of(bytes));
  bytes.resize(static_cast<std::size_t>(std::max(read, 0)));
  return bytes;
}

}  // namespace

TlsSession::TlsSession(ssl_st* session) : ssl_(session) {}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

bool TlsSession::is_open() const {
  return SSL_is_init_finished(ssl_) == 1;
}

bool TlsSession::take(std::string_view bytes, std::string& plain) {
  ERR_clear_error();
  if (BIO_write(SSL_get_rbio(ssl_), bytes.data(), size_of(bytes)) != size_of(bytes)) {
    return false;
  }
  std::array<char, 16384> piece{};
  while (true) {
    const int read = SSL_read(ssl_, piece.data(), static_cast<int>(piece.size()));
    if (read <= 0) {
      return SSL_get_error(ssl_, read) == SSL_ERROR_WANT_READ;
    }
    plain.append(piece.data(), static_cast<std::size_t>(read));
  }
}

std::string TlsSession::wire(std::string_view plain) {
  ERR_clear_error();
  while (!plain.empty()) {
    const int written = SSL_write(ssl_, plain.data(), size_of(plain));
    if (written <= 0) {
      break;  // The session is broken: the client sees it.
    }
    plain.remove_prefix(static_cast<std::size_t>(written));
  }
  return drain(SSL_get_wbio(ssl_));
}

std::string TlsSession::end() {
  ERR_clear_error();
  SSL_shutdown(ssl_);
  return drain(SSL_get_wbio(ssl_));
}

TlsContext::TlsContext(std::filesystem::path certificate, std::filesystem::path key)
    : certificate_(std::move(certificate)),
      key_(std::move(key)),
      read_(times()),
      context_(read_context(certificate_, key_)) {}

TlsContext::Times TlsContext::times() const {
  std::error_code ignored;
  return {
      std::filesystem::last_write_time(certificate_, ignored),
      std::filesystem::last_write_time(key_, ignored)
  };
}

void TlsContext::reload() {
  const Times now = times();
  try {
    context_ = read_context(certificate_, key_);
    spdlog::info("TLS: {} is read again", certificate_.string());
  } catch (const Error& error) {
    spdlog::error("TLS: {}; the old certificate stays in use", error.what());
  }
  read_ = now;
}

std::unique_ptr<TlsSession> TlsContext::session() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ >= std::chrono::seconds(1)) {
    looked_ = now;
    if (times() != read_) {
      reload();
    }
  }
  SSL* ssl = SSL_new(context_.get());
  if (ssl == nullptr) {
    return nullptr;
  }
  auto session = std::make_unique<TlsSession>(ssl);
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  if (in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    return nullptr;
  }
  SSL_set_bio(ssl, in, out);
  SSL_set_accept_state(ssl);
  return session;
}

}  // namespace saker::server::http
