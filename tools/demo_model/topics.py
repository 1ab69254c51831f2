# SPDX-License-Identifier: Apache-2.0
"""Questions and answers about the things in facts.py.

A `Topic` holds its things and, for each kind of question, phrasings and answers. In a pattern {n} is the bare
name, {a} the name with its article, {s} the plural, {0}..{3} the fields of the fact table; a capital letter
({A}, {S}, {N}) starts a sentence. The tuple (topic, kind, phrasing) plus the thing is the unit that is held out.
"""

from __future__ import annotations

from dataclasses import dataclass

import facts


@dataclass(frozen=True)
class Thing:
    topic: str
    name: str
    plural: str
    article: str
    fields: tuple[str, ...]

    def fill(self, pattern: str) -> str:
        named = {"n": self.name, "a": self.article, "s": self.plural}
        named |= {key.upper(): capital(value) for key, value in named.items()}
        named |= {f"f{i}": value for i, value in enumerate(self.fields)}
        return pattern.format(**named)


@dataclass(frozen=True)
class Kind:
    name: str
    questions: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Topic:
    name: str  # as in "we can talk about animals"
    is_a: str  # as in "a fox is an animal"
    things: tuple[Thing, ...]
    kinds: tuple[Kind, ...]


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def with_article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" and not noun.startswith("uni") else "a ") + noun


def things_of(topic: str, *tables: str) -> tuple[Thing, ...]:
    rows = []
    for table in tables:
        for line in getattr(facts, table).strip().splitlines():
            name, *fields = [part.strip() for part in line.split("|")]
            name, _, plural = name.partition("/")
            if table in facts.MASS or name.startswith("the ") or name[0].isupper():
                plural = article = name
            else:
                plural, article = plural or name + "s", with_article(name)
            rows.append(Thing(topic, name, plural, article, tuple(fields)))
    return tuple(rows)


ABOUT = (
    "tell me about {a}", "tell me about {s}", "what is {a}?", "what do you know about {s}?",
    "what do you know about {a}?", "can you tell me about {s}?", "can you tell me something about {a}?",
    "describe {a}", "please tell me about {s}", "i want to know about {s}", "i want to learn about {s}",
    "talk about {s}", "tell me something about {s}", "what can you say about {s}?", "let us talk about {s}",
    "give me a fact about {s}", "do you know {s}?", "do you know anything about {s}?", "explain {a}", "{n}", "{s}",
    "can we talk about {s}?", "say something about {a}", "what are {s}?", "how about {s}?", "who or what is {a}?",
    "could you please describe {a} to me?", "i have a question about {s}", "info about {s}",
)  # fmt: skip

LIKE = Kind(
    "like",
    ("do you like {s}?", "i like {s}", "i love {s}", "what do you think of {s}?", "what do you think about {s}?",
     "do you love {s}?", "are {s} nice?", "my favourite thing is {a}", "i am thinking about {s}", "how do you feel about {s}?"),
    ("I like to talk about {s}. What do you like about {s}?", "Yes, I like {s}, as far as a small model can like something.",
     "{S}? That is a good thing to talk about. Ask me a question about {a}."),
)  # fmt: skip


def kind(name: str, questions: str, *answers: str) -> Kind:
    return Kind(name, tuple(part.strip() for part in questions.split(";")), answers)


def topic(name: str, is_a: str, tables: str, about: tuple[str, ...], *kinds: Kind) -> Topic:
    things = things_of(name, *tables.split())
    return Topic(name, is_a, things, (Kind("about", ABOUT, about), LIKE, *kinds))


COLOUR = "what colour is {a}?; what colour are {s}?; which colour is {a}?; what color is {a}?; what color are {s}?; tell me the colour of {a}; do you know the colour of {a}?"
WHERE = "where does {a} live?; where do {s} live?; where can i find {a}?; where is the home of {a}?; tell me where {s} live; where would i see {a}?; in which place does {a} live?"
FIND = "where is {a}?; where are {s}?; where can i find {a}?; where do you find {s}?; where would i look for {a}?; tell me where to find {a}; in which place is {a}?"

