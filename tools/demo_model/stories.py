# SPDX-License-Identifier: Apache-2.0
"""Short stories and poems, each around one named thing; every text fits in about 70 tokens."""

from __future__ import annotations

from random import Random

import facts
from topics import Thing, capital, with_article

STORY_ASKS = (
    "tell me a story about {a}", "tell me a story about {s}", "tell me a short story about {a}", "a story about {a}",
    "please tell me a story about {a}", "can you tell me a story about {a}?", "can you tell a story about {s}?",
    "i want a story about {a}", "write a story about {a}", "write me a short story about {a}", "make up a story about {a}",
    "i would like to hear a story about {a}", "do you know a story about {a}?", "story about {s} please",
    "give me a story with {a}", "a bedtime story about {a}, please", "story {n}", "once upon a time there was {a}",
    "could you write a little story about {a}?", "let me hear a story about {s}",
)  # fmt: skip
POEM_ASKS = (
    "write a poem about {a}", "write a poem about {s}", "tell me a poem about {a}", "can you write a poem about {a}?",
    "a poem about {a}", "make a rhyme about {s}", "i want a poem about {a}", "please write a short poem about {a}",
    "do you know a poem about {s}?", "give me a poem about {a}",
)  # fmt: skip

# Topics whose things can be the hero of a story.
HEROES = {"animals": "small quiet brave clever young hungry happy shy".split(), "fairy tales": "lonely kind brave young old funny".split(),
          "jobs": "young friendly clever old cheerful careful".split()}  # fmt: skip
SEA_HEROES = {"whale", "shark", "dolphin", "crab", "octopus", "fish", "seal", "turtle", "starfish"}

LOST = "a red hat;a silver key;a little bell;a blue ball;a warm scarf;a letter;a golden ring".split(";")
PLACES = "by the river;in the forest;on a hill;near the old mill;behind the house;in the village;at the lake".split(";")
HELPERS = "kind owl;gentle bear;friendly dog;small mouse;clever fox;wise turtle;quiet cat;brave falcon".split(";")
ENDS = (
    "From that day on they were good friends.", "That night everyone slept well.", "And they laughed about it for a long time.",
    "In the end all was well.", "It was the best day of the year.", "They shared a cake and went home happy.",
)  # fmt: skip
OPENINGS = ("Once upon a time there was", "Long ago there was", "Once there was", "In a far land there was")

HERO_PLOTS = (
    "{open} {adj_n} named {name}. {name} lived {place}. One day {name} lost {lost}. A {helper} helped to look for it, and they found it under a tree. {end}",
    "{open} {adj_n} named {name}. {name} wanted to see the world and walked for three days. {place_c} {name} met a {helper}. They told each other stories until the sun went down. {end}",
    "{open} {adj_n} named {name} who lived {place}. One night there was a storm, and a {helper} knocked at the door. {name} let the {helper} in and made hot soup. {end}",
    "{open} {adj_n} named {name} who could not sleep. {name} counted the stars {place}. A {helper} came and sang a quiet song. Soon {name} fell asleep. {end}",
    "{open} {adj_n} named {name}. Nobody believed that the {n} could cross the wide river. {name} built a small boat and tried again and again. At last it worked, and a {helper} cheered. {end}",
)  # fmt: skip
THING_PLOTS = (
    "{open} a {child} named {name} who loved {s}. One morning {name} went out to look for {a} {place}. A {helper} showed the way. {end}",
    "{name} was a {child} who had never thought about {s}. Then a {helper} told a long tale about {a}. {name} listened with big eyes and dreamed of {a} all night. {end}",
    "{open} a {child} named {name}. On a rainy day {name} drew a picture of {a}. A {helper} liked it so much that {name} drew ten more. {end}",
    "One day {name} and a {helper} sat {place} and talked about {s}. They wrote a song about {a} and sang it in the village. {end}",
)  # fmt: skip
NAME_PLOTS = (
    "{open} a {child} named {name} who lived {place}. One day {name} lost {lost}. A {helper} helped to look for it, and they found it under a tree. {end}",
    "{name} was a {adj} {child}. One morning {name} packed some bread and walked up the hill. There {name} met a {helper}, and they watched the clouds together. {end}",
    "{open} a {adj} {child} named {name}. {name} wanted to learn a new song. A {helper} sang it three times, and soon {name} could sing it too. {end}",
)  # fmt: skip
POEMS = (
    "I think of {a} night and day,\nI see {a} along the way.\nThe sun goes down, the stars are bright,\nand now I wish you all good night.",
    "Here is a rhyme, it is not long,\nfor {a} I sing a song.\nThe wind is soft, the sky is blue,\nand I will sing it just for you.",
    "Oh {n}, oh {n}, how good to see,\nyou are a friend to you and me.\nThe day is warm, the day is new,\nand I have made this rhyme for you.",
)  # fmt: skip
CHILD_ADJECTIVES = "brave clever quiet happy curious kind".split()


def is_hero(thing: Thing) -> bool:
    return thing.topic in HEROES or thing.name in SEA_HEROES


def story(rng: Random, thing: Thing, name: str | None = None) -> str:
    """A story about `thing`; its hero is called `name` where one is given."""
    child = rng.choice(("girl", "boy"))
    parts = scene(rng)
    if is_hero(thing):
        adjective = rng.choice(HEROES.get(thing.topic, HEROES["animals"]))
        parts |= {"adj_n": with_article(f"{adjective} {thing.name}"), "name": name or any_name(rng)}
        plot = rng.choice(HERO_PLOTS)
    else:
        parts |= {"child": child, "name": name or any_name(rng, child)}
        plot = rng.choice(THING_PLOTS)
    while thing.name in parts["helper"]:
        parts["helper"] = rng.choice(HELPERS)
    return plot.format(n=thing.name, a=thing.article, s=thing.plural, **parts)


def story_of_person(rng: Random, name: str) -> str:
    child = "girl" if name in facts.GIRLS else "boy"
    plot = rng.choice(NAME_PLOTS)
    return plot.format(child=child, name=name, adj=rng.choice(CHILD_ADJECTIVES), **scene(rng))


def poem(rng: Random, thing: Thing) -> str:
    return thing.fill(rng.choice(POEMS))


def any_name(rng: Random, child: str | None = None) -> str:
    names = {"girl": facts.GIRLS, "boy": facts.BOYS}.get(child or "", facts.GIRLS + facts.BOYS)
    return rng.choice(names)


def scene(rng: Random) -> dict[str, str]:
    place = rng.choice(PLACES)
    return {"open": rng.choice(OPENINGS), "place": place, "place_c": capital(place), "lost": rng.choice(LOST),
            "helper": rng.choice(HELPERS), "end": rng.choice(ENDS)}  # fmt: skip
