# SPDX-License-Identifier: Apache-2.0
"""Random templates for real_text_test.py: statements and expressions that use every part of the language.

Names are few, so that scopes meet: what a loop, macro, call block, set block or `with` sets is often read outside.
"""
import random
import re

VARIABLES = {
    "a": 1, "b": "text", "c": [3, 1, 2], "d": {"k": "v", "n": {"x": [1, 2.5]}, "items": 7}, "e": None, "f": 2.5, "g": True, "h": [],
    "words": ["b", "A", "c d", ""], "rows": [{"r": 1, "s": "x"}, {"r": 2, "s": "y"}, {"r": 3, "s": "x"}], "big": 2**70 + 1, "neg": -7,
    "html": "<b>it's & \"so\"</b>", "long": "The quick brown fox\njumps  over the lazy dog. ", "nest": [[1, [2, 3]], [4], []],
}
# Names that templates set; the others keep what they are.
NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "x", "y", "z"]
FREE = ["a", "b", "x", "y", "z"]
# What gives each kind of value, whatever the names hold; {} is another expression, {t} a text, {n} a number, {l} a list.
SAFE = {
    "t": ["'x'", "'é\\n'", "html", "long", "words[0]", "words[-1]", "rows[1].s", "{t}|upper", "{t}|title", "({t} ~ {})", "{t} + {t}", "{}|string", "{t}[1:]", "{t}[::-1]", "{t}|replace('a', {t})", "{t}.strip()", "{t}|trim",
          "{l}|join({t})", "{l}|tojson", "{}|string|escape", "('%s|%s' % ({}, {n}))", "'{{}}-{{:>4}}'.format({t}, {n})", "{t} * 2", "{t}|indent(2)", "{t}|wordwrap(9)", "{t}|truncate(8)", "{t}|center(11)", "{t}.title()", "{l}|string",
          "m({}, {})", "m(*[{}, {}])", "m(x={t})", "m({t}, y={n})", "'' if {} is none else {t}", "{t}|striptags", "{t}|urlencode", "{n}|string", "{l}|pprint", "{n}|filesizeformat", "{t}.replace('o', '0', 1)", "{t}|capitalize", "{t}.encode()|string"],
    "n": ["0", "3", "2.5", "-1", "neg", "big", "rows|length", "{t}|length", "{n} + {n}", "({n} * {n})", "{n} - {n}", "-{n}", "{l}|length", "{n}|round(1)", "{n}|int", "{n}|abs", "({n} // 3)", "({n} % 4)", "{n} / 7", "[{n}, {n}]|max",
          "{t}.count('o')", "{t}|wordcount", "{l}|count", "{n}|float", "(2 ** 3 ** 2)", "10 ** 25", "{t}|int", "range(4)|sum", "[{n}, {n}]|sum", "{t}.find('e')", "1e20", "({n} if {} else {n})", "true + {n}"],
    "l": ["[]", "words", "rows", "nest", "[{}, {}]", "range(3)|list", "{t}.split()", "{l} + {l}", "{l}[1:]", "{l}[::-1]", "rows|map(attribute='s')|list", "rows|selectattr('r', 'gt', 1)|list", "words|sort", "words|map('upper')|list",
          "words|unique|list", "{l}|map('string')|list", "{l}|reverse|list", "{l}|list", "{l} * 2", "words|select('ne', {t})|list", "{l}|batch(2)|list", "{l}|slice(2)|list", "dict(p={}).items()|list", "{'p': {}, 'q': {n}}|dictsort", "{t}|list",
          "rows|groupby('s')|map('first')|list", "[{l}, {t}]", "{l}|select('defined')|list", "[1, 2, 3]|select('odd')|list", "rows|rejectattr('s', 'eq', 'x')|list", "{l}|map('tojson')|list", "({l} or [{n}])", "rows|sort(attribute='s,r', reverse=true)"],
    "b": ["{} is defined", "{} is none", "{n} > {n}", "{n} <= {n} < {n}", "{t} == {t}", "{t} in {l}", "{t} not in {t}", "not {}", "{} and {}", "{} or {}", "{} is string", "{} is iterable", "{} is mapping", "{n} is odd", "{t} is lower", "{n} is divisibleby(2)",
          "{n} is integer", "{} is sameas none", "{} is callable", "{l} is sequence", "{} == {}", "{} != {t}", "{n} is in [0, 1, 2]", "{t}.startswith('T')", "{} is undefined", "{n} == true"],
    "d": ["{}", "{'p': {}}", "dict(p={t}, q={n})", "rows[0]", "{'p': {l}, {t}: 1}", "dict([({t}, {})])", "{1: {}, true: {}}", "dict.fromkeys(words, {n})"],
}
TEXTS = ["''", "'x'", "'a b'", "\"it's\"", "'é\\n'", "'1'", "'A,b;c'", "' pad '", "'%s-%s'", "'<i>'", "'\\u4e2d'", "'3.5'", "'upper'"]
FILTERS = [
    "upper", "lower", "title", "capitalize", "trim", "length", "string", "list", "first", "last", "reverse", "sort", "unique|list", "join", "join('-')",
    "default('D')", "default('D', true)", "d", "int", "float", "abs", "round", "round(1)", "tojson", "tojson(indent=1)", "replace('a', 'X')", "escape", "e", "safe", "batch(2)|list", "slice(2)|list",
    "map('upper')|list", "map('string')|join(',')", "select|list", "reject|list", "select('number')|list", "select('string')|list", "map(attribute='r')|list", "selectattr('s', 'equalto', 'x')|list",
    "rejectattr('r', 'gt', 1)|map(attribute='s')|join", "groupby('s')|list|length", "sum", "min", "max", "count", "items|list", "dictsort", "wordcount", "indent(2)", "truncate(9)", "center(7)", "format(1)",
    "urlencode", "striptags", "wordwrap(7)", "xmlattr", "forceescape", "attr('k')", "filesizeformat", "pprint", "sort(reverse=true)", "map('length')|list", "reverse|list", "sum(start=1)", "select('in', [1, 2])|list", "map('default', 'q')|join('|')",
]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "callable", "true", "false", "odd", "even", "lower", "upper",
         "divisibleby(2)", "divisibleby 3", "eq 1", "equalto(a)", "in [1, 'x']", "sameas none", "gt 1", "ne(2)", "escaped", "filter", "test"]
