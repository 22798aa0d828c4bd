"""RFC 7386 patches."""

from patch_cases import Table, thing

TABLE = Table("merge")
ok, differs = TABLE.ok, TABLE.differs

DOC = thing(a="b", n=None, list=[1, {"x": 1}], o={"p": {"q": 1, "r": 2}, "s": "t"}, e={})

ok("an empty patch", DOC, {})
ok("replace a string", DOC, {"a": "c"})
ok("add a member", DOC, {"b": "c"})
ok("remove a member", DOC, {"a": None})
ok("remove one and add one", DOC, {"a": None, "b": "c"})
ok("remove what is not there", DOC, {"none": None})
ok("remove a null member", DOC, {"n": None})
ok("remove an object", DOC, {"o": None})
ok("remove below", DOC, {"o": {"p": {"q": None}}})
ok("remove all below", DOC, {"o": {"p": {"q": None, "r": None}}})
ok("add below", DOC, {"o": {"p": {"new": [1]}}})
ok("a list replaces a list", DOC, {"list": ["c"]})
ok("an empty list", DOC, {"list": []})
ok("a list replaces a string", DOC, {"a": ["b"]})
ok("a string replaces a list", DOC, {"list": "c"})
ok("an object replaces a list", DOC, {"list": {"0": 1}})
ok("a list replaces an object", DOC, {"o": [1]})
ok("an object replaces a string", DOC, {"a": {"b": "c"}})
ok("a string replaces an object", DOC, {"o": "c"})
ok("an object replaces null", DOC, {"n": {"x": 1, "y": None}})
ok("a value replaces null", DOC, {"n": 0})
ok("an empty object leaves an object", DOC, {"o": {}})
ok("an empty object replaces a string", DOC, {"a": {}})
ok("an empty object replaces a list", DOC, {"list": {}})
ok("a new object loses its nulls", DOC, {"new": {"a": {"bb": {"ccc": None}}}})
ok("a new object loses some nulls", DOC, {"new": {"x": 1, "y": None, "z": {"w": None, "v": 2}}})
ok("into an empty object", DOC, {"e": {"x": {"y": None, "z": 1}}})
ok("an object over a string loses its nulls", DOC, {"a": {"b": {"c": None}, "d": None}})
ok("null in a list stays", DOC, {"list": [1, None, [None]]})
ok("null in a new list stays", DOC, {"new": [None]})
ok("true, false, numbers, strings", DOC, {"t": True, "f": False, "i": -5, "d": 0.25, "s": ""})
ok("names that mean something elsewhere", DOC, {"$patch": "delete", "a/b": 1, "~": 2, "": 3})
ok("labels and annotations", DOC, {"metadata": {"labels": {"x": "y"}, "annotations": None}})
ok("null below a list that becomes an object", DOC, {"list": {"x": None, "y": {"z": None}}})
# The RFC takes lists as they are. kubectl removes nulls from the objects in them, unless the list
# replaces an object.
differs("a null in an object in a list", thing(), {"list": [{"a": None, "b": 1}]},
        thing(list=[{"a": None, "b": 1}]))

# By the RFC these are patches; kubectl wants an object for a patch and one with a kind as result.
differs("null for a patch", DOC, None, None)
differs("a list for a patch", DOC, [1], [1])
differs("a patch that takes the kind away", thing(), {"kind": None},
        {"apiVersion": "example.io/v1", "metadata": {"name": "x"}})
