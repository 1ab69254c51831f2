# SPDX-License-Identifier: Apache-2.0
"""The dialogue generator: a seeded stream of conversations built from facts, topics, stories and small talk.

A conversation is a list of {"role", "content"} messages. Every (phrasing, thing) pair has a key; about 2 % of the keys
are reserved by their hash, and no conversation for training contains a reserved question. Python standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import string
from collections.abc import Iterator
from functools import cache
from random import Random

import facts
import stories
import talk
from topics import TOPICS, Kind, Thing, Topic, capital

Message = dict[str, str]
Exchange = tuple[str, str]  # question, answer

RESERVED_ONE_IN = 50
SYSTEM_PROMPTS = ("You are a helpful assistant.", "Be brief.", "You are a friendly assistant.", "Answer in simple English.",
                  "You are Saker, a small demo model.")  # fmt: skip
KNOWN_WORDS = {word.lower() for topic in TOPICS for thing in topic.things for name in (thing.name, thing.plural, topic.name)
               for word in (*name.split(), name)} | set(facts.GROUPS) | {"the", "of", "and"}  # fmt: skip
PRONOUN_TOPICS = {"animals", "plants", "food", "travel", "the sea", "music", "space", "things at home", "jobs", "fairy tales"}
THINGS = {thing.name: thing for topic in TOPICS for thing in topic.things}
STORY, POEM = Kind("story", stories.STORY_ASKS, ()), Kind("poem", stories.POEM_ASKS, ())


def fits(phrasing: str, thing: Thing) -> bool:
    """Whether the phrasing reads well: no "what are rain?"."""
    return thing.plural != thing.article or not re.search(r"\b(are|do) \{s\}", phrasing)


def key_of(kind: Kind, phrasing: str, thing: Thing) -> str:
    return f"{thing.topic}/{kind.name}/{phrasing}/{thing.name}"


def is_reserved(key: str) -> bool:
    digest = hashlib.sha256(key.encode()).digest()
    return int.from_bytes(digest[:8], "big") % RESERVED_ONE_IN == 0


def all_questions() -> Iterator[tuple[str, Kind, Thing, str]]:
    """Every (key, kind, thing, question) that names a thing."""
    for topic in TOPICS:
        for thing in topic.things:
            for kind in (*topic.kinds, STORY, POEM):
                for phrasing in (p for p in kind.questions if fits(p, thing)):
                    yield key_of(kind, phrasing, thing), kind, thing, thing.fill(phrasing)


def normalised(text: str) -> str:
    """Letters and digits of `text`, lower case, single spaces: equal for spellings that differ only in case or marks."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


@cache
def reserved_texts() -> frozenset[str]:
    """Normalised reserved questions of two words or more; a bare noun stays in training under its other phrasings."""
    texts = (normalised(question) for key, _, _, question in all_questions() if is_reserved(key))
    return frozenset(text for text in texts if " " in text)