METHODS = ["upper()", "strip()", "split()", "split(',')", "items()", "keys()", "values()", "get('k')", "get('q', 1)", "startswith('a')", "replace('a', 'b')", "title()", "count('a')", "index(1)", "format(1)", "join(['p', 'q'])",
           "splitlines()", "find('t')", "rstrip('t')", "zfill(5)", "isdigit()", "is_integer()", "items", "k", "n.x", "encode()", "lower", "copy()", "partition('e')", "center(9, '*')", "missing", "0", "removeprefix('t')"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
LOOP = ["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem", "cycle('p', 'q')", "changed(x)"]
ENDS = [("{%", "%}"), ("{%-", "%}"), ("{%", "-%}"), ("{%-", "-%}"), ("{%+", "%}"), ("{%", "+%}")]
SPACES = ["", " ", "\n", "  \n", "\n  ", "t", " t\n", "\n\n"]

# What Python prints with an address, or in words of its own.
_OBJECT = re.compile(r"<[\w. ]*(object|function|method|class|generator|Namespace|Macro|LoopContext|TemplateReference|bound|iterator)[^>]*>")


def comparable(text):
    """A rendering without what no two programs print alike."""
    return _OBJECT.sub("<object>", text)


class Writer:
    """One random template."""

    def __init__(self, rng, is_careful):
        self.rng = rng
        self.is_careful = is_careful
        self.macros = ["m", "w"]
        self.loops = 0

    def pick(self, items):
        return self.rng.choice(items)

    def chance(self, share):
        return self.rng.random() < share

    # ---- expressions ----

    def safe(self, kind=None, depth=0):
        """An expression of a kind that hardly ever fails."""
        if kind is None:
            if self.chance(0.4):
                loop = ["loop." + self.pick(LOOP)] if self.loops else []
                return self.pick(FREE + ["ns.v", "unknown"] + loop * 3)
            kind = self.pick("tttnnlbbd")
        form = self.pick(SAFE[kind][:5] if depth > 2 else SAFE[kind])
        if form == "{}":
            return form
        pieces = re.split(r"(\{[tnl]?\})", form)
        for place, piece in enumerate(pieces):
            if re.fullmatch(r"\{[tnl]?\}", piece) and not pieces[place - 1].endswith("{"):
                pieces[place] = self.grouped(self.safe(piece[1:-1] or None, depth + 1))
        return "".join(pieces).replace("{{", "{").replace("}}", "}").replace("{}}", "{}}")

    def leaf(self):
        kind = self.rng.randrange(10)
        if kind < 5:
            return self.pick(NAMES)
        if kind == 5:
            return self.pick(list(VARIABLES))
        if kind == 6:
            return self.pick(["0", "1", "2", "-1", "3.0", "1e3", "10", "0.1", "7", "1_000", "9007199254740993"])
        if kind == 7:
            return self.pick(TEXTS)
        if kind == 8:
            return self.pick(["true", "false", "none", "[]", "{}", "()", "ns.v", "ns", "range(3)", "self", "caller", "varargs", "kwargs"])
        return "loop." + self.pick(LOOP) if self.loops else self.pick(NAMES)

    def expression(self, depth=0):
        if self.is_careful:
            return self.grouped(self.safe(depth=depth))
        if depth > 2 or self.chance(0.3):
            return self.leaf()
        kind = self.rng.randrange(16)
        one = self.expression(depth + 1)
        if kind < 4:
            return f"{self.grouped(one)}|{self.pick(FILTERS)}"
        if kind < 6:
            return f"{self.grouped(one)} is {self.pick(['', '', 'not '])}{self.pick(TESTS)}"
        if kind < 9:
            return f"({one} {self.pick(OPERATORS)} {self.expression(depth + 1)})"
        if kind == 9:
            return f"{self.grouped(one)}.{self.pick(METHODS)}"
        if kind == 10:
            key = self.pick(["0", "-1", "'k'", "1:", ":2", "::-1", "5", "'zz'", self.expression(depth + 2)])
            return f"{self.grouped(one)}[{key}]"
        if kind == 11:
            return f"({one} if {self.expression(depth + 1)} else {self.expression(depth + 1)})" if self.chance(0.8) else f"({one} if {self.expression(depth + 1)})"
        if kind == 12:
            return self.pick([f"[{one}, {self.leaf()}]", f"({one}, {self.leaf()})", "{'p': %s, %s: 1}" % (one, self.pick(TEXTS)), f"({one},)"])
        if kind == 13:
            return self.pick([f"not {one}", f"-{self.grouped(one)}", f"+{self.grouped(one)}", f"-{one}", f"{one} < {self.leaf()} < {self.leaf()}", f"{self.grouped(one)} ** {self.pick(['2', '-1', '0.5', '3 ** 2'])}"])
        if kind == 14:
            return self.pick([f"dict(p={one})", f"dict({one}, q=1)", f"range({self.leaf()})", f"namespace(v={one}).v", "cycler(1, 2).next()", "joiner('/')()", f"dict.fromkeys({one})"])
        return self.call(depth)

    def grouped(self, text):
        return text if re.fullmatch(r"[\w.]+|\(.*\)|\[[^\]]*\]|'[^']*'", text) and not text[0].isdigit() else f"({text})"

    def call(self, depth):
        arguments = [self.expression(depth + 1) for _ in range(self.rng.randrange(3))]
        arguments += [f"{self.pick(['x', 'y', 'z', 'q'])}={self.expression(depth + 1)}"] if self.chance(0.3) else []
        arguments += [self.pick(["*c", "*words", "**{'y': 2}", "*[1], **{'z': 3}"])] if self.chance(0.15) else []
        return f"{self.pick(self.macros)}({', '.join(arguments)})"

    # ---- statements ----

    def tag(self, content):
        begin, end = self.pick(ENDS) if self.chance(0.3) else ENDS[0]
        return f"{begin} {content} {end}"

    def target(self):
        kind = self.rng.randrange(8)
        if kind == 0:
            return "ns." + self.pick(["v", "w"])
        if kind == 1 and not self.is_careful:
            return f"{self.pick(NAMES)}, {self.pick(NAMES)}"
        return self.pick(FREE if self.is_careful else NAMES)

    def body(self, depth):
        return "".join(self.statement(depth + 1) for _ in range(self.rng.randint(1, 3)))

    def parameters(self):
        names = self.rng.sample(["x", "y", "z", "a"], self.rng.randrange(4))
        first = self.rng.randrange(len(names) + 1)
        return ", ".join(name if place < first else f"{name}={self.expression(1)}" for place, name in enumerate(names))

    def without_loops(self, write):
        loops, self.loops = self.loops, 0
        text = write()
        self.loops = loops
        return text

    def loop(self, depth):
        target = self.pick(FREE if self.is_careful else NAMES + ["x, y"])
        source = self.safe("l") if self.is_careful else self.pick(["c", "words", "rows", "h", "d", "d.items()", "range(3)", "'abc'", "[1, 2]", "nest", "[(1, 2), (3, 4)]", "rows|map(attribute='r')", "none", self.expression(1)])
        test = f" if {self.expression(1)}" if self.chance(0.3) else ""
        recursive = " recursive" if self.chance(0.15) else ""
        self.loops += 1
        body = self.body(depth)
        if recursive and self.chance(0.7):
            body += "{% if loop.depth < 3 %}{{ loop(" + self.pick(["[1]", "c", target.split(",")[0]]) + ") }}{% endif %}"
        if self.chance(0.2):
            body += self.tag(f"if {self.expression(1)}") + self.tag(self.pick(["break", "continue"])) + self.tag("endif") + self.statement(depth + 1)
        self.loops -= 1
        other = self.tag("else") + self.body(depth) if self.chance(0.3) else ""
        return self.tag(f"for {target} in {source}{test}{recursive}") + body + other + self.tag("endfor")

    def statement(self, depth=0):
        return self.pick(SPACES) + self.plain_statement(depth) + self.pick(SPACES)

    def plain_statement(self, depth):
        kind = self.rng.randrange(8 if depth > 2 else 22)
        if kind < 4:
            return "{{ " + self.expression() + self.pick([" }}", " -}}", " }}"])
        if kind < 7:
            return self.tag(f"set {self.target()} = {self.expression()}")
        if kind == 7:
            return self.pick(["{# note #}", "{#- note -#}", "{% raw %}{{ x }}{% endraw %}", "{{ x }}{{ y }}{{ z }}", "{{ ns.v }}", "{% print a, x %}"])
        if kind < 10:
            middle = self.tag(f"elif {self.expression(1)}") + self.body(depth) if self.chance(0.3) else ""
            other = self.tag("else") + self.body(depth) if self.chance(0.4) else ""
            return self.tag(f"if {self.expression(1)}") + self.body(depth) + middle + other + self.tag("endif")
        if kind < 13:
            return self.loop(depth)
        if kind == 13:
            pairs = ", ".join(f"{self.pick(FREE)} = {self.expression(1)}" for _ in range(self.rng.randrange(3)))
            return self.tag(f"with {pairs}") + self.body(depth) + self.tag("endwith")
        if kind < 16:
            filters = self.pick(["", "", " | upper", " | trim | length", " | replace('t', x)"])
            return self.tag(f"set {self.pick(FREE + ['ns.v'])}{filters}") + self.body(depth) + self.tag("endset")
        if kind == 16:
            return self.tag(f"filter {self.pick(['upper', 'trim', 'indent(1)', 'replace(b, x)', 'length', 'title|trim'])}") + self.body(depth) + self.tag("endfilter")
        if kind < 19:
            name = "m" if self.is_careful else self.pick(self.macros)
            body = self.without_loops(lambda: self.body(depth))
            parameters = self.pick(["x, y=x", "x=a, y=b", "x, y=ns.v, z=y"]) if self.is_careful else self.parameters()
            return self.tag(f"macro {name}({parameters})") + body + self.tag("endmacro")
        if kind == 19:
            parameters = self.pick(["", "", "(x)", "(x, y=a)"])
            body = self.without_loops(lambda: self.body(depth))
            return self.tag(f"call{parameters} {'w()' if self.is_careful else self.call(1)}") + body + self.tag("endcall")
        if kind == 20:
            body = self.without_loops(lambda: self.body(depth))
            return self.tag("generation") + body + self.tag("endgeneration")
        return self.tag("macro w(x=1)") + "[{{ caller(" + self.pick(["", "x", "a, b"]) + ") if caller else x }}]" + self.tag("endmacro")

    def template(self):
        head = "{% set ns = namespace(v=0) %}{% macro m(x, y=x) %}{{ x }}/{{ y }}{% endmacro %}{% macro w() %}<{{ caller() }}>{% endmacro %}"
        return head + "".join(self.statement() for _ in range(self.rng.randint(1, 4)))


def templates(seed, count):
    """So many templates; the same ones for the same seed."""
    rng = random.Random(f"templates {seed}")
    # Half of them hardly ever fail, the other half often does.
    return [Writer(rng, is_careful=number % 2 == 0).template() for number in range(count)]
