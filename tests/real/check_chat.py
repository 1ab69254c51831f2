#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A chat of ten turns with a real trained model, on a pseudo-terminal: straight through, and once more with /undo, /regen, /save, a new
process and /load on the way. Both have the same messages, to the byte, greedy and sampled with a seed.

    check_chat.py --saker PROGRAM --model FILE
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

QUESTIONS = (
    "What is the capital of France?", "And of Spain?", "Which of the two is larger?", "Name three colours.", "Which one is the sky?",
    "Write a Python function that adds two numbers.", "Now one that multiplies them.", "What is 7 times 8?", "Who wrote Hamlet?",
    "Which question did I ask first?",
)
DETOURS = {2: ("undo",), 4: ("regen",), 5: ("restart",), 7: ("undo", "regen"), 8: ("restart", "undo")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker", required=True)
    parser.add_argument("--model", required=True)
    args = parser.parse_args()
    os.environ["SAKER_PROGRAM"] = args.saker
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
    from pseudo_terminal import Terminal

    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)

        def start(options):
            terminal = Terminal("run", args.model, "--max-tokens", "48", *options, state=folder)
            terminal.prompt(timeout=600)
            return terminal

        def do(terminal, line):
            terminal.ask(line, timeout=600)

        def save(terminal, name):
            do(terminal, f"/save {folder / name}")
            return (folder / name).read_bytes()

        def straight(options):
            terminal = start(options)
            for question in QUESTIONS:
                do(terminal, question)
            saved = save(terminal, "straight.json")
            terminal.close()
            return saved

        def with_detours(options):
            terminal = start(options)
            for turn, question in enumerate(QUESTIONS):
                do(terminal, question)
                for detour in DETOURS.get(turn, ()):
                    if detour == "undo":
                        do(terminal, "/undo")
                        do(terminal, question)
                    elif detour == "regen":
                        do(terminal, "/regen")
                    else:
                        save(terminal, "half.json")
                        terminal.close()
                        terminal = start(options)
                        do(terminal, f"/load {folder / 'half.json'}")
            saved = save(terminal, "detours.json")
            terminal.close()
            return saved

        for options in (("--temp", "0"), ("--temp", "0.9", "--seed", "7")):
            expected, got = straight(options), with_detours(options)
            turns = len(json.loads(expected)) // 2
            good = expected == got and turns == len(QUESTIONS)
            failed += not good
            print("ok  " if good else "FAIL", f"chat: {turns} turns with {' '.join(options)} are the same by detours", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
