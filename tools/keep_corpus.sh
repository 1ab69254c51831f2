#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/keep_corpus.sh [TARGET...]: adds to tests/fuzz/corpus what fuzzing found, as few and as short inputs as reach the
# same places: at most FILES (60) of a target, each of at most BYTES (1500). Files that were named by hand stay.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
bytes=${BYTES:-1500}
most=${FILES:-60}
[ $# != 0 ] || set -- $(find build/fuzz/tests/fuzz -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x | sed 's/.*fuzz_//' | sort)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name; do
  kept=tests/fuzz/corpus/$name
  mkdir -p "$work/found" "$work/cover" "$kept" "build/fuzz/corpus/$name"
  find "$kept" "build/fuzz/corpus/$name" -type f -size "-$((bytes + 1))c" -exec cp {} "$work/found" \;
  # Names of libFuzzer's are digests.
  find "$kept" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
  TMPDIR=$work "build/fuzz/tests/fuzz/fuzz_$name" -set_cover_merge=1 -detect_leaks=0 -timeout=20 -rss_limit_mb=4096 \
    "$work/cover" "$kept" "$work/found" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
  # Those that are there under a name of their own need no second one.
  (cd "$kept" && find . -type f -exec sha1sum {} +) | cut -c 1-40 >"$work/there"
  find "$work/cover" -type f -size "-$((bytes + 1))c" -printf '%s %f\n' | sort -n | cut -d ' ' -f 2 |
    grep -vxFf "$work/there" | head -n "$most" | while read -r file; do cp "$work/cover/$file" "$kept/"; done
  echo "$name: $(find "$kept" -type f | wc -l) files, $(du -sk --apparent-size "$kept" | cut -f 1) KB"
  rm -rf "$work/found" "$work/cover"
done
