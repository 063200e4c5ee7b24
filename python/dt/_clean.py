# SPDX-License-Identifier: MIT
"""dt.clean and dt.Cleaner: one document through the rules of dt-clean(1)."""
import ctypes
import functools
import json
from ctypes import byref, c_char_p

from ._library import (CleanedDocument, CleanerOptions, InputError, checked, open_handle,
                       path_bytes, plain, string_bytes, structure, text_bytes)

_apply, _release = checked("cleaner_apply"), plain("cleaned_release")


class Cleaned:
    """What became of a document: text; kept, or the rule that dropped it and the value that the
    rule measured; meta, with what rules added."""
    __slots__ = ("text", "kept", "rule", "value", "meta")

    def __init__(self, text, rule, value, meta):
        self.text, self.kept, self.rule = text, rule is None, rule
        self.value, self.meta = value, meta

    def __bool__(self):
        return self.kept

    def __repr__(self):
        return f"<dt.Cleaned, {'kept' if self.kept else f'dropped: {self.rule} {self.value:g}'}>"


class Cleaner:
    """Rules, read once. Options are those of dt-clean(1) of the same names, with its defaults;
    deduplication, which needs other documents, is not among them. Threads may share it."""

    def __init__(self, rules=(), *, rule_text=None, normalize="none", space="keep", mask=None,
                 language=None, language_score=0.0, identify=False, min_chars=1, max_chars=0,
                 invalid="repair", mojibake=False, invisible=False, casefold=False,
                 line_ends="lf"):
        """rules: names of sets ("gopher", "c4", "fineweb", ...) or paths of rule files. rule_text:
        the text of a rule file. identify: True, or the path of a model of fastText."""
        if invalid not in ("repair", "reject") or line_ends not in ("lf", "keep"):
            raise ValueError("invalid is repair or reject, and line_ends lf or keep")
        names = [rules] if isinstance(rules, str) else list(rules)
        optional = {"rule_text": rule_text, "mask": mask, "languages": language,
                    "normalize": normalize, "space": space}
        options = structure(
            CleanerOptions, size=ctypes.sizeof(CleanerOptions), rule_count=len(names),
            rules=(c_char_p * len(names))(*map(path_bytes, names)),
            identifier=b"" if identify is True else path_bytes(identify) if identify else None,
            language_score=language_score, min_chars=min_chars, max_chars=max_chars,
            reject_invalid=invalid == "reject", mojibake=mojibake, invisible=invisible,
            casefold=casefold, keep_line_ends=line_ends == "keep",
            **{name: string_bytes(name, value) for name, value in optional.items()
               if value is not None})
        self._handle = open_handle("cleaner", byref(options))
        self._self = self._handle.value

    def __call__(self, text, *, id=None, meta=None):
        """Cleans a text, str or bytes. id: what rules of URLs look at. meta: a dict."""
        if not (meta is None or isinstance(meta, dict)):
            raise InputError(f"meta must be a dict, not {meta!r:.100}")
        data, result = text_bytes(text), CleanedDocument()
        _apply(self._self, data, len(data), string_bytes("id", id or ""),
               json.dumps(meta).encode() if meta else None, byref(result))
        try:
            return Cleaned(
                ctypes.string_at(result.text, result.text_size).decode("utf-8", "replace"),
                result.rule.decode() if result.rule else None, result.value,
                json.loads(ctypes.string_at(result.meta, result.meta_size) or b"{}"))
        finally:
            _release(byref(result))


@functools.lru_cache(maxsize=16)
def _cleaner(rules, options):
    return Cleaner(rules, **dict(options))


def clean(text, rules=(), *, id=None, meta=None, **options):
    """Cleaner(rules, **options)(text): for many texts and threads, keep a Cleaner."""
    names = (rules,) if isinstance(rules, str) else tuple(rules)
    return _cleaner(names, tuple(sorted(options.items())))(text, id=id, meta=meta)
