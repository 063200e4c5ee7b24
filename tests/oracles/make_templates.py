# SPDX-License-Identifier: MIT
"""make_templates.py DIRECTORY: writes templates.jsonl, for tests/template: templates, what they are
rendered with, and the text that transformers makes of them with Jinja, or null where it fails.

make_templates.py DIRECTORY TEMPLATE ... COUNT: the same for COUNT random conversations of each
template file, one file of answers per template, for tests/full/templates.bats."""
import datetime
import json
import os
import random
import sys

from transformers.utils import chat_template_utils

NOW = 1753500000
MESSAGES = [{"role": "user", "content": " Hi <b>&\"'é🙂 "}, {"role": "assistant", "content": "x\n"}]
# What expressions are about.
VALUES = {
    "messages": MESSAGES, "none_": None, "n": 7, "m": -3, "x": 2.5, "big": 1e20, "small": 1.5e-7,
    "s": "a,b,,c", "t": "  Straße\n\tend ", "e": "", "l": [3, 1, 2], "w": ["b", "A", "c"],
    "d": {"b": 1, "A": [1, {"k": None}], "c": "q\"\\\n\u0001\x7fé"}, "yes": True,
    "objects": [{"n": 2, "k": "b"}, {"n": 1, "k": "a"}, {"n": 1}],
}
EXPRESSIONS = """
1 + 2 * 3 - 4 | 7 // 2 | -7 // 2 | 7 % -3 | -7 % 3 | 2 ** 10 | 7 / 2 | 6 / 2 | 1e3 | 1_000 | -n ** 2
n + x | x * 2 | big | small | x - 2.5 | 1.0 | 100000000000000000.0 | yes + 1 | - x | +n | not n
n > 5 and x | n < 5 or 'no' | 1 < 2 < 3 | 3 > 2 > 2 | 1 == 1.0 | yes == 1 | 'a' < 'b' | [1] == [1]
'a' in s | 'z' not in s | 2 in l | 'b' in d | 'q' in none_ | none_ in [none_] | 'a' in missing
n if n > 5 else 'low' | 'low' if n < 5 | missing | missing.more | missing is defined | none_.more
'a' ~ n ~ none_ ~ x | 'ab' * 3 | 3 * [1, 2] | [1] + [2, 3] | (1, 2) + (3,) | 'a' 'b' | "it's" | 'a"b'
s[0] | s[-1] | s[9] | s[1:3] | s[::-1] | s[-3:] | l[::2] | l[5:] | l[-2] | t[2:9] | messages[0].content
d.b | d['A'][1].k | d.missing | d['b'] | d.get('b') | d.get('z') | d.get('z', 5) | d.A[0] | d['get']
l | (1,) | (1, 'a') | d | [none_, yes, 1.5] | {'a': 'it\\'s "q"'} | 'x\\ty\\u00e9\\x41\\101\\q' | [t]
s.split(',') | s.split(',', 1) | t.split() | t.split(none_, 1) | s.rsplit(',', 1) | s.strip('ac')
t.strip() | t.lstrip() | t.rstrip() | s.startswith('a') | s.startswith(('x', 'a')) | s.endswith('c')
s.replace(',', '-') | s.replace(',', '-', 1) | s.upper() | 'ABC'.lower() | 'hello World'.capitalize()
t.upper() | 'ΟΔΟΣ İ'.lower() | 'ßA ΟΣ'.capitalize() | 'ﬁ ǆ'|upper
s.find('c') | s.find('z') | s.rfind(',') | s.count(',') | 'a\\nb\\r\\nc\\n'.splitlines() | ', '.join(w)
'{} {}'.format(1, 'a') | '{1}{0}{k}{{}}'.format(1, 2, k=3) | 'abc'.removeprefix('a') | s.removesuffix('c')
s.title() | s.encode() | l.append(4) | d.pop('b') | d.items() | d.keys() | d.values() | l.count(1)
s|length | l|length | d|length | missing|length | n|length | t|trim | t|trim|length | s|upper | 'É'|lower
l|first | l|last | e|first | l|sort | w|sort | w|sort(reverse=true) | w|sort(case_sensitive=true) | l|sum
objects|sort(attribute='n') | objects|map(attribute='k')|list | objects|map(attribute='k', default='-')|join
w|map('upper')|list | w|map('replace', 'b', 'z')|join | l|min | l|max | w|min | l|reverse|list | s|reverse
objects|selectattr('k')|list | objects|selectattr('n', 'equalto', 1)|list | l|select('odd')|list
objects|rejectattr('k', 'defined')|list | l|reject('gt', 1)|list | none_|select|list | l|select('in', [1])|list
l|join | l|join('-') | objects|join(',', attribute='n') | d|dictsort | d|dictsort(reverse=true) | d|items|list
d|dictsort(by='value') | d.items()|list | w|unique|list | ['a', 'A', 'b']|unique|list | (l|map('string'))|list
d|tojson | d|tojson(indent=2) | d|tojson(sort_keys=true) | d|tojson(ensure_ascii=true) | []|tojson(indent=2)
d|tojson(separators=(',', ':')) | [1.0, 1e20, 1e-7, none_]|tojson | t|tojson | '🙂'|tojson(ensure_ascii=true)
{}|tojson(indent=1) | messages|tojson | n|string | none_|string | x|int | '12'|int | ' 7 '|int | 'q'|int(3)
'1.5'|int | '1.5'|float | 'z'|float | m|abs | x|float | missing|default('d') | e|default('d') | e|default('d', true)
none_|default('d', true) | missing|d | t|indent | 'a\\n\\nb'|indent(2) | 'a\\n\\nb'|indent(2, true) | 'a\\nb'|indent('> ')
'a\\n\\nb'|indent(width=2, blank=true) | '<a>'|safe | '<a>'|safe + '<b>' | '<b>' + '<a>'|safe | '<a>'|safe ~ '<b>'
n is defined | n is odd | n is even | n is divisibleby 7 | n is divisibleby(2) | none_ is none | s is string
d is mapping | l is iterable | l is sequence | d is sequence | n is number | x is float | yes is boolean | yes is number
yes is integer | n is integer | yes is true | yes is false | n is eq 7 | n is gt(5) | n is not ge 8 | n is in [7, 8]
n is sameas n | missing is undefined | range is callable | s is lower | missing is none | e is string
range(3)|list | range(1, 7, 3)|list | range(3, 0, -1)|list | range(0)|list | dict(a=1, b='c') | namespace(a=1).a
raise_exception('no') | strftime_now('%d %b %Y') | 1 / 0 | 'a' + 1 | l + 'a' | missing + 1 | missing() | n() | d.b.c.d
s < 1 | l|nofilter | n is notest | [1, 2 | 'open | {1: 2} | {1: 2}|tojson | l.0 | n..m | d[l] | 9223372036854775807 + 1
l|map('nofilter')|list | 'a' if yes | s[0:2:0] | s['x'] | 'a'|replace('', 'b') | (l|select('odd'))|length | '%s' % n
"""
STATEMENTS = [
    "{% for a in l %}{{ a }}{{ loop.index }}{{ loop.first }}{{ loop.last }}{% endfor %}",
    "{% for a in l if a > 1 %}{{ loop.index }}/{{ loop.length }}:{{ a }} {% else %}-{% endfor %}",
    "{% for a in [] %}x{% else %}none{% endfor %}", "{% for a in missing %}x{% else %}y{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for c in t %}[{{ c }}]{% endfor %}", "{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }},{% endfor %}",
    "{% for a in l %}{% for b in l %}{{ loop.index }}{{ loop.depth }} {% endfor %}{{ loop.index }}{% endfor %}",
    "{% for a in l %}{% if a == 1 %}{% continue %}{% endif %}{{ a }}{% endfor %}",
    "{% for a in l %}{{ a }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}",
    "{% for a in l %}{{ loop.previtem }}-{{ loop.nextitem }} {{ loop.revindex }}{{ loop.revindex0 }}{% endfor %}",
    "{% set a = 1 %}{% for b in l %}{% set a = a + 1 %}{{ a }}{% endfor %}{{ a }}",
    "{% set ns = namespace(a=1) %}{% for b in l %}{% set ns.a = ns.a + b %}{% endfor %}{{ ns.a }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a %} x {{ n }} {% endset %}[{{ a }}]",
    "{% set a | trim | upper %} x {% endset %}[{{ a }}]", "{% filter upper %}a{{ s }}{% endfilter %}",
    "{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, b=3) }}{{ f(b=4, a=5) }}",
    "{% macro f(a) %}{{ a }}{{ n }}{{ z }}{% endmacro %}{% set z = 9 %}{{ f() }}{{ f(1)|length }}",
    "{% macro f(a) %}{% if a %}{{ a }}{{ f(a - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{% endmacro %}{{ f(q=1) }}",
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}", "{% if e %}a{% elif s %}b{% endif %}",
    "{% if missing is defined and missing.x %}a{% else %}b{% endif %}",
    "{% set d = 1 %}{% if yes %}{% set d = 2 %}{% endif %}{{ d }}",
    "{% set g = messages|selectattr('role', 'equalto', 'user') %}{% if g %}{{ g|list|length }}{{ g|list|length }}{% endif %}",
    "a\n  {% if yes %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if yes -%}\n  b\n  {%- endif -%}\nc\n\n",
    "a\n  {%+ if yes +%}\n  b\n  {%+ endif %}\nc", " {{ n }} \n {{- n -}} \n {{ n }}\n", "x {# c #} y\n  {# c #}\nz",
    "x {#- c -#} y", "{% if yes %}a{% endif %}\n\nb\r\nc\rd", "{{ '}}' }}{{ {'a': {'b': 1}}.a.b }}", "{{ '{%' }}",
    "  {% set a = 1 %}  {% set b = 2 %}\nc", "{%- set a = 1 %}\n{%- set b = 2 -%}\n c", "",
    "{% generation %}{{ s }}{% endgeneration %}!", "{% for a in l %}", "{% endfor %}", "{% if %}", "{{ }}", "{{ n",
    "{% break %}", "{% include 'x' %}", "{% set n.a = 1 %}", "{% for a, b in l %}{% endfor %}", "{# open",
    "{% for m in messages %}<|{{ m.role }}|>{{ m['content'] | trim }}{{ '\\n' if not loop.last }}{% endfor %}",
    "{% raw %}{{ n }}{% endraw %}", "{{ loop }}", "{{ loop.index }}", "{% set loop = 1 %}{{ loop }}",
]