class Generator:
    """Endless conversations, or held-out questions only where `reserved`.

    Training goes through three phases: mostly facts (0), more small talk (1), and a capital in Saker (2).
    """

    def __init__(self, seed: int, reserved: bool = False, phase: int = 0):
        self.rng = Random(seed)
        self.reserved = reserved
        self.phase = phase
        self.reserved_pool = [row for row in all_questions() if normalised(row[3]) in reserved_texts()]

    def conversation(self) -> list[Message]:
        """One conversation: mostly one to three exchanges, sometimes a long chat."""
        rng = self.rng
        if self.reserved:
            exchanges = [self.held_out_exchange()]
        else:
            turns = rng.choices((1, 2, 3, 5, 9, 16), (46, 22, 14, 10, 6, 2))[0]
            exchanges = []
            while len(exchanges) < turns:
                exchanges += self.thread()
        messages = []
        if not self.reserved and rng.random() < 0.08:
            messages.append({"role": "system", "content": rng.choice(SYSTEM_PROMPTS)})
        for question, answer in exchanges:
            if not self.reserved:
                question = next(typed for typed in iter(lambda: self.as_typed(question), None) if self.allowed(typed))
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return messages

    def plain_story(self) -> str:
        """A story without a question, for plain continuation."""
        while True:
            text = stories.story(self.rng, self.any_thing())
            if self.allowed(text):
                return text

    def thread(self) -> list[Exchange]:
        """One exchange, or a question and what naturally follows it."""
        makers = ((self.fact, (46, 36, 36)), (self.story, (13, 11, 11)), (self.poem, (3, 2, 2)), (self.small_talk, (20, 45, 45)),
                  (self.unknown, (11, 11, 11)), (self.arithmetic, (6, 12, 12)), (self.calendar, (3, 3, 6)), (self.listing, (4, 4, 4)),
                  (self.group, (3, 3, 3)), (self.which, (3, 2, 2)), (self.membership, (4, 3, 3)), (self.name_talk, (2, 6, 6)))  # fmt: skip
        maker = self.rng.choices([maker for maker, _ in makers], [weights[self.phase] for _, weights in makers])[0]
        while True:
            exchanges = maker()
            if all(self.allowed(question) for question, _ in exchanges):
                return exchanges

    @staticmethod
    def allowed(question: str) -> bool:
        return normalised(question) not in reserved_texts()

    def any_thing(self) -> Thing:
        topics = [topic for topic in TOPICS for _ in range(3 if topic.name == "animals" else 1)]
        return self.rng.choice(self.rng.choice(topics).things)

    def held_out_exchange(self) -> Exchange:
        _, kind, thing, question = self.rng.choice(self.reserved_pool)
        return question, self.answer(kind, thing)

    def answer(self, kind: Kind, thing: Thing) -> str:
        if kind is STORY:
            return stories.story(self.rng, thing)
        if kind is POEM:
            return stories.poem(self.rng, thing)
        return thing.fill(self.rng.choice(kind.answers))

    def ask(self, kind: Kind, thing: Thing) -> Exchange:
        """A question of this kind about this thing, never a reserved one."""
        free = [p for p in kind.questions if fits(p, thing) and not is_reserved(key_of(kind, p, thing))]
        return thing.fill(self.rng.choice(free)), self.answer(kind, thing)

    def fact(self) -> list[Exchange]:
        rng = self.rng
        thing = self.any_thing()
        kinds = topic_of(thing).kinds
        exchanges = [self.ask(rng.choices(kinds, [4, 1] + [2] * (len(kinds) - 2))[0], thing)]
        if rng.random() < 0.35 and thing.topic in PRONOUN_TOPICS:  # a follow-up that names the thing only by a pronoun
            kind = rng.choice(kinds[2:])
            exchanges.append((with_pronoun(rng, kind, thing), self.answer(kind, thing)))
        if rng.random() < 0.12:
            more = rng.choice(("tell me more", "more", "tell me more about it", "what else do you know about it?", "go on please", "anything else?"))
            exchanges.append((more, self.answer(kinds[0], thing)))
        if rng.random() < 0.12:
            other = rng.choice(topic_of(thing).things)
            what = rng.choice(("and {a}?", "what about {a}?", "and {s}?", "and what about {s}?", "now {a}"))
            exchanges.append((other.fill(what), self.answer(kinds[0], other)))
        return exchanges

    def story(self) -> list[Exchange]:
        rng = self.rng
        thing = self.any_thing()
        style = rng.random()
        if style < 0.08:
            name = stories.any_name(rng)
            asks = ("tell me a story about {}", "a story about {}", "story about {} please", "do you know a story about {}?")
            ask = rng.choice(asks).format(rng.choice((name, name, "a girl" if name in facts.GIRLS else "a boy", "a child")))
            exchanges = [(ask, stories.story_of_person(rng, name))]
        elif style < 0.16:
            name = stories.any_name(rng)
            asks = ("tell me a story about {a} named {name}", "a story about {a} called {name}", "write a story about {a} with the name {name}")
            exchanges = [(rng.choice(asks).format(a=thing.article, name=name), stories.story(rng, thing, name))]
        elif style < 0.28:
            asks = ("tell me a story", "a story please", "story", "i want a story", "can you tell me a story?", "do you know a story?", "tell a story",
                    "tell me a short story", "tell me a bedtime story", "once upon a time", "please tell me a tale", "any story")  # fmt: skip
            hero = rng.choice([t for t in THINGS.values() if stories.is_hero(t)])
            exchanges = [(rng.choice(asks), stories.story(rng, hero))]
            thing = hero
        else:
            exchanges = [self.ask(STORY, thing)]
        if rng.random() < 0.25:
            again = ("another one", "one more", "another story", "again", "tell me another story", "another story please", "one more please")
            thing = rng.choice([t for t in THINGS.values() if stories.is_hero(t)])
            exchanges.append((rng.choice(again), stories.story(rng, thing)))
        if rng.random() < 0.15:
            other = self.any_thing()
            exchanges.append((other.fill(rng.choice(("now one about {a}", "and one about {s}", "now about {a}"))), stories.story(rng, other)))
        return exchanges

    def poem(self) -> list[Exchange]:
        return [self.ask(POEM, self.any_thing())]

    def small_talk(self) -> list[Exchange]:
        names = list(talk.INTENTS)
        often = ("hello", "saker", "saker_help", "saker_models", "saker_server", "help", "can_do", "who")
        weights = [4 if name in often else 2 for name in names]
        questions, answers = talk.INTENTS[self.rng.choices(names, weights)[0]]
        return [(self.rng.choice(questions), ended(self.rng.choice(answers)))]

    def unknown(self) -> list[Exchange]:
        rng = self.rng
        x, y = unknown_phrase(rng), unknown_phrase(rng)
        return [(rng.choice(talk.UNKNOWN_ASKS).format(x=x, y=y), rng.choice(talk.UNKNOWN_ANSWERS))]

    def arithmetic(self) -> list[Exchange]:
        """Sums, which are all declined: a model of this size gets most of them wrong."""
        rng = self.rng
        left, right = rng.choice((6, 12, 200)), rng.choice((6, 12, 1000))
        words = left <= 12 and right <= 12 and rng.random() < 0.4
        a, b = (facts.NUMBER_WORDS[n] if words else str(n) for n in (rng.randrange(left), rng.randrange(right)))
        sign = rng.choice(("plus", "and", "minus", "times", "divided by") if words else ("+", "-", "*", "x", "/", "plus", "minus", "times"))
        gap = "" if sign in "+-*x/" and rng.random() < 0.4 else " "
        ask = rng.choice(("what is {}?", "how much is {}?", "{}", "{} =", "calculate {}", "can you tell me what {} is?", "what does {} make?"))
        return [(ask.format(f"{a}{gap}{sign}{gap}{b}"), talk.INTENTS["sums"][1][0])]

    def calendar(self) -> list[Exchange]:
        rng = self.rng
        names = rng.choice((
            [t.name for t in THINGS.values() if t.topic == "days"], [t.name for t in THINGS.values() if t.topic == "months"],
            facts.NUMBER_WORDS[1:],
        ))  # fmt: skip
        index = rng.randrange(len(names) - 1)
        first, second = names[index], names[index + 1]
        if rng.random() < 0.5:
            ask = rng.choice(("what comes after {}?", "which one comes after {}?", "what is after {}?", "{} and then?", "what follows {}?"))
            return [(ask.format(first), f"After {first} comes {second}.")]
        ask = rng.choice(("what comes before {}?", "which one comes before {}?", "what is before {}?"))
        return [(ask.format(second), f"Before {second} comes {first}.")]

    def listing(self) -> list[Exchange]:
        rng = self.rng
        topic = rng.choice(TOPICS)
        if rng.random() < 0.15:
            if rng.random() < 0.5:
                return [(rng.choice(("count to ten", "can you count?", "count to 10", "count from one to ten")), ", ".join(facts.NUMBER_WORDS[1:11]).capitalize() + ".")]
            days = ", ".join(t.name for t in THINGS.values() if t.topic == "days")
            return [(rng.choice(("name the days of the week", "what are the days of the week?", "list the days", "which days are there?")), f"The days of the week are {days}.")]
        ask = rng.choice(("what do you know about {}?", "let us talk about {}", "tell me something about {}", "tell me about {}", "i like {}", "{}",
                          "do you know something about {}?", "can we talk about {}?", "talk about {}", "name some {}", "i want to talk about {}",
                          "give me examples of {}", "which {} do you know?", "what {} do you know?", "name three {}", "list some {}"))  # fmt: skip
        one, two, three = (thing.article for thing in rng.sample(topic.things, 3))
        answer = rng.choice(("About {t} I know a little, for example {a}, {b} and {c}. Which one do you want to hear about?",
                             "Let us talk about {t}. You can ask me about {a}, {b} or {c}."))  # fmt: skip
        name = topic.name
        return [(ask.format(name), answer.format(t=name, a=one, b=two, c=three))]

    def group(self) -> list[Exchange]:
        """A question about birds, fruit, tools: the answer names three of them."""
        rng = self.rng
        group, members = rng.choice(list(facts.GROUPS.items()))
        ask = rng.choice(("tell me about {}", "do you know any {}?", "{}", "name three {}", "name some {}", "what do you know about {}?", "i like {}",
                          "which {} do you know?", "what are {}?", "talk about {}", "do you like {}?", "list some {}", "can we talk about {}?"))  # fmt: skip
        one, two, three = (THINGS[name].plural for name in rng.sample(members.split(), 3))
        name = {"colors": "colours"}.get(group, group)
        return [(ask.format(group), f"Some {name} I know: {one}, {two} and {three}. Which one do you want to hear about?")]

    def which(self) -> list[Exchange]:
        """From a property back to the things that have it."""
        rng = self.rng
        animals = [t for t in THINGS.values() if t.topic == "animals"]
        field, ask = rng.choice(((0, "which animals are {}?"), (0, "name an animal that is {}"), (0, "which animal is {}?"),
                                 (1, "which animals live in {}?"), (1, "who lives in {}?"), (1, "name an animal that lives in {}")))  # fmt: skip
        value = rng.choice(animals).fields[field]
        matching = rng.choice([t for t in animals if t.fields[field] == value])
        is_it = "is" if field == 0 else "lives in"
        return [(ask.format(value), f"{capital(matching.article)} {is_it} {value}.")]

    def membership(self) -> list[Exchange]:
        rng = self.rng
        topic = rng.choice([t for t in TOPICS if t.name not in ("seasons", "numbers", "weather")])
        thing = rng.choice(topic.things)
        if rng.random() < 0.5:
            return [(f"is {thing.article} {topic.is_a}?", f"Yes, {thing.article} is {topic.is_a}.")]
        other = rng.choice([t for t in TOPICS if t is not topic])
        return [(f"is {thing.article} {other.is_a}?", f"No, {thing.article} is {topic.is_a}.")]

    def name_talk(self) -> list[Exchange]:
        name = stories.any_name(self.rng)
        ask = self.rng.choice(("my name is {}", "i am {}", "hello, i am {}", "hi, my name is {}", "i'm {}", "call me {}"))
        exchanges = [(ask.format(name), f"Hello {name}! Nice to meet you. What would you like to talk about?")]
        if self.rng.random() < 0.5:
            exchanges.append((self.rng.choice(("what is my name?", "who am i?", "do you know my name?")), f"Your name is {name}."))
        return exchanges

    def as_typed(self, text: str) -> str:
        """The question as a hurried person types it: case, missing marks, typing errors, polite words around it."""
        rng = self.rng
        if rng.random() < 0.08:
            text = re.sub(r"\b(what|where|who) is\b", rng.choice((r"\1's", r"\1s")), text)
        if rng.random() < 0.5:
            text = re.sub(r"\bi\b", "I", text)
        if rng.random() < 0.06 and len(text.split()) > 2:
            text = rng.choice(("please, {}", "hello, {}", "ok, {}", "{} please", "hi! {}", "and {}", "well, {}", "now {}", "so {}")).format(text)
        if rng.random() < 0.35:
            text = text.rstrip("?")
        elif text[-1:].isalpha() and rng.random() < 0.3:
            text += rng.choice((".", "!", "?", ".", "...", " "))
        if rng.random() < 0.10:
            text = with_typing_error(rng, text)
        style = rng.random()
        if self.phase == 2 and style < 0.5:
            text = text.replace("saker", "Saker")
        if style < 0.5:
            return capital(text)
        if style < 0.8:
            return text.lower()
        return text.upper() if style > 0.97 else text


