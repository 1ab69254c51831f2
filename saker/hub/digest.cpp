// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/digest.h"

#include "saker/base/error.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace saker::hub {

Digest::Digest(DigestKind kind, std::uintmax_t size) : context_(EVP_MD_CTX_new()) {
  const EVP_MD* algorithm = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  require(
      context_ != nullptr && EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1,
      ErrorCode::kUnsupported,
      "OpenSSL gives no {} here",
      kind == DigestKind::kSha256 ? "SHA-256" : "SHA-1"
  );
  if (kind == DigestKind::kGitBlob) {
    const std::string head = fmt::format("blob {}", size);
    add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
  }
}

void Digest::add(std::span<const std::byte> bytes) {
  require(
      EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1,
      ErrorCode::kInternal,
      "OpenSSL failed to digest {} bytes",
      bytes.size()
  );
}

std::string Digest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  require(
      EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1,
      ErrorCode::kInternal,
      "OpenSSL failed to finish a digest"
  );
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += fmt::format("{:02x}", digest[i]);
  }
  return text;
}

void Digest::Free::operator()(EVP_MD_CTX* context) const {
  EVP_MD_CTX_free(context);
}

}  // namespace saker::hub
