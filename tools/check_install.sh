#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_install.sh [DIST] [BASE]: installs the packages of tools/release.sh (build/dist) as people would, each in a Debian 12 of
# its own: from nothing to an answer, timed, then uninstalled, when nothing may be left. BASE is a folder with such a system (debootstrap
# makes build/debian12 otherwise). Needs root, debootstrap and a network.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
dist=$(realpath "${1:-build/dist}")
base=${2:-build/debian12}
work=$(mktemp -d "$PWD/build/check_install.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
ask='saker run -p "What does a fox eat?" --max-tokens 16'

[ -d "$base/usr" ] || debootstrap --variant=minbase bookworm "$base" >/dev/null

# A fresh system in $root, with the packages and what the network needs.
prepare() {
  root=$work/$1
  cp -a "$base" "$root"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  mkdir -p "$root/dist"
  touch "$root/dist/script"
  cp "$dist"/*.whl "$dist"/*.deb "$dist"/saker-*-linux-*.tar.gz "$root/dist/"
  [ -z "${PIP_CERT:-}" ] || cp "$PIP_CERT" "$root/dist/certificates"
}

# Runs a script in $root, with nothing of this system but the kernel.
inside() {
  printf '%s\n' "$1" >"$root/dist/script"
  unshare --mount --pid --fork sh -euc '
    mount -t proc proc "$1/proc"
    mount --bind /dev "$1/dev"
    exec chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive ${PIP_CERT:+PIP_CERT=/dist/certificates} sh -eu /dist/script' sh "$root"
}

# All names but those that packages' own tools keep about their work.
names() {
  (cd "$root" && find . -xdev -not -path './proc/*' -not -path './dev/*' -not -path './var/cache/*' -not -path './var/log/*' \
    -not -path './var/lib/apt/*' -not -path './var/lib/dpkg/*' -not -path './root/.cache/*' -not -path './tmp/*' -not -path './etc/ld.so.cache' \
    -not -path './var/lib/systemd/*' | sort)
}

timed() {
  began=$(date +%s.%N)
  inside "$1" >"$work/said" 2>"$work/log" || {
    tail -n 20 "$work/log" >&2
    echo "$2: failed" >&2
    exit 1
  }
  took=$(awk -v from="$began" -v to="$(date +%s.%N)" 'BEGIN { printf "%.1f", to - from }')
  [ -s "$work/said" ] || {
    echo "$2: no answer" >&2
    exit 1
  }
  printf '%s: an answer after %s s: %s\n' "$2" "$took" "$(tail -n 1 "$work/said" | cut -c 1-60)"
}

uninstalled() {
  inside "$1" >/dev/null 2>"$work/log" || {
    tail -n 20 "$work/log" >&2
    exit 1
  }
  names >"$work/after"
  diff "$work/before" "$work/after" >"$work/left" || {
    echo "$2: differs after uninstalling:" >&2
    head -n 20 "$work/left" >&2
    exit 1
  }
  echo "$2: nothing is left"
}

prepare tarball
names >"$work/before"
timed "tar -xzf /dist/saker-*.tar.gz -C /opt; PATH=\$(echo /opt/saker-*)/bin:\$PATH; $ask" tarball
uninstalled 'rm -r /opt/saker-*' tarball
rm -rf --one-file-system "$root"

prepare deb
inside 'apt-get -qq update' >/dev/null 2>&1
names >"$work/before"
timed "apt-get -qq install -y --no-install-recommends /dist/saker_*.deb >/dev/null; $ask" deb
inside 'saker doctor --offline; test -s /usr/share/man/man1/saker-run.1.gz -a -s /lib/systemd/system/saker.service -a -s /usr/share/bash-completion/completions/saker' \
  >/dev/null
uninstalled 'apt-get -qq purge -y saker; apt-get -qq autoremove --purge -y' deb
rm -rf --one-file-system "$root"

prepare wheel
inside 'apt-get -qq update; apt-get -qq install -y --no-install-recommends python3 python3-venv' >/dev/null 2>&1
names >"$work/before"
timed "python3 -m venv /opt/saker; /opt/saker/bin/pip install --quiet --disable-pip-version-check /dist/saker-*.whl; PATH=/opt/saker/bin:\$PATH; $ask" wheel
inside '/opt/saker/bin/python -c "import saker; print(saker.load().generate(\"Once\", max_tokens=4).text)"; /opt/saker/bin/saker doctor --offline' >/dev/null
inside '/opt/saker/bin/pip uninstall --quiet --disable-pip-version-check -y saker; if find /opt/saker -path "*saker*" -not -path "/opt/saker" | grep "/opt/saker/.*saker"; then exit 1; fi'
uninstalled 'rm -r /opt/saker' wheel
