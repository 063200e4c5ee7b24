#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes labelled pages, NAME.html with their main text in NAME.txt, for extract_scores.py.

    make_pages.py [--seed N] [--pages N] [--set development|held-out] DIRECTORY

Each page is a template, a structure that real sites have, filled with sentences of made-up words in
one of ten languages, and boilerplate around it. The templates of the two sets are different:
dt-extract was not changed for those held out. The label is the text of paragraphs, headings after
the title, items, cells and code of the main text, without the title.
"""
import argparse
import html
import os
import random

SYLLABLES = {
    "en": "the of and to in that is was for on are with as at be this have from or had by not but "
          "what all were when we there can an your which their time will way about many then them "
          "would water long little very after word called just where most know".split(),
    "de": "der die und in den von zu das mit sich des auf ist im dem nicht ein eine als auch es an "
          "werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über".split(),
    "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il "
          "sont avec ses mais comme ou leur été cette aux deux même nous après être".split(),
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más pero sus "
          "le ha me si sin sobre este ya entre cuando todo esta ser son dos también".split(),
    "ru": "и в не на что я быть с он как это по но они к у его за от так весь мы из для вы о же "
          "мочь тот только год один такой человек такое время рука дело жизнь день".split(),
    "ar": "في من على أن إلى التي الذي هذا هذه عن مع كان بعد بين كل قد لم وقد ذلك حيث عند أو ما غير "
          "منذ قبل خلال حول وهو أكثر يوم أيضا نحو".split(),
    "hi": "के में की है यह और से को इस का कि एक पर ने था भी नहीं तो ही हो रहा गया कर लिए अपने कुछ जब "
          "साथ बाद दिन समय लोग काम".split(),
    "zh": list("的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后"),
    "ja": "これは それは 私たちの 時間が 人々を 今日も 世界の 新しい 言葉で 町から 水を 山が 本を 読む ことが "
          "できる と思う ように なった から まで より 大きな 小さな 多くの".split(),
    "th": "การ และ ที่ ของ ใน เป็น มี ได้ ให้ ว่า จะ ไม่ กับ คน นี้ มา ไป วัน ปี แต่ จาก โดย ถ้า เรา "
          "เมื่อ อยู่ ทำ งาน บ้าน น้ำ เวลา".split(),
}
JOIN = {"zh": "", "ja": "", "th": ""}
END = {"zh": "。", "ja": "。", "hi": "।"}
LANGUAGES = sorted(SYLLABLES)


class Writer:
    """Sentences in one language."""

    def __init__(self, rng, language):
        self.rng, self.language = rng, language

    def words(self, low, high):
        words = self.rng.choices(SYLLABLES[self.language], k=self.rng.randint(low, high))
        return JOIN.get(self.language, " ").join(words)

    def sentence(self):
        text = self.words(6, 22)
        if self.rng.random() < 0.5:
            text += ("，" if self.language in ("zh", "ja") else ", ") + self.words(4, 12)
        return text[0].upper() + text[1:] + END.get(self.language, self.rng.choice(["."] * 8 + "!?".split()))

    def paragraph(self, low=2, high=6):
        space = "" if self.language in ("zh", "ja") else " "
        return space.join(self.sentence() for _ in range(self.rng.randint(low, high)))

    def label(self):
        return self.words(1, 3).capitalize()

    def title(self):
        return self.words(4, 9).capitalize()


def links(w, low, high, tag="li"):
    """A list of links, as menus have them."""
    return "".join(f'<{tag}><a href="/{w.rng.randint(1, 999)}">{w.label()}</a></{tag}>'
                   for _ in range(w.rng.randint(low, high)))


def menu(w):
    return f"<ul>{links(w, 4, 12)}</ul>"


def teasers(w, kind="div"):
    return "".join(f'<{kind} class="card"><a href="/{w.rng.randint(1, 999)}"><h3>{w.title()}</h3></a>'
                   f"<p>{w.words(8, 14)}…</p></{kind}>" for _ in range(w.rng.randint(2, 6)))


def comments(w):
    return "".join(f'<li class="comment"><b>{w.label()}</b> <time>12:30</time><p>{w.paragraph(1, 3)}'
                   '</p><a href="#">Reply</a></li>' for _ in range(w.rng.randint(1, 5)))


def inline(w, text):
    """Sometimes a link or emphasis in a paragraph."""
    text = html.escape(text)
    if w.rng.random() < 0.4 and " " in text:
        i = text.index(" ", len(text) // 3) if " " in text[len(text) // 3:] else text.index(" ")
        j = text.find(" ", i + 1)
        if j > 0:
            tag = w.rng.choice(['a href="/x"', "b", "em"])
            text = f"{text[:i]} <{tag}>{text[i + 1:j]}</{tag.split()[0]}>{text[j:]}"
    return text


class Body:
    """The main text: blocks (kind, content) in the order of the page."""

    def __init__(self, w, kinds="p"):
        self.blocks = []
        for _ in range(w.rng.randint(3, 9)):
            kind = w.rng.choice(["p"] * 6 + kinds.split())
            if kind in ("p", "quote"):
                self.blocks.append((kind, w.paragraph()))
            elif kind == "h2":
                self.blocks += [(kind, w.title()), ("p", w.paragraph())]
            elif kind in ("ul", "ol"):
                self.blocks.append((kind, [w.words(4, 14) for _ in range(w.rng.randint(2, 6))]))
            elif kind == "table":
                self.blocks.append((kind, [[w.label(), str(w.rng.randint(1, 99)), w.label()]
                                           for _ in range(w.rng.randint(2, 6))]))
            elif kind == "pre":
                lines = (f"    x{w.rng.randint(0, 9)} = call({w.rng.randint(0, 99)})"
                         for _ in range(w.rng.randint(2, 8)))
                self.blocks.append((kind, "\n".join(["def f():", *lines])))

    def text(self):
        lines = []
        for kind, content in self.blocks:
            if kind in ("ul", "ol"):
                lines += content
            elif kind == "table":
                lines += [" | ".join(row) for row in content]
            else:
                lines.append(content)
        return "\n".join(lines)

    def html(self, w, between=None, p="p"):
        parts = []
        for kind, content in self.blocks:
            if kind == "p":
                parts.append(f"<{p}>{inline(w, content)}</{p}>")
            elif kind == "quote":
                parts.append(f"<blockquote><p>{html.escape(content)}</p></blockquote>")
            elif kind in ("ul", "ol"):
                items = "".join(f"<li>{html.escape(i)}</li>" for i in content)
                parts.append(f"<{kind}>{items}</{kind}>")
            elif kind == "table":
                rows = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>"
                               for row in content)
                parts.append(f"<table>{rows}</table>")
            else:
                parts.append(f"<{kind}>{html.escape(content)}</{kind}>")
            if between and w.rng.random() < 0.3:
                parts.append(between(w))
        return "\n".join(parts)


def page(w, title, body, head=""):
    return (f'<!DOCTYPE html>\n<html lang="{w.language}"><head><meta charset="utf-8"><title>{title} - '
            f"{w.label()}</title>{head}<style>.a{{color:red}}</style></head>\n<body>\n{body}\n"
            "<script>var x = '<p>no text</p>';</script></body></html>\n")


# --- development ---------------------------------------------------------------------------------

def blog(w):
    b, title = Body(w, "h2 ul ol quote pre"), w.title()
    return page(w, title, f'''<div id="page"><header class="site-header"><h1>{w.label()}</h1><p>{w.words(3, 8)}</p>
<nav class="main-navigation">{menu(w)}</nav></header><div id="content"><article class="post tag-{w.rng.randint(1, 9)}">
<h1 class="entry-title">{title}</h1><div class="entry-meta">{w.label()} <a href="/a">{w.label()}</a></div>
<div class="entry-content">{b.html(w)}<div class="sharedaddy"><h3>{w.label()}</h3>{menu(w)}</div></div>
<footer class="entry-footer">{links(w, 1, 4, "span")}</footer></article>
<div id="comments"><h2>{w.label()}</h2><ol class="comment-list">{comments(w)}</ol></div></div>
<aside class="widget-area"><section class="widget"><h2>{w.label()}</h2>{menu(w)}</section>
<section class="widget"><p>{w.paragraph(1, 2)}</p></section></aside><footer id="colophon"><p>© 2024 {w.words(2, 9)}</p></footer></div>'''), b


def soup(w):
    b, title = Body(w, "h2 p"), w.title()
    def c():
        return "css-" + "".join(w.rng.choices("abcdefghij0123456789", k=6))
    return page(w, title, f'''<div class="{c()}"><div class="{c()}">{links(w, 5, 12, "span")}</div>
<div class="{c()}"><div class="{c()}"><h1>{title}</h1><div class="{c()}"><span>{w.label()}</span><span>{w.label()}</span></div>
<div class="{c()}">{b.html(w, lambda w: f'<div class="{c()}"><a href="/r">{w.title()}</a></div>')}</div></div>
<div class="{c()}">{teasers(w)}</div></div><div class="{c()}">{links(w, 5, 20, "div")}<div>{w.words(5, 10)}</div></div></div>'''), b


def old_table(w):
    b, title = Body(w, "p"), w.title()
    text = "<br>\n<br>\n".join(inline(w, t) for _, t in b.blocks)
    return page(w, title, f'''<center><table width=800><tr><td colspan=2><font size=5>{w.label()}</font>
<tr><td width=150 valign=top>{"<br>".join(f'<a href="{i}.htm">{w.label()}</a>' for i in range(8))}
<td valign=top><font face=Arial><b>{title}</b><p>{text}</font>
<tr><td colspan=2 align=center><font size=1>{" | ".join(f'<a href="{i}.htm">{w.label()}</a>' for i in range(5))}<br>
{w.words(3, 6)}</table></center>'''), b


def press(w):
    b, title = Body(w, "h2 quote p"), w.title()
    def between(w):
        return w.rng.choice([f'<div class="ad-slot"><span>{w.label()}</span></div>',
                             f'<figure><img src="a.jpg"><figcaption>{w.words(5, 12)}.</figcaption></figure>',
                             f'<div class="related-box"><h4>{w.label()}</h4>{menu(w)}</div>',
                             f'<div class="newsletter-signup"><p>{w.paragraph(1, 1)}</p><form><input></form></div>'])
    return page(w, title, f'''<div class="cookie-consent" role="dialog"><p>{w.paragraph(2, 4)}</p><button>OK</button></div>
<header><nav>{menu(w)}</nav></header><main><article><header><h1>{title}</h1><p class="byline">{w.label()}</p></header>
<div class="article-body">{b.html(w, between)}</div><ul class="tags">{links(w, 2, 5)}</ul></article>
<section class="recommended">{teasers(w, "article")}</section><section class="comments">{comments(w)}</section></main>
<footer>{menu(w)}<p>{w.paragraph(1, 2)}</p></footer>'''), b


def wiki(w):
    b, title = Body(w, "h2 ul table"), w.title()
    box = "".join(f"<tr><th>{w.label()}</th><td>{w.label()}</td></tr>" for _ in range(6))
    return page(w, title, f'''<div id="mw-page-base"></div><div id="content" class="mw-body" role="main"><h1 id="firstHeading">{title}</h1>
<div id="bodyContent"><div id="siteSub">{w.words(3, 6)}</div><div id="mw-content-text" class="mw-body-content">
<table class="infobox">{box}</table>{b.html(w)}<div id="toc" class="toc"><h2>{w.label()}</h2>{menu(w)}</div>
<div class="navbox"><table><tr><td>{links(w, 8, 20, "span")}</td></tr></table></div></div>
<div id="catlinks">{menu(w)}</div></div></div><div id="mw-navigation"><div id="p-personal" role="navigation">{menu(w)}</div>
<div id="mw-panel">{menu(w)}{menu(w)}</div></div><div id="footer" role="contentinfo"><ul><li>{w.paragraph(1, 2)}</li></ul></div>'''), b


# --- held out ------------------------------------------------------------------------------------

def manual(w):
    b, title = Body(w, "h2 pre pre ul"), w.title()
    return page(w, title, f'''<div class="related" role="navigation"><h3>{w.label()}</h3>{menu(w)}</div><div class="document">
<div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main"><section id="s"><h1>{title}<a class="headerlink" href="#s">¶</a></h1>
{b.html(w)}</section></div></div></div><div class="sphinxsidebar" role="navigation"><div class="sphinxsidebarwrapper">
<h3>{w.label()}</h3>{menu(w)}<h3>{w.label()}</h3><p>{w.words(6, 12)}</p></div></div></div><div class="footer">© {w.words(4, 9)}</div>'''), b


def shop(w):
    b, title = Body(w, "ul table p"), w.title()
    return page(w, title, f'''<div id="top-bar">{links(w, 3, 6, "span")}</div><ul class="megamenu">{links(w, 15, 40)}</ul>
<div class="crumbs">{links(w, 2, 4, "span")}</div><div class="product-page"><div class="left"><img src="p.jpg"></div><div class="right"><h1>{title}</h1>
<div class="price">9.99</div><form action="/cart"><select><option>1</option></select><button>Buy</button></form></div>
<div class="tab-panel product-description">{b.html(w, p="div")}</div></div><div class="also-bought"><h2>{w.label()}</h2>{teasers(w)}</div>
<div class="newsletter"><p>{w.paragraph(1, 1)}</p></div><div class="bottom">{menu(w)}{menu(w)}</div>'''), b


def authority(w):
    b, title = Body(w, "h2 h2 table ol ul"), w.title()
    return page(w, title, f'''<a class="skip-link" href="#c">{w.label()}</a><div id="banner">{w.label()}</div><nav aria-label="x">{menu(w)}</nav>
<div class="breadcrumb-wrap"><ol>{links(w, 2, 4)}</ol></div><main id="c"><h1>{title}</h1>{b.html(w)}<div class="print-share">{menu(w)}</div></main>
<div class="contact-box"><h2>{w.label()}</h2><address>{w.words(4, 8)}</address></div><footer>{menu(w)}</footer>'''), b


def hosted(w):
    b, title = Body(w, "p quote"), w.title()
    text = "<br /><br />".join(inline(w, t) for _, t in b.blocks)
    return page(w, title, f'''<div class="navbar section"></div><div class="content-outer"><div class="main-outer"><div class="date-outer"><h2 class="date-header">{w.label()}</h2>
<div class="post hentry"><h3 class="post-title">{title}</h3><div class="post-body">{text}<div style="clear: both;"></div></div>
<div class="post-footer">{links(w, 2, 4, "span")}</div></div><div id="comments"><h4>{w.label()}</h4><dl>{comments(w)}</dl></div></div>
<div class="column-right-outer"><div class="widget BlogArchive"><h2>{w.label()}</h2>{menu(w)}</div><div class="widget Profile"><p>{w.paragraph(1, 1)}</p></div></div></div></div>'''), b


def recipe(w):
    b, title = Body(w, "ul ol h2"), w.title()
    return page(w, title, f'''<div class="layout"><div class="layout__head"><div class="brand">{w.label()}</div>{menu(w)}</div>
<div class="layout__main"><h1>{title}</h1><div class="stars">★★★★☆ {w.label()}</div><div itemprop="articleBody">{b.html(w)}</div>
<div class="hints"><h3>{w.label()}</h3>{teasers(w)}</div></div><div class="layout__side">{teasers(w)}{menu(w)}</div>
<div class="layout__foot">{links(w, 6, 12, "span")}<p>{w.paragraph(1, 2)}</p></div></div>'''), b


def sections(w):
    b, title = Body(w, "p"), w.title()
    parts = "".join(f'<section class="s{i}"><div class="wrap"><div class="col"><p>{inline(w, t)}</p></div></div></section>'
                    for i, (_, t) in enumerate(b.blocks))
    return page(w, title, f'''<div id="app"><div class="hdr"><div class="lnks">{links(w, 4, 9, "div")}</div></div><div class="hero"><h1>{title}</h1></div>
{parts}<div class="lnks2">{links(w, 10, 30, "div")}</div><div class="sml">{w.words(5, 9)}</div></div>'''), b


SETS = {"development": [blog, soup, old_table, press, wiki],
        "held-out": [manual, shop, authority, hosted, recipe, sections]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--set", choices=SETS, default="held-out")
    parser.add_argument("directory")
    args = parser.parse_args()
    os.makedirs(args.directory, exist_ok=True)
    for i in range(args.pages):
        rng = random.Random(args.seed * 1000003 + i)
        template = SETS[args.set][i % len(SETS[args.set])]
        w = Writer(rng, LANGUAGES[(i // len(SETS[args.set])) % len(LANGUAGES)])
        text, body = template(w)
        name = f"{args.directory}/{template.__name__}-{w.language}-{i}"
        with open(name + ".html", "w", encoding="utf-8") as f:
            f.write(text)
        with open(name + ".txt", "w", encoding="utf-8") as f:
            f.write(body.text() + "\n")


if __name__ == "__main__":
    main()
