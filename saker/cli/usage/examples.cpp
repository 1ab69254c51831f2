// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/help.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace saker::cli {
namespace {

struct Example {
  std::string_view command;
  std::string_view lines;
};

constexpr Example kExamples[] = {
    {"saker", R"(  saker run                                 choose a model and chat
  saker pull Qwen/Qwen3-0.6B                fetch a model from Hugging Face
  saker run Qwen/Qwen3-0.6B                 chat with it
  saker run Qwen/Qwen3-0.6B "Why is the sky blue?"
  saker inspect model.gguf                  does it run here, and does it fit
  saker help generate                       the options of a command
)"},
    {"saker run", R"(  saker run Qwen/Qwen3-0.6B                       a chat
  saker run Qwen/Qwen3-0.6B "Why is the sky blue?"    one answer
  git diff | saker run ./model --system "Review this change."
  saker run ./model --temperature 0.7 --top-p 0.9 --seed 1
)"},
    {"saker generate", R"(  saker generate ./model "Once upon a time" -n 100
  saker generate ./model -p "Why?" --chat --temperature 0.7 --json
  saker generate ./model -f prompt.txt --stop "###"
  saker generate ./model -f prompts.jsonl --batch 16 > answers.jsonl
)"},
    {"saker embed", R"(  saker embed google/embeddinggemma-300m -t "Hello" "Good day" --json
  saker embed ./model -f texts.jsonl --prompt-name document --dimensions 256
)"},
    {"saker rerank",
     R"(  saker rerank Qwen/Qwen3-Reranker-0.6B --query "Why?" -t "Because." "Never."
  saker rerank ./model --query "Why?" -f documents.jsonl --json
)"},
    {"saker serve", R"(  saker serve ./model
  saker serve ./model --port 8000 --api-key secret --log-requests
  saker serve ./model --adapter support=./lora --alias gpt-4o
  saker serve ./coder ./writer --memory 20G --keep-alive 10m
  saker serve --models models.toml
  saker serve ./model --host unix:/run/saker.sock
)"},
    {"saker launch", R"(  saker launch claude ./model
  saker launch codex ./model -- exec "Write a test for parse.py"
  saker launch aider --server http://127.0.0.1:8000 --api-key secret
)"},
    {"saker score", R"(  saker score ./model --prompt "2 + 2 =" --completion " 4"
  saker score ./model --text "The quick brown fox" --json
  saker score ./model --adapter ./lora --diff --html page.html --text "Hello"
  saker score ./model -f texts.jsonl -o scores.jsonl --resume
)"},
    {"saker perplexity", R"(  saker perplexity ./model -f wiki.txt
  saker perplexity ./model -f chats.jsonl --context 2048 --json
)"},
    {"saker imatrix", R"(  saker imatrix ./model calibration.txt model.imatrix.gguf
  saker imatrix ./model calibration.txt model.imatrix.gguf --chunks 100
)"},
    {"saker merge", R"(  saker score ./model -f texts.jsonl -o 0.jsonl --shard 0/2
  saker score ./model -f texts.jsonl -o 1.jsonl --shard 1/2
  saker merge texts.jsonl 0.jsonl 1.jsonl -o scores.jsonl
)"},
    {"saker bench", R"(  saker bench ./model
  saker bench ./model -p 2048 -n 64 -b 8
  saker bench ./model ./model-4bit --format md --plot bench.svg
)"},
    {"saker tokenize", R"(  saker tokenize ./model "Hello there"
  saker tokenize ./model -f prompt.txt --json
)"},
    {"saker detokenize", R"(  saker detokenize ./model 9707,1052
)"},
    {"saker template",
     R"(  echo '[{"role": "user", "content": "Hi"}]' | saker template ./model --messages -
)"},
    {"saker inspect", R"(  saker inspect ./model
  saker inspect model-Q4_K_M.gguf --kv-bits 8
  saker inspect ./lora --json
)"},
    {"saker convert", R"(  saker convert ./model ./model-4bit --bits 4
  saker convert model-Q4_K_M.gguf ./model
  saker convert ./model ./model-mixed --recipe mixed_4_6
  saker convert ./model ./merged --adapter ./lora --fuse
)"},
    {"saker create", R"(  saker create mario -f Modelfile
  saker run mario
)"},
    {"saker pull", R"(  saker pull Qwen/Qwen3-0.6B
  saker pull mlx-community/Qwen3-0.6B-4bit@main --json
)"},
    {"saker list", R"(  saker list
  saker ls --json
)"},
    {"saker rm", R"(  saker rm Qwen/Qwen3-0.6B
  saker rm mario --yes
)"},
    {"saker verify", R"(  saker verify Qwen/Qwen3-0.6B
)"},
    {"saker doctor", R"(  saker doctor
  saker doctor --offline --json
)"},
    {"saker completions", R"(  source <(saker completions bash)                for this shell
  saker completions zsh > ~/.zfunc/_saker         for all
  saker completions fish > ~/.config/fish/completions/saker.fish
)"},
    {"saker man", R"(  saker man | man -l -
  saker man run | man -l -
  saker man --directory ~/.local/share/man/man1
)"},
    {"saker cache", R"(  saker cache save ./model -f manual.txt -o manual.safetensors
  saker generate ./model -p "Sum it up." --cache-in manual.safetensors
)"},
    {"saker cache save", R"(  saker cache save ./model -f manual.txt -o manual.safetensors
)"},
    {"saker cache info", R"(  saker cache info manual.safetensors
)"},
    {"saker cache convert", R"(  saker cache convert old.safetensors new.safetensors
)"},
};

}  // namespace

std::string_view examples_of(std::string_view full_name) {
  const auto* const found = std::ranges::find(kExamples, full_name, &Example::command);
  return found == std::end(kExamples) ? std::string_view() : found->lines;
}

}  // namespace saker::cli
