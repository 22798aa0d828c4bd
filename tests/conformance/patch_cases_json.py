"""RFC 6902 patches."""

from patch_cases import Table, thing

TABLE = Table("json")
ok, bad, refused, differs = TABLE.ok, TABLE.bad, TABLE.refused, TABLE.differs

DOC = thing(list=[1, 2, 3], n=None, f=1.5, s="text", t=True,
            o={"k": None, "deep": {"er": [{"a": 1}, {"a": 2}]}},
            odd={"a/b": 1, "m~n": 2, "": 3, "01": 4, "-": 5, " ": 6, "ä": 7})


def add(path, value):
    return {"op": "add", "path": path, "value": value}


def remove(path):
    return {"op": "remove", "path": path}


def replace(path, value):
    return {"op": "replace", "path": path, "value": value}


def move(source, path):
    return {"op": "move", "from": source, "path": path}


def copy(source, path):
    return {"op": "copy", "from": source, "path": path}


def test(path, value):
    return {"op": "test", "path": path, "value": value}


ok("an empty patch", DOC, [])
ok("add a member", DOC, [add("/new", {"a": [1]})])
ok("add over a member", DOC, [add("/s", "other")])
ok("add null", DOC, [add("/new", None)])
ok("add in a nested object", DOC, [add("/o/deep/x", 1)])
ok("add at the front of a list", DOC, [add("/list/0", 0)])
ok("add in the middle of a list", DOC, [add("/list/1", [9])])
ok("add at the list's length", DOC, [add("/list/3", 4)])
ok("add with -", DOC, [add("/list/-", {"x": 1})])
ok("add in an object in a list", DOC, [add("/o/deep/er/1/b", 3)])
ok("add a member with the empty name", DOC, [add("/", 1)])
bad("add beyond the end of a list", DOC, [add("/list/4", 9)])
bad("add with a word for an index", DOC, [add("/list/one", 9)])
bad("add with a fraction for an index", DOC, [add("/list/1.0", 9)])
bad("add with an empty index", DOC, [add("/list/", 9)])
bad("add below what is missing", DOC, [add("/none/x", 1)])
bad("add below a string", DOC, [add("/s/x", 1)])
bad("add below a number", DOC, [add("/f/x", 1)])
bad("add below null", DOC, [add("/n/x", 1)])
bad("add below -", DOC, [add("/list/-/x", 1)])
bad("add without a slash", DOC, [add("x", 1)])

ok("remove a member", DOC, [remove("/s")])
ok("remove a null member", DOC, [remove("/o/k")])
ok("remove an element", DOC, [remove("/list/1")])
ok("remove every element", DOC, [remove("/list/0")] * 3)
bad("remove one element too many", DOC, [remove("/list/0")] * 4)
bad("remove what is missing", DOC, [remove("/none")])
bad("remove at -", DOC, [remove("/list/-")])
bad("remove the document", DOC, [remove("")])

ok("replace a member", DOC, [replace("/o", 1)])
ok("replace an element", DOC, [replace("/list/2", "x")])
ok("replace a member that is not there", DOC, [replace("/o/none", 1)])
ok("replace the document", DOC, [replace("", thing(other=1))])
bad("replace beyond the end", DOC, [replace("/list/3", 1)])
bad("replace at -", DOC, [replace("/list/-", 1)])
bad("replace below what is missing", DOC, [replace("/none/x", 1)])

ok("move a member", DOC, [move("/s", "/o/s")])
ok("move over a member", DOC, [move("/s", "/f")])
ok("move onto itself", DOC, [move("/list", "/list")])
ok("move within a list, up", DOC, [move("/list/0", "/list/2")])
ok("move within a list, down", DOC, [move("/list/2", "/list/0")])
ok("move to the end of a list", DOC, [move("/list/0", "/list/-")])
ok("move between lists", DOC, [move("/o/deep/er/0", "/list/1")])
ok("move a null", DOC, [move("/n", "/o/n")])
bad("move into its own child", DOC, [move("/o", "/o/deep/x")])
bad("move what is missing", DOC, [move("/none", "/x")])
bad("move to what is missing", DOC, [move("/s", "/none/x")])
bad("move to an index that its removal took away", DOC, [move("/list/0", "/list/3")])

