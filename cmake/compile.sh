#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cmake/compile.sh <checkout> <ccache> <compiler> <argument>...: compiles by ccache. Paths in the checkout begin with
# .saker, a link to it where the compiler runs, so that every checkout, build folder and program that embeds us gives
# the same commands, and shares objects.
checkout=$1
shift
ccache=$1
compiler=$2
shift 2
# One compiler under two names makes the same objects; pip takes the other one than CMake.
case $compiler in
  */g++) [ "$compiler" -ef "${compiler%g++}c++" ] && compiler=${compiler%g++}c++ ;;
esac
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
else # No link where paths of one checkout are kept, or the generator runs the compiler in many folders.
  export CCACHE_BASEDIR="$checkout"
fi
exec "$ccache" "$compiler" "$@"
