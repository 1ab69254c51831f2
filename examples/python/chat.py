# SPDX-License-Identifier: Apache-2.0
"""A chat that streams: python chat.py [MODEL] QUESTION..."""

import sys

import saker


def main() -> None:
    *model, question = sys.argv[1:] or ["What does a fox eat?"]
    with saker.load(model[0] if model else "") as loaded:
        messages: list[dict[str, str]] = [{"role": "user", "content": question}]
        with loaded.stream(messages, max_tokens=100, temperature=0.7, seed=1) as answer:
            for event in answer.events():
                if event.kind == "content":
                    print(event.text, end="", flush=True)
        print(f"\n{answer.result().stats.generation_tps:.0f} tokens a second", file=sys.stderr)


if __name__ == "__main__":
    main()