ok("copy a member", DOC, [copy("/o", "/p")])
ok("copy, then change one of the two", DOC, [copy("/o", "/p"), add("/p/deep/er/0/b", 1),
                                             remove("/o/deep/er/1")])
ok("copy into its own child", DOC, [copy("/o", "/o/deep/x")])
ok("copy within a list", DOC, [copy("/list/0", "/list/-")])
bad("copy to what is missing", DOC, [copy("/s", "/none/x")])
bad("copy an element that is missing", DOC, [copy("/list/7", "/x")])

ok("test a string", DOC, [test("/s", "text")])
ok("test a number", DOC, [test("/f", 1.5)])
ok("test true", DOC, [test("/t", True)])
ok("test null", DOC, [test("/n", None)])
ok("test an object", DOC, [test("/o", {"deep": {"er": [{"a": 1}, {"a": 2}]}, "k": None})])
ok("test a list", DOC, [test("/list", [1, 2, 3])])
ok("test null of a member that is not there", DOC, [test("/none", None)])
bad("test another string", DOC, [test("/s", "Text")])
bad("test a string against a number", DOC, [test("/list/0", "1")])
bad("test a number against true", DOC, [test("/list/0", True)])
bad("test a list in another order", DOC, [test("/list", [1, 3, 2])])
bad("test an object with one member less", DOC, [test("/o", {"k": None})])
bad("test null against a value", DOC, [test("/n", 0)])
bad("test a value of what is not there", DOC, [test("/none", 1)])
bad("test below what is missing", DOC, [test("/none/x", None)])

ok("escaped slash", DOC, [replace("/odd/a~1b", 10)])
ok("escaped tilde", DOC, [replace("/odd/m~0n", 10)])
ok("escapes are undone once", DOC, [add("/odd/~01", 10)])
ok("the empty name", DOC, [replace("/odd/", 10)])
ok("digits and - are names in an object", DOC, [remove("/odd/01"), remove("/odd/-")])
ok("a space and a letter beyond ASCII", DOC, [replace("/odd/ ", 1), replace("/odd/ä", 2)])

ok("-1 is the last element", DOC, [remove("/list/-1"), replace("/list/-1", "two")])
ok("add at -1 appends", DOC, [add("/list/-1", 4)])
ok("add at the lowest index from the end", DOC, [add("/list/-4", 0)])
ok("a step through -1", DOC, [add("/o/deep/er/-1/b", 1)])
bad("before the first element", DOC, [remove("/list/-4")])
bad("add before the first place", DOC, [add("/list/-5", 0)])

bad("a patch that is no list", DOC, {"op": "add", "path": "/x", "value": 1})
bad("an unknown operation", DOC, [{"op": "Add", "path": "/x", "value": 1}])
bad("no operation", DOC, [{"path": "/x", "value": 1}])
bad("no path", DOC, [{"op": "add", "value": 1}])
bad("a path that is no string", DOC, [{"op": "add", "path": 1, "value": 1}])
bad("move without from", DOC, [{"op": "move", "path": "/x"}])
bad("the first operation applies, the second does not", DOC, [add("/x", 1), remove("/none")])
ok("members that mean nothing", DOC, [{**add("/x", 1), "from": "/none", "comment": "y"}])
ok("a realistic one", DOC, [test("/kind", "Thing"), add("/metadata/labels", {}),
                            add("/metadata/labels/example.io~1a", "b"),
                            replace("/metadata/name", "y"), remove("/o/deep/er/0")])

# Where kubectl's library strays from the RFC by accident, the RFC is followed.
refused("an index with a leading zero", DOC, [remove("/list/01")])
refused("an index with a plus", DOC, [remove("/list/+1")])
refused("an unknown escape", DOC, [add("/a~2b", 1)])
refused("add without a value", DOC, [{"op": "add", "path": "/x"}])
refused("replace without a value", DOC, [{"op": "replace", "path": "/s"}])
refused("copy of a member that is not there", DOC, [copy("/none", "/x")])
differs("add at the top of the document", DOC, [add("", thing(a=1))], thing(a=1))
differs("copy the document into itself", thing(), [copy("", "/c")], thing(c=thing()))