def compiled(text):
    template = chat_template_utils._compile_jinja_template(text)
    date = lambda pattern: datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(pattern)
    template.globals["strftime_now"] = template.environment.globals["strftime_now"] = date
    return template


def render(text, values):
    try:
        return compiled(text).render(**values)
    except Exception:
        return None


def write(file, template, text):
    file.write(json.dumps({"template": template, "text": text}, ensure_ascii=False) + "\n")


# --- random conversations ----------------------------------------------------------------------

WORDS = ["hello", 'a <b> & "c"', "x\ny", "it's", "  lead", "trail \n", "", "Größe", "日本語", "{{x}}",
         "</think>answer", "<think>\nplan\n</think>\n\nok", "tab\there", "🙂", "[INST]", "1.50", "\\n"]


class Conversations:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self):
        return " ".join(self.r.choice(WORDS) for _ in range(self.r.randint(1, 4)))

    def value(self, depth=0):
        kind = self.r.randint(0, 7 if depth < 2 else 5)
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.r.randint(0, 3))]
        if kind == 7:
            return {self.r.choice("abcdeÉ"): self.value(depth + 1) for _ in range(self.r.randint(0, 3))}
        return {0: None, 1: True, 2: self.r.randint(-5, 10**6), 4: self.text(), 5: False,
                3: self.r.random() * 10 ** self.r.randint(-8, 20)}[kind]

    def tool(self):
        names = [self.r.choice(["city", "n", "unit"]) for _ in range(self.r.randint(0, 3))]
        kinds = ["string", "integer", "number", "boolean"]
        return {"type": "function", "function": {
            "name": self.r.choice(["get_weather", "add"]), "description": self.text(),
            "parameters": {"type": "object", "required": ["city"], "properties": {
                n: {"type": self.r.choice(kinds), "description": self.text()} for n in names}}}}

    def call(self):
        arguments = {self.r.choice(["city", "n"]): self.value(1)}
        if self.r.random() < .3:
            arguments = json.dumps(arguments)
        name = "call_%03d" % self.r.randint(0, 999) if self.r.random() < .5 else "abcdefghi"
        return {"id": name, "type": "function", "function": {"name": "add", "arguments": arguments}}

    def messages(self):
        m, tools = [], self.r.random() < .2
        if self.r.random() < .5:
            m.append({"role": self.r.choice(["system"] * 4 + ["developer"]), "content": self.text()})
        turns = self.r.randint(1, 4)
        for i in range(turns):
            parts = [{"type": "text", "text": self.text()} for _ in range(self.r.randint(1, 2))]
            m.append({"role": "user", "content": self.text() if self.r.random() < .85 else parts})
            if i == turns - 1 and self.r.random() < .5:
                break
            answer = {"role": "assistant", "content": self.text()}
            if self.r.random() < .15:
                answer["reasoning_content"] = self.text()
            if tools and self.r.random() < .6:
                answer["tool_calls"] = [self.call()]
                answer["content"] = self.r.choice([None, "", self.text()])
                m += [answer, {"role": "tool", "name": "add", "content": self.text(),
                               "tool_call_id": answer["tool_calls"][0]["id"]}]
                answer = {"role": "assistant", "content": self.text()}
            m.append(answer)
        if self.r.random() < .05:
            m.append({"role": self.r.choice(["user", "critic"]), "content": self.text()})
        return m

    def context(self):
        c = {"messages": self.messages(), "add_generation_prompt": self.r.random() < .5,
             "tools": None, "documents": None}
        if self.r.random() < .9:
            c |= {"bos_token": "<s>", "eos_token": "</s>"}
        if self.r.random() < .3:
            c["tools"] = [self.tool() for _ in range(self.r.randint(1, 2))]
        if self.r.random() < .2:
            c["enable_thinking"] = self.r.random() < .5
        if self.r.random() < .1:
            c["documents"] = [{"title": self.text(), "text": self.text()}]
        return c


def answers(directory, path, count):
    text = open(path, encoding="utf-8", newline="").read()
    conversations = Conversations(os.path.basename(path))
    with open(os.path.join(directory, os.path.basename(path) + ".jsonl"), "w") as file:
        for _ in range(count):
            context = conversations.context()
            row = {"context": context, "text": render(text, context)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def main():
    directory = sys.argv[1]
    if len(sys.argv) > 2:
        for path in sys.argv[2:-1]:
            answers(directory, path, int(sys.argv[-1]))
        return
    rows = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(" | ")]
    with open(os.path.join(directory, "templates.jsonl"), "w", encoding="utf-8") as file:
        file.write(json.dumps({"values": VALUES}, ensure_ascii=False) + "\n")
        for text in ["{{ " + e + " }}" for e in rows] + STATEMENTS:
            write(file, text, render(text, VALUES))


main()
