#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cmake/compile.sh <checkout> <ccache> <compiler> <argument>...: compiles by ccache. Paths in the checkout begin with
# .saker, a link to it where the compiler runs, so that every checkout, build folder and program that embeds us gives
# the same commands, and shares objects.
checkout=$1
shift
export CCACHE_NOHASHDIR=1 CCACHE_IGNOREOPTIONS=-Werror CCACHE_SLOPPINESS=pch_defines,time_macros
if [ -e .saker ]; then
  for argument; do
    shift
    case $argument in
      "$checkout" | "$checkout"/*) argument=.saker${argument#"$checkout"} ;;
      -I"$checkout" | -I"$checkout"/*) argument=-I.saker${argument#-I"$checkout"} ;;
    esac
    set -- "$@" "$argument"
  done
else # Generators other than Ninja run the compiler in many folders.
  export CCACHE_BASEDIR="$checkout"
fi
exec "$@"
