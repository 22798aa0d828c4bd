"""The cases of patch-kubectl.py: what is patched, with what, and whether the patch applies.

The lists are in three files by format; this one has what they share.
"""

import copy
from dataclasses import dataclass
from typing import Any


@dataclass
class Case:
    type: str         # json, merge or strategic
    name: str
    doc: Any
    patch: Any
    expect: str       # of kubectl: ok, error; or differ, when ours is known to be another
    ours: Any = None  # for differ: ("ok", value) or ("error", "")


class Table:
    """Collects the cases of one format."""

    def __init__(self, type_):
        self.type = type_
        self.cases = []

    def ok(self, name, doc, patch):
        self._add(name, doc, patch, "ok")

    def bad(self, name, doc, patch):
        self._add(name, doc, patch, "error")

    def refused(self, name, doc, patch):
        """kubectl applies it, to something that no RFC and no reader would expect."""
        self._add(name, doc, patch, "differ", ("error", ""))

    def differs(self, name, doc, patch, ours):
        self._add(name, doc, patch, "differ", ("ok", ours))

    def _add(self, name, doc, patch, expect, ours=None):
        self.cases.append(Case(self.type, name, copy.deepcopy(doc), patch, expect, ours))


def thing(**members):
    """An object of no built-in kind, which kubectl takes as it is."""
    return {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "x"}, **members}


# At the end: the lists need the names above.
import patch_cases_json       # noqa: E402
import patch_cases_merge      # noqa: E402
import patch_cases_strategic  # noqa: E402

CASES = (patch_cases_json.TABLE.cases + patch_cases_merge.TABLE.cases
         + patch_cases_strategic.TABLE.cases)
