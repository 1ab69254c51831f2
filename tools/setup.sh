#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what a build needs and says what it installs; says nothing when all is there.
#   tools/setup.sh           compilers, libraries, test libraries, Rust
#   tools/setup.sh checks    also what formatting, clang-tidy, fuzzing and tests of the page, of clients and of routers need
#   tools/setup.sh races     that, and what names the functions in reports of races
#   tools/setup.sh coverage  also what counts lines
#   tools/setup.sh docs      also what `make docs` needs
#   tools/setup.sh all       also what single tests of `make check-all` need: a cross-compiler with an
#                            emulator of 64-bit ARM, Prometheus' promtool
# Root or sudo is used only when something is missing. Talks to stderr, never reads stdin.
# Tried on Debian 12. The Ubuntu 24.04 and macOS paths are written but not yet tried.
set -eu
exec </dev/null 1>&2

want=${1:-build}
rust_minimum=1.87
build_packages="g++ cmake ninja-build ccache python3 python3-pip python3-dev python3-venv ca-certificates
  nlohmann-json3-dev libcli11-dev libfmt-dev libspdlog-dev libcurl4-openssl-dev libssl-dev
  libtomlplusplus-dev libboost1.81-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libsimde-dev"
check_packages="clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev npm chromium fonts-dejavu-core libzmq5 patchelf mandoc"
race_packages="llvm-19"
coverage_packages="gcovr"
docs_packages="doxygen"
all_packages="g++-aarch64-linux-gnu qemu-user-static prometheus curl"
python_header='import os, sysconfig; os.stat(sysconfig.get_paths()["include"] + "/Python.h")'
brew_packages="cmake ninja ccache python nlohmann-json cli11 fmt spdlog openssl@3 tomlplusplus boost googletest google-benchmark simde"

say() { printf 'setup: %s\n' "$*"; }

fail() {
  say "$*"
  exit 1
}

# Sets `root` to the command that gives root, or fails: sudo may ask on the terminal, never on stdin.
find_root() {
  root=""
  [ "$(id -u)" = 0 ] && return
  root=sudo
  command -v sudo >/dev/null && { sudo -n true 2>/dev/null || (: </dev/tty) 2>/dev/null; }
}

apt_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

apt_install() {
  command="apt-get install -y --no-install-recommends $*"
  find_root || fail "packages are missing and sudo is not available; run as root: apt-get update && $command"
  say "installing Debian packages: $*"
  log=$(mktemp)
  if ! { $root apt-get update -qq && $root env DEBIAN_FRONTEND=noninteractive $command; } >"$log" 2>&1; then
    tail -n 20 "$log"
    rm -f "$log"
    fail "apt-get failed; the command was: $command"
  fi
  rm -f "$log"
}

# True when version $1 (like 1.95.0) is at least $2 (like 1.87).
at_least() {
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort -t. -k1,1n -k2,2n | head -n 1)" = "$2" ]
}

cargo_path() {
  command -v cargo || { [ -x "$HOME/.cargo/bin/cargo" ] && echo "$HOME/.cargo/bin/cargo"; }
}

# Fails with advice when there is a Rust and it is too old; false when there is none.
have_rust() {
  cargo=$(cargo_path) || return 1
  version=$("$cargo" --version 2>/dev/null | cut -d ' ' -f 2)
  [ -n "$version" ] || fail "$cargo does not run; for example: rustup default stable"
  at_least "$version" "$rust_minimum" ||
    fail "$cargo is Rust $version, $rust_minimum or newer is needed: $rust_advice, or rustup (https://rustup.rs)"
}

setup_apt() {
  . /etc/os-release
  if apt-cache show rustc-web >/dev/null 2>&1; then
    rust_advice="apt-get install rustc-web cargo-web (they replace rustc; on Debian 12 from bookworm-security)"
    rust_packages="rustc-web cargo-web"
  elif [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ]; then
    rust_advice="apt-get update && apt-get install rustc-web cargo-web (they replace rustc)"
    rust_packages="rustc-web cargo-web"
  else
    rust_advice="apt-get install rustup && rustup default stable"
    rust_packages=""
  fi
  packages=$build_packages
  case $want in
    coverage) packages="$packages $coverage_packages" ;;
    docs) packages="$packages $docs_packages" ;;
    checks | races | all) packages="$packages $check_packages" ;;
  esac
  case $want in races | all) packages="$packages $race_packages" ;; esac
  [ "$want" != all ] || packages="$packages $all_packages"
  missing=""
  for package in $packages; do
    case $package in
      g++ | cmake | ccache | python3) command -v "$package" >/dev/null && continue ;;
      curl | npm | chromium) command -v "$package" >/dev/null && continue ;;
      ninja-build) command -v ninja >/dev/null && continue ;;
      python3-dev) python3 -c "$python_header" 2>/dev/null && continue ;;
      python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null && continue ;;
      python3-pip) python3 -m pip --version >/dev/null 2>&1 && continue ;;
    esac
    apt_installed "$package" || missing="$missing $package"
  done
  if ! have_rust; then
    [ -n "$rust_packages" ] || fail "Rust $rust_minimum or newer is needed: $rust_advice"
    missing="$missing $rust_packages"
  fi
  # shellcheck disable=SC2086
  [ -z "$missing" ] || apt_install $missing
  have_rust || fail "cargo is still missing: $rust_advice, or rustup (https://rustup.rs)"
}

setup_brew() {
  rust_advice="brew install rust"
  command -v brew >/dev/null || fail "Homebrew is needed: https://brew.sh"
  missing=""
  for package in $brew_packages; do
    brew list --formula "$package" >/dev/null 2>&1 || missing="$missing $package"
  done
  have_rust || missing="$missing rust"
  case $want in
    build) ;;
    docs) brew list --formula doxygen >/dev/null 2>&1 || missing="$missing doxygen" ;;
    *)
      brew list --formula llvm@19 >/dev/null 2>&1 || missing="$missing llvm@19"
      command -v npm >/dev/null || missing="$missing node"
      ;;
  esac
  # shellcheck disable=SC2086
  if [ -n "$missing" ]; then
    say "installing Homebrew packages:$missing"
    brew install --quiet $missing || fail "brew install$missing failed"
  fi
  have_rust || fail "cargo is still missing: $rust_advice"
}

case $(uname -s) in
  Linux)
    command -v apt-get >/dev/null || fail "no apt-get here; install by hand: $(echo $build_packages), Rust $rust_minimum or newer"
    setup_apt
    ;;
  Darwin) setup_brew ;;
  *) fail "$(uname -s) is not supported: Linux and macOS are" ;;
esac