TOPICS = (
    topic(
        "animals", "an animal", "ANIMALS",
        ("{A} is an animal. It is {f0} and lives in {f1}. It eats {f2}, and it can {f3}.",
         "{S} are {f0} animals. They live in {f1} and eat {f2}. {A} can {f3}."),
        kind("colour", COLOUR, "{A} is {f0}.", "Most {s} are {f0}."),
        kind("home", WHERE, "{A} lives in {f1}.", "{S} live in {f1}."),
        kind("food", "what does {a} eat?; what do {s} eat?; what is the food of {a}?; what do you feed {a}?; what do {s} like to eat?; what does {a} like to eat?; tell me what {s} eat; which food does {a} need?",
             "{A} eats {f2}.", "{S} eat {f2}."),
        kind("skill", "what can {a} do?; what can {s} do?; what is special about {a}?; what is special about {s}?; what is {a} good at?; what are {s} good at?; tell me what {a} can do; why are {s} special?",
             "{A} can {f3}.", "{S} can {f3}."),
    ),
    topic(
        "plants", "a plant", "PLANTS",
        ("{A} is a plant. It is {f0} and grows in {f1}. People know that {f2}.",
         "{S} are {f0} plants. They grow in {f1}. About {a} we know that {f2}."),
        kind("colour", COLOUR, "{A} is {f0}.", "Most {s} are {f0}."),
        kind("place", "where does {a} grow?; where do {s} grow?; where can i find {a}?; where would i plant {a}?; tell me where {s} grow; in which place does {a} grow?",
             "{A} grows in {f1}.", "{S} grow in {f1}."),
        kind("special", "what is special about {a}?; what is special about {s}?; why are {s} special?; what does {a} do?; tell me a secret of {a}; why do people like {s}?",
             "The special thing about {a} is that {f2}.", "People like {a} because {f2}."),
    ),
    topic(
        "food", "food", "FOOD DISHES",
        ("{A} is food. It is {f1} and tastes {f0}. It {f2}. It goes well with {f3}.",
         "{A} tastes {f0} and is {f1}. It {f2}, and many people like it with {f3}."),
        kind("colour", COLOUR, "{A} is {f1}.", "Most of the time {a} is {f1}."),
        kind("taste", "how does {a} taste?; what does {a} taste like?; what is the taste of {a}?; tell me how {a} tastes; how do {s} taste?; is {a} sweet?; is {a} sour?",
             "{A} tastes {f0}.", "The taste of {a} is {f0}."),
        kind("origin", "where does {a} come from?; where do {s} come from?; how is {a} made?; what is {a} made of?; where do we get {s} from?; how do we get {a}?; how do you make {a}?",
             "{A} {f2}.", "As far as I know, {a} {f2}."),
        kind("with", "what goes well with {a}?; what do you eat with {a}?; what can i eat with {s}?; what should i serve with {a}?; what fits to {a}?",
             "{A} goes well with {f3}.", "Try {a} with {f3}."),
    ),
    topic(
        "colours", "a colour", "COLOURS",
        ("{A} is a colour. You see it on {f0}. It feels {f2}.", "{A} is the colour of {f0}. Many people find it {f2}."),
        kind("things", "what things are {a}?; which things are {a}?; name something {a}; name two things that are {a}; tell me something that is {a}; where do you see {a}?; show me something {a}",
             "Two things that are {a}: {f0}.", "You see {a} on {f0}."),
        kind("mix", "how do you mix {a}?; how do i mix {a}?; how do i make {a}?; how can i get {a}?; which colours make {a}?; what colours do i mix to get {a}?; how do i paint {a}?",
             "How to get {a}: {f1}.", "About mixing {a}: {f1}."),
        kind("feel", "how does {a} feel?; what does {a} mean?; is {a} a warm colour?; how does {a} make you feel?; what is the feeling of {a}?; is {a} a nice colour?",
             "{A} feels {f2}.", "Many people find {a} {f2}."),
    ),
    topic(
        "weather", "weather", "WEATHER WEATHER_THINGS",
        ("{A} is {f0}. Take {f1}. You can {f2}.", "We call it {n}: {f0}. When it comes, you can {f2}."),
        kind("take", "what do i need for {a}?; what should i take for {a}?; what do i take when there is {a}?; what should i wear in {a}?; what do i need when there is {a}?; how do i get ready for {a}?",
             "For {a} you need {f1}.", "When there is {a}, take {f1}."),
        kind("do", "what can i do in {a}?; what should i do when there is {a}?; what do people do when there is {a}?; what can we do when {a} comes?; there is {a} today; what is fun in {a}?; we have {a} here; there is {a} outside",
             "When there is {a}, you can {f2}.", "In {a} you can {f2}."),
    ),
    topic(
        "travel", "a way to travel", "TRAVEL",
        ("{A} is a way to travel. It moves {f0} and is {f2}. It is good for {f3}, and {f1} drives it.",
         "{S} move {f0}. {A} is {f2} and good for {f3}."),
        kind("where", "where does {a} move?; where does {a} go?; where do {s} go?; how does {a} move?; how do {s} move?; tell me where {s} move",
             "{A} moves {f0}.", "{S} move {f0}."),
        kind("driver", "who drives {a}?; who drives {s}?; who is in front in {a}?; who can drive {a}?; who moves {a}?; tell me who drives {a}",
             "In {a}, {f1} drives.", "{A} needs a person who drives: {f1}."),
        kind("speed", "how fast is {a}?; how fast are {s}?; is {a} fast?; is {a} slow?; are {s} fast?; what is the speed of {a}?",
             "{A} is {f2}.", "Most {s} are {f2}."),
        kind("use", "what is {a} good for?; what is {a} for?; when do i take {a}?; why do people take {a}?; what are {s} good for?; when should i use {a}?; can i travel by {n}?",
             "{A} is good for {f3}.", "People take {a} for {f3}."),
    ),
    topic(
        "the sea", "a thing of the sea", "SEA",
        ("{A} belongs to the sea. It is {f0}. You find it {f1}, and it {f2}.",
         "You find {a} {f1}. It is {f0}, and it {f2}."),
        kind("look", "what does {a} look like?; what do {s} look like?; how does {a} look?; how do {s} look?; tell me how {a} looks; what is the look of {a}?",
             "{A} is {f0}.", "Most {s} are {f0}."),
        kind("where", FIND, "You find {a} {f1}.", "{S} are {f1}."),
        kind("does", "what does {a} do?; what is special about {a}?; what is special about {s}?; tell me what {a} does; why is {a} special?; what does {a} do all day?",
             "{A} {f2}.", "The special thing about {a}: it {f2}."),
    ),
    topic(
        "music", "an instrument", "MUSIC",
        ("{A} is an instrument. To play {a}, {f0}. It sounds {f1} and is made of {f2}.",
         "{S} sound {f1}. To play {a}, {f0}."),
        kind("play", "how do you play {a}?; how do i play {a}?; how is {a} played?; how do people play {a}?; how can i learn to play {a}?; tell me how to play {a}; teach me to play {a}",
             "To play {a}, {f0}.", "With {a}, {f0}."),
        kind("sound", "how does {a} sound?; what does {a} sound like?; how do {s} sound?; what is the sound of {a}?; tell me how {a} sounds; is {a} loud?",
             "{A} sounds {f1}.", "The sound of {a} is {f1}."),
        kind("made", "what is {a} made of?; what are {s} made of?; how is {a} made?; which material is {a} made of?; tell me what {a} is made of",
             "{A} is made of {f2}.", "Most {s} are made of {f2}."),
    ),
    topic(
        "space", "a thing in space", "SPACE",
        ("{A} is {f0}. It is {f1}, and {f2}.", "{A} is {f0} and looks {f1}. We know that {f2}."),
        kind("look", "what does {a} look like?; how does {a} look?; what colour is {a}?; tell me how {a} looks; how would you draw {a}?",
             "{A} looks {f1}.", "When you look at {a}, it is {f1}."),
        kind("fact", "what is special about {a}?; why is {a} special?; what does {a} do?; what do we know about {a}?; tell me a fact about {a}; what is {a} for?; why do we need {a}?",
             "About {a} we know that {f2}.", "The special thing about {a} is that {f2}."),
    ),
    topic(
        "things at home", "a thing at home", "HOME",
        ("{A} is there {f0}. It is made of {f1}. You find it {f2}.",
         "You use {a} {f0}. It is made of {f1} and is often {f2}."),
        kind("use", "what is {a} for?; what do you do with {a}?; what can i do with {a}?; what are {s} for?; why do i need {a}?; how do i use {a}?; what is {a} used for?; what is {a} good for?",
             "{A} is there {f0}.", "You use {a} {f0}."),
        kind("made", "what is {a} made of?; what are {s} made of?; which material is {a} made of?; tell me what {a} is made of; how is {a} made?",
             "{A} is made of {f1}.", "Most {s} are made of {f1}."),
        kind("where", FIND + "; where do i keep {a}?", "You find {a} {f2}.", "Look for {a} {f2}."),
    ),
    topic(
        "jobs", "a person with a job", "JOBS",
        ("{A} {f0}. The work is {f1}, and the most important thing for it is {f2}.", "{A} works {f1} and {f0}. For that {a} needs {f2}."),
        kind("does", "what does {a} do?; what is the job of {a}?; what is the work of {a}?; tell me what {a} does; what do {s} do?; what does {a} do all day?; who is {a}?; how do i become {a}?; i want to be {a}",
             "{A} {f0}.", "{A} {f0} every day."),
        kind("where", "where does {a} work?; where do {s} work?; where can i find {a}?; where would i meet {a}?; tell me where {a} works",
             "{A} works {f1}.", "{S} work {f1}."),
        kind("needs", "what does {a} need?; what do {s} need?; what does {a} use?; what does {a} work with?; which tool does {a} need?; tell me what {a} needs",
             "{A} needs {f2}.", "For the work {a} needs {f2}."),
    ),
    topic(
        "games and sports", "a game or a sport", "GAMES",
        ("In {a}, {f0}. It happens {f1}, and you need {f2}.", "{A} is fun: {f0}. You do it {f1} with {f2}."),
        kind("how", "how does {a} work?; what are the rules of {a}?; how is {a} done?; explain the rules of {a}; how do people do {a}?; teach me {a}",
             "In {a}, {f0}.", "{A} is easy to explain: {f0}."),
        kind("where", "where do people do {a}?; where can i do {a}?; where does {a} happen?; where can i try {a}?; where is the best place for {a}?",
             "{A} happens {f1}.", "People do {a} {f1}."),
        kind("needs", "what do i need for {a}?; what do you need for {a}?; what should i bring for {a}?; which things do i need for {a}?; what do people need for {a}?",
             "For {a} you need {f2}.", "{A} needs {f2}."),
    ),
    topic(
        "fairy tales", "a figure from fairy tales", "TALES",
        ("{A} is a figure from fairy tales. It is {f0}, lives in {f1} and wishes for {f2}.",
         "In fairy tales {a} is {f0}. The home of {a} is {f1}."),
        kind("home", WHERE, "{A} lives in {f1}.", "In fairy tales {s} live in {f1}."),
        kind("look", "what does {a} look like?; what do {s} look like?; how does {a} look?; tell me how {a} looks; how would you draw {a}?; who is {a}?",
             "{A} is {f0}.", "In fairy tales {s} are {f0}."),
        kind("wish", "what does {a} want?; what does {a} wish for?; what do {s} want?; what is the wish of {a}?; what does {a} dream of?; tell me what {a} wants",
             "{A} wishes for {f2}.", "In fairy tales {a} dreams of {f2}."),
    ),
    topic(
        "days", "a day of the week", "DAYS",
        ("{N} is a day of the week. On {n} people {f0}.", "On {n} many people {f0}."),
        kind("do", "what do people do on {n}?; what can i do on {n}?; what happens on {n}?; what should i do on {n}?; what do you do on {n}?; what is {n} good for?; today is {n}; it is {n} today",
             "On {n} people {f0}.", "{N} is a good day: people {f0}."),
    ),
    topic(
        "months", "a month", "MONTHS",
        ("{N} is a month in {f0}. In {n} {f1}.", "{N} is one of the twelve months. It belongs to {f0}, and {f1}."),
        kind("season", "in which season is {n}?; which season is {n} in?; is {n} in winter?; is {n} in summer?; is {n} cold?; is {n} warm?; what season is {n}?",
             "{N} is in {f0}.", "{N} belongs to {f0}."),
        kind("happens", "what happens in {n}?; what is {n} like?; what is special about {n}?; why do people like {n}?; how is {n}?",
             "In {n} {f1}.", "{N} is special because {f1}."),
    ),
    topic(
        "seasons", "a season", "SEASONS",
        ("{N} is a season. Its months are {f0}. The weather is {f1}, and people {f2}.",
         "In {n} the weather is {f1} and people {f2}. The months of {n} are {f0}."),
        kind("months", "which months are in {n}?; when is {n}?; what are the months of {n}?; which months belong to {n}?; when does {n} come?",
             "The months of {n} are {f0}.", "{N} comes in {f0}."),
        kind("weather", "how is the weather in {n}?; what is the weather in {n}?; is {n} cold?; is {n} warm?; what is {n} like?; is it hot in {n}?",
             "In {n} the weather is {f1}.", "{N} is {f1}."),
        kind("do", "what do people do in {n}?; what can i do in {n}?; what should we do in {n}?; what is fun in {n}?; what do you do in {n}?",
             "In {n} people {f2}.", "{N} is the time when people {f2}."),
    ),
    topic(
        "numbers", "a number", "NUMBERS",
        ("{N} is a number. For example, {f0}.", "You can count to {n}. For example, {f0}."),
        kind("example", "give me an example of {n}; where do i see the number {n}?; what comes in {n}?; what is special about the number {n}?; tell me about the number {n}; why is {n} important?; name something with {n}",
             "An example of {n}: {f0}.", "The number {n} is easy to find: {f0}."),
    ),
)  # fmt: skip
