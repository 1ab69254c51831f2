# SPDX-License-Identifier: Apache-2.0
"""How probable a model finds texts: python scores.py [MODEL]"""

import sys

import saker

TEXTS = ["Once upon a time there was a fox.", "Once upon a time there was a carburettor."]


def main() -> None:
    with saker.load(*sys.argv[1:2]) as model:
        view = model.base()
        for text, rolling in zip(TEXTS, view.rolling_logprob_batch(TEXTS), strict=True):
            print(f"{rolling.perplexity:10.2f}  {text}")
        best = view.next_token_dist("Once upon a", top_k=3)
        for token, logprob in zip(best.token_ids.tolist(), best.logprobs.tolist(), strict=True):
            print(f"{logprob:10.3f}  {model.decode([token])!r}")
        outcome = model.score([saker.ScoreRequest(prompt="Once upon a", completion=" time")], views=["base"])[0]
        if isinstance(outcome, saker.Error):
            raise outcome
        print(f"{outcome.views[0].sum:10.3f}  ' time'")


if __name__ == "__main__":
    main()
