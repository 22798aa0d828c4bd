#!/usr/bin/env python3
"""The command line: help, exit statuses, outputs for machines, completion, generated pages.

cli.py ORLOP TOP
"""
import filecmp
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, run  # noqa: E402

orlop, top = sys.argv[1:3]
tap = Tap()
good = f"{top}/examples/cspc/stripe.yaml"
bad = f"{top}/tests/data/bad/cspc-mirror-of-one.yaml"
commands = ["up", "down", "status", "logs", "token", "validate", "explain", "convert", "crds", "docs", "backup",
            "restore", "completion", "help", "version", "lv list", "lv create", "lv resize", "lv delete", "lv audit",
            "node forget", "apiserver", "controller", "node", "sidecar", "target", "replica", "bench", "attach", "csi serve", "disk list", "disk show", "disk locate", "pool list",
            "pool show", "pool create", "pool expand", "pool replace", "pool scrub", "pool clear", "pool forget",
            "pool migrate", "pool delete", "pool serve", "volume list", "volume show", "volume create", "volume resize",
            "volume snapshot", "volume delete"]


def expect(name, argv, status, stdout=None, stderr=None, **options):
    result = run(orlop, *argv, **options)
    passed = result.returncode == status
    passed &= stdout is None or (stdout in result.stdout if stdout else result.stdout == "")
    passed &= stderr is None or (stderr in result.stderr if stderr else result.stderr == "")
    tap.ok(passed, name, f"exit status {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result


expect("no command is a mistake", [], 2, stdout="", stderr="Usage: orlop COMMAND")
expect("--help", ["--help"], 0, stdout="Disks, pools and volumes:\n", stderr="")
expect("--version", ["--version"], 0, stdout="orlop 0.", stderr="")
expect("an unknown command, with a suggestion", ["validat"], 2, stdout="",
       stderr="did you mean 'validate'?")
expect("a command with a slash is no path", ["../orlop"], 2, stdout="", stderr="no command")
for command in commands:
    expect(f"{command} --help", [*command.split(), "--help"], 0, stdout=f"Usage: orlop {command}", stderr="")
    expect(f"help {command}", ["help", *command.split()], 0, stdout=f"Usage: orlop {command}", stderr="")
expect("an unknown option", ["validate", "--frob", good], 2, stdout="", stderr="'--frob'")
expect("a missing value", ["validate", good, "--old"], 2, stdout="", stderr="needs a value")
expect("a choice that is none", ["validate", "-o", "xml", good], 2, stdout="", stderr="json, yaml")
expect("a missing argument", ["validate"], 2, stdout="", stderr="FILE... is missing")
expect("an argument too many", ["explain", "cspc", "cspi"], 2, stdout="", stderr="unexpected argument 'cspi'")

expect("valid", ["validate", good], 0, stdout="1 object valid", stderr="")
expect("valid, quietly", ["validate", "-q", good], 0, stdout="", stderr="")
expect("invalid", ["validate", bad], 1, stdout="", stderr="needs at least 2 devices")
expect("good and bad together", ["validate", good, bad], 1, stdout="")
expect("standard input", ["validate", "-"], 1, stdout="", stderr="<stdin>:1:1:", stdin="a: b\n")
expect("a file that is not there", ["validate", "/nonexistent"], 1, stdout="",
       stderr="/nonexistent: No such file")
expect("nothing to validate", ["validate", "-"], 1, stdout="", stderr="no object", stdin="# x\n")
result = expect("problems as JSON", ["validate", "-o", "json", bad], 1)
problem = json.loads(result.stdout)[0]
tap.equal([problem[k] for k in ("line", "column", "severity", "object", "field", "reason")],
          [11, 7, "error", "CStorPoolCluster/pool", "spec.pools[0].raidGroups[0].blockDevices",
           "FieldValueInvalid"], "what a problem says as JSON")
expect("problems as YAML", ["validate", "-o", "yaml", bad], 1, stdout="severity: error")
expect("no problems as JSON", ["validate", "-o", "json", good], 0, stdout="[]")
expect("a warning does not fail", ["validate", "-"], 0, stdout="1 object valid",
       stderr='warning: spec.capacity: 6 is taken for 6Gi', stdin="""
apiVersion: openebs.io/v1alpha1
kind: JivaVolume
metadata: {name: x}
spec: {capacity: 6}
""")

VOLUME = {"apiVersion": "cstor.openebs.io/v1", "kind": "CStorVolume", "metadata": {"name": "x"},
          "spec": {"capacity": "1Gi", "replicationFactor": 3}}


def list_of(*items):
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


expect("a list in a list", ["validate", "-"], 0, stdout="2 objects valid",
       stdin=json.dumps(list_of(list_of(VOLUME), VOLUME)))
deep = VOLUME
for _ in range(9):
    deep = list_of(deep)
expect("lists too deep", ["validate", "-"], 1, stderr='Unsupported value: "List"',
       stdin=json.dumps(deep))
result = expect("what a terminal would act on is not printed", ["validate", "-"], 1,
                stderr="spec.?[31m", stdin=json.dumps({**VOLUME, "spec": {"\x1b[31m": 1}}))
tap.ok("\x1b" not in result.stderr, "no escape sequences")
result = expect("nor from the source", ["validate", "-"], 1, stdin="a: \x1b[31m\x9b\n")
tap.ok("\x1b" not in result.stderr and "\x9b" not in result.stderr, "none there either")

with Scratch() as scratch:
    scratch.file("one.yaml", json.dumps(VOLUME))
    os.mkdir(scratch.file("in"))
    os.symlink("../one.yaml", scratch.file("in/linked.yaml"))
    os.symlink("in", scratch.file("folder"))
    os.symlink(".", scratch.file("in/again"))
    expect("a link to a file, in a folder", ["validate", scratch.file("in")], 0,
           stdout="1 object valid")
    expect("a link to a folder", ["validate", scratch.file("folder")], 0, stdout="1 object valid")
    os.symlink("nowhere", scratch.file("in/lost.yaml"))
    expect("a link to nothing", ["validate", scratch.file("in")], 1, stdout="", stderr="lost.yaml")

    LV = {"apiVersion": "topolvm.io/v1", "kind": "LogicalVolume", "metadata": {"name": "x"},
          "spec": {"name": "x", "nodeName": "n", "size": "1Gi"}}
    old = scratch.file("old.json", json.dumps({**LV, "status": {"volumeID": "1"}}))
    expect("a manifest without status leaves it alone", ["validate", "--old", old, "-"], 0,
           stdout="1 object valid", stdin=json.dumps({**LV, "status": None}))
    unnamed = {**VOLUME, "metadata": {"generateName": "x-"}}
    old = scratch.file("unnamed.json", json.dumps(unnamed))
    unnamed["spec"] = {"capacity": "1Mi", "replicationFactor": 3}
    expect("objects without a name are not the same", ["validate", "--old", old, "-"], 0,
           stdout="1 object valid", stdin=json.dumps(unnamed))

result = run(orlop, "lv", "--help")
tap.ok(result.returncode == 0 and "  resize       Grow a logical volume\n" in result.stdout,
       "a group has help", result.stdout)
expect("a group alone", ["lv"], 2, stdout="", stderr="Usage: orlop lv COMMAND")
expect("what a group has not", ["lv", "shrink"], 2, stdout="",
       stderr="orlop lv: there is no command 'lv shrink'\n")
expect("help of two words", ["help", "lv", "list"], 0, stdout="Usage: orlop lv list")
expect("help of one too many", ["help", "up", "list"], 1, stdout="", stderr="no command 'up list'")
expect("explain a kind", ["explain", "CSPC"], 0, stdout="VERSION:    v1alpha1")
expect("explain a field", ["explain", "cspc.spec.pools[0].raidGroups"], 0,
       stdout="Also written: dataRaidGroups")
expect("explain by another name", ["explain", "lv.spec.deviceClass"], 0, stdout="FIELD: vgName")
expect("explain, all below", ["explain", "-R", "cvr"], 0, stdout="      total\t<")
expect("explain what is not there", ["explain", "cvr.spec.blocksize"], 1, stdout="",
       stderr="did you mean 'blockSize'?")
expect("explain no kind", ["explain", "frob"], 1, stdout="", stderr="CStorVolumeReplica")

with Scratch() as scratch:
    full = "/dev/full"
    if os.path.exists(full):
        result = run("sh", "-c", f"exec {orlop} crds >{full}")
        tap.ok(result.returncode == 1 and "No space left" in result.stderr,
               "a full disk is an error", result.stderr)
    result = run(orlop, "docs", "--man", scratch.file("man"), "--markdown", scratch.file("ref"))
    tap.equal(result.returncode, 0, "docs are written")
    same = filecmp.dircmp(scratch.file("ref"), f"{top}/docs/reference")
    tap.equal((same.left_only, same.right_only, same.diff_files), ([], [], []),
              "docs/reference is what the tables give (make generate)")
    pages = sorted(os.listdir(scratch.file("man")))
    tap.equal(pages, sorted(["orlop.1"] + [f"orlop-{c.replace(' ', '-')}.1" for c in commands]), "the man pages")
    if shutil.which("man"):
        for page in pages:
            result = run("man", "--warnings", "-l", scratch.file(f"man/{page}"),
                         env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
            tap.ok(result.returncode == 0 and not result.stderr, f"man reads {page}", result.stderr)

    spaced = scratch.file("two words.yaml", "")
    script = scratch.file("completion.bash", run(orlop, "completion", "bash").stdout)
    ask = (f'source {script}; COMP_WORDS=(%s); COMP_CWORD=%d; '
           'compopt() { :; }; COMPREPLY=(); _orlop; printf "%%s\\n" "${COMPREPLY[@]}"')
    for words, place, offered in (("orlop v", 1, ["validate", "volume", "version"]),
                                  ("orlop validate --ol", 2, ["--old"]),
                                  ("orlop validate -o ''", 3, ["json", "yaml"]),
                                  ("orlop validate --output = y", 4, ["yaml"]),
                                  ("orlop validate --output =", 3, ["json", "yaml"]),
                                  (f"orlop validate '{spaced}'", 2, [spaced]),
                                  ("orlop explain jivavolume", 2,
                                   ["jivavolume", "jivavolumeresize"]),
                                  ("orlop lv re", 2, ["resize"]),
                                  ("orlop l", 1, ["logs", "lv"]),
                                  ("orlop lv list --out", 3, ["--output"]),
                                  ("orlop lv list -o ''", 4,
                                   ["table", "wide", "json", "yaml", "name"]),
                                  ("orlop node --dis", 2, ["--discover"]),
                                  ("orlop node --name x --dis", 4, ["--discover"]),
                                  ("orlop node f", 2, ["forget"]),
                                  ("orlop node forget --fo", 3, ["--force"]),
                                  ("orlop apiserver --audit-level ''", 3, ["off", "writes", "all"]),
                                  ("orlop completion ''", 2, ["bash", "zsh", "fish"])):
        result = run("bash", "-c", ask % (words, place))
        tap.equal(result.stdout.splitlines(), offered, f"bash completes: {words}")
    for shell in ("zsh", "fish"):
        text = expect(f"completion {shell}", ["completion", shell], 0, stdout="orlop").stdout
        if shutil.which(shell):
            result = run(shell, "-n", scratch.file(f"completion.{shell}", text))
            tap.ok(result.returncode == 0 and not result.stderr, f"{shell} reads it", result.stderr)
    if shutil.which("fish"):
        for line, offered in (("orlop v", ["validate", "version", "volume"]),
                              ("orlop validate --out", ["--output"]),
                              ("orlop validate -o ", ["json", "yaml"]),
                              ("orlop explain jiva", ["jivavolume", "jivavolumeresize"]),
                              ("orlop lv re", ["resize"]),
                              ("orlop lv list --out", ["--output"]),
                              ("orlop crds ", [])):
            result = run("fish", "--no-config", "-c", f"source {scratch.file('completion.fish')}; "
                         f"complete -C '{line}'", cwd=top)
            tap.equal([x.split("\t")[0] for x in result.stdout.splitlines()], offered,
                      f"fish completes: {line}")
    if shutil.which("zsh"):
        result = run("zsh", "-f", "-c", "autoload -Uz compinit; compinit -u -D; "
                     f"source {scratch.file('completion.zsh')}; print $_comps[orlop]")
        tap.equal((result.stdout, result.stderr), ("_orlop\n", ""), "zsh can source it")
    expect("completion of no shell", ["completion", "tcsh"], 2, stdout="", stderr="bash, zsh, fish")
tap.done()
