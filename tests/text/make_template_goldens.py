#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden/random_templates.json: random templates with what jinja2, as transformers sets it up, makes of them.

    tests/text/make_template_goldens.py [COUNT]     needs transformers and jinja2 (real_text_requirements.txt)
"""
import json
import pathlib
import sys
import warnings

import random_templates
from transformers.utils.chat_template_utils import render_jinja_template

MESSAGES = [{"role": "user", "content": "Hi"}]
MOST = 1500  # Characters of a template or a text that are kept.


def case(source):
    try:
        rendered, _ = render_jinja_template(conversations=[MESSAGES], tools=None, chat_template=source, add_generation_prompt=True, **random_templates.VARIABLES)
    except Exception:  # Whatever fails there must be an error of ours.
        return {"template": source}
    return {"template": source, "text": random_templates.comparable(rendered[0])}


def main():
    warnings.simplefilter("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    cases = []
    for source in random_templates.templates("golden", 8 * count):
        made = case(source)
        # Few of those that fail, as one fault hides the rest.
        is_wanted = "text" in made or len(cases) % 5 == 4
        if is_wanted and len(cases) < count and len(source) + len(made.get("text", "")) < MOST:
            cases.append(made)
    golden = {"variables": random_templates.VARIABLES, "cases": cases}
    path = pathlib.Path(__file__).parent / "golden/random_templates.json"
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{len(cases)} cases, {sum('text' in made for made in cases)} of them render")


if __name__ == "__main__":
    main()
