// SPDX-License-Identifier: Apache-2.0
#include "tests/support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace saker {
namespace {

void require_ok(bool is_ok) {
  if (!is_ok) {
    throw std::runtime_error("OpenSSL can't make a certificate");
  }
}

template <typename Write>
void write_file(const std::filesystem::path& path, Write write) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "w"), std::fclose
  );
  require_ok(file != nullptr && write(file.get()) == 1);
}

}  // namespace

void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key) {
  constexpr long kDay = 86'400;
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> pair(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> made(X509_new(), X509_free);
  require_ok(pair != nullptr && made != nullptr);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), static_cast<long>(std::rand()) + 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kDay);
  X509_set_pubkey(made.get(), pair.get());
  X509_NAME* name = X509_get_subject_name(made.get());
  const auto* common = reinterpret_cast<const unsigned char*>("saker test");
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common, -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> address(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1"),
      X509_EXTENSION_free
  );
  require_ok(address != nullptr && X509_add_ext(made.get(), address.get(), -1) == 1);
  require_ok(X509_sign(made.get(), pair.get(), EVP_sha256()) > 0);
  write_file(certificate, [&](std::FILE* file) { return PEM_write_X509(file, made.get()); });
  write_file(key, [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace saker
