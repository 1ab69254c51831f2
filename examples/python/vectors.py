# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts and how near they are: python vectors.py MODEL TEXT TEXT..."""

import sys

import numpy as np

import saker


def main() -> None:
    model, *texts = sys.argv[1:]
    with saker.load(model) as loaded:
        vectors = loaded.embed(texts)
        near = np.asarray(vectors @ vectors.T)
        for row, text in zip(near, texts, strict=True):
            print(" ".join(f"{value:.2f}" for value in row.tolist()), text)


if __name__ == "__main__":
    main()