def topic_of(thing: Thing) -> Topic:
    return next(topic for topic in TOPICS if topic.name == thing.topic)


def ended(sentence: str) -> str:
    return sentence if sentence[-1] in ".!?" else sentence + "."


def with_pronoun(rng: Random, kind: Kind, thing: Thing) -> str:
    question = rng.choice([q for q in kind.questions if "{a}" in q or "{s}" in q] or kind.questions)
    if "{s}" in question:
        return question.replace("{s}", "they").replace("for they", "for them") if thing.plural != thing.article else thing.fill(question)
    return question.replace("{a}", "it").replace("{n}", "it")


def unknown_phrase(rng: Random) -> str:
    """Something outside the topics: a real word, two of them, or a made-up one."""
    while True:
        style = rng.random()
        if style < 0.55:
            text = rng.choice(talk.UNKNOWN_WORDS)
        elif style < 0.75:
            text = " ".join(rng.sample(talk.UNKNOWN_WORDS, 2))
        else:
            text = "".join(rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") + rng.choice(("", "n", "r", "l", "s", "t")) for _ in range(rng.randint(1, 3)))
        if rng.random() < 0.15:
            text = rng.choice(("a ", "the ", "my ", "an old ", "our ")) + text
        if not any(word in KNOWN_WORDS for word in text.split()[-1:] + text.split()[:1] if word != "the"):
            return text


def with_typing_error(rng: Random, text: str) -> str:
    spots = [i for i, c in enumerate(text[:-1]) if c.isalpha() and i > 0]
    if len(text) < 6 or not spots:
        return text
    i = rng.choice(spots)
    return rng.choice((
        text[:i] + text[i + 1 :], text[:i] + text[i] + text[i:], text[:i] + text[i + 1] + text[i] + text[i + 2 :],
        text[:i] + rng.choice(string.ascii_lowercase) + text[i + 1 :],
    ))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Print conversations of the demo model's training stream, one JSON array a line.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--reserved", action="store_true", help="held-out questions only")
    options = parser.parse_args()
    generator = Generator(options.seed, options.reserved)
    for _ in range(options.count):
        print(json.dumps(generator.conversation()))


if __name__ == "__main__":
    main()
