#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/release.sh [OUT]: makes all packages of the version that CMakeLists.txt names, in OUT (build/dist): wheel, tarball,
# Debian package, sources, Homebrew formula, bill of materials, checksums. With SAKER_SIGNING_KEY, a key of gpg, it signs the
# checksums; SAKER_RELEASE_URL is the project's address for the formula. The same sources in the same folder, with the same tools, give the same bytes: CHECK=1 links the programs anew,
# makes everything a second time, and compares.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
out=${1:-build/dist}
build=build/release
version=$(sed -n 's/^project(saker VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
date=$(sed -n 's/^set(SAKER_RELEASE_DATE \([0-9-]*\)).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date -u -d "$date" +%s)}
export SOURCE_DATE_EPOCH PYTHONDONTWRITEBYTECODE=1
say() { printf 'release: %s\n' "$*" >&2; }

python3 -c 'import sys; sys.path.insert(0, "tools/release"); import packing; packing.check_changelog()' || exit 1

make_packages() {
  rm -rf "$1"
  mkdir -p "$1"
  python3 tools/make_sbom.py "$1/saker-$version.cdx.json"
  for package in wheel tarball deb; do
    python3 "tools/release/make_$package.py" "$build" "$1/saker-$version.cdx.json" "$1" >/dev/null
    say "$package made"
  done
  source=saker-$version-source.tar.gz
  git archive --format=tar --prefix="saker-$version/" HEAD | gzip -9 -n >"$1/$source"
  sum=$(sha256sum "$1/$source" | cut -d ' ' -f 1)
  sed -e "s|@URL@|${SAKER_RELEASE_URL:-https://saker.invalid}|" -e "s/@VERSION@/$version/" -e "s/@SHA256@/$sum/" deploy/homebrew/saker.rb.in >"$1/saker.rb"
  (cd "$1" && sha256sum -- * >SHA256SUMS)
}

git diff --quiet HEAD || say "changes that are not committed are in the packages, but not in the sources"
targets="saker saker_python saker_python_stub saker_python_caches saker_python_caches_stub saker_python_program"
# shellcheck disable=SC2086
tools/build.sh release $targets
if grep -q '^SAKER_ISA_SETS:.*=..*$' "$build/CMakeCache.txt"; then
  say "$build has only the instruction sets $(sed -n 's/^SAKER_ISA_SETS:.*=//p' "$build/CMakeCache.txt"): not for others"
fi
make_packages "$out"
if [ -n "${CHECK:-}" ]; then
  rm -f "$build/saker" "$build"/python/saker/*.so "$build/python/program/saker"
  # shellcheck disable=SC2086
  tools/build.sh release $targets
  make_packages "$out.again"
  diff -r "$out" "$out.again" || {
    say "a second time the packages differ"
    exit 1
  }
  rm -rf "$out.again"
  say "a second time, the same bytes"
fi
if [ -n "${SAKER_SIGNING_KEY:-}" ]; then
  gpg --batch --yes --local-user "$SAKER_SIGNING_KEY" --armor --detach-sign "$out/SHA256SUMS"
fi
ls -l "$out"
