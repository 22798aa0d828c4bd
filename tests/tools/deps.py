#!/usr/bin/env python3
"""tools/deps with a dpkg, an apt and a sudo of ours: what it installs and what it edits.

deps.py TOOLS
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, run  # noqa: E402

deps = os.path.join(sys.argv[1], "deps")
tap = Tap()

PROGRAMS = {
    # -W -f FORMAT NAME...
    "dpkg-query": 'shift 3; r=0; for p; do if grep -qx "$p" "$W/installed"; '
                  'then echo "installed $p"; else r=1; fi; done; exit $r',
    "dpkg": 'cat "$W/arch"',
    "apt-config": 'echo "$2=\'$W/apt/\'"',
    "apt-get": 'echo "${DEBIAN_FRONTEND:-} $*" >>"$W/log"; [ -z "$(cat "$W/fails")" ] || exit 100; '
               '[ "$1" != install ] || printf "%s\\n" "$@" >>"$W/installed"',
    "id": 'cat "$W/uid"',
    "sudo": 'echo "sudo $*" >>"$W/log"; exec env -i W="$W" PATH="$PATH" "$@"',
}

KEYRING = "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
STANZAS = ("Types: deb\n# why not\nURIs: http://a.example/debian\nSuites: x x-updates\n"
           "Components: main{0}\n" + KEYRING +
           "\n\nComponents: main non-free-firmware{0}\nTypes: deb\n" + KEYRING +
           "\nTypes: deb\nURIs: http://b.example/debian\nComponents: main\nSigned-By: /other.gpg\n")
LINES = ("# deb http://a.example/debian x main\n"
         "deb http://a.example/debian x main{0}\n"
         "deb [arch=amd64 trusted=yes] http://a.example/pub/debian/\tx main{0} non-free # main\n"
         "deb http://a.example/debian-security x-security main{0}\n"
         "deb http://a.example/debian x contrib main\n"
         "deb-src http://a.example/debian x main\n"
         "deb https://b.example/debian/12/prod x main\n"
         "deb https://c.example/apt x main\n")


class Machine(Scratch):
    """A Debian with nothing installed and no sources yet, below a scratch folder."""

    def __init__(self, uid=0, arch="amd64"):
        self.uid, self.arch = uid, arch

    def __enter__(self):
        super().__enter__()
        for folder in ("bin", "apt", "apt/sources.list.d"):
            os.mkdir(self.file(folder))
        for name, body in PROGRAMS.items():
            os.chmod(self.file("bin/" + name, "#!/bin/sh\n" + body + "\n"), 0o755)
        for name, text in {"installed": "", "log": "", "fails": "", "uid": str(self.uid), "arch": self.arch}.items():
            self.file(name, text)
        return self

    def read(self, name):
        with open(self.file(name), encoding="utf-8") as f:
            return f.read()

    def deps(self):
        path = self.file("bin") + ":/usr/bin:/bin"
        return run(deps, env={"PATH": path, "W": self.path, "TMPDIR": self.path})


for arch, there in (("amd64", True), ("arm64", False)):
    with Machine(arch=arch) as m:
        m.deps()
        tap.equal("libipsec-mb-dev\n" in m.read("installed"), there, f"what is only for amd64, on {arch}")
with Machine() as m:
    m.file("apt/sources.list", LINES.format(""))
    m.file("apt/sources.list.d/debian.sources", STANZAS.format(""))
    m.file("apt/sources.list.d/more.list", LINES.format(""))
    m.file("apt/sources.list.d/old.list.save", LINES.format(""))
    m.file("apt/sources.list.d/other.sources", "Types: deb\nComponents: main\n")
    first = m.deps()
    tap.ok(first.returncode == 0 and first.stdout.startswith("Installing: build-essential"),
           "what is missing is named and installed", first)
    tap.ok(m.read("log").startswith(" update -qq\nnoninteractive install -y"),
           "the lists are fetched first, and nobody is asked", m.read("log"))
    tap.equal(m.read("apt/sources.list"), LINES.format(" contrib"), "one-line entries")
    tap.equal(m.read("apt/sources.list.d/debian.sources"), STANZAS.format(" contrib"), "stanzas")
    tap.equal(m.read("apt/sources.list.d/more.list"), LINES.format(" contrib"), "further lines")
    tap.equal(m.read("apt/sources.list.d/old.list.save"), LINES.format(""), "no source, no edit")
    tap.equal(m.read("apt/sources.list.d/other.sources"), "Types: deb\nComponents: main\n",
              "other sources keep every byte")
    m.file("log", "")
    second = m.deps()
    tap.equal((second.returncode, second.stdout, second.stderr, m.read("log")), (0, "", "", ""),
              "a second run does nothing")

    # Something missing that needs no contrib, in a machine already set up.
    m.file("installed", m.read("installed").replace("\njq\n", "\n"))
    m.file("apt/sources.list", LINES.format(""))
    third = m.deps()
    tap.equal(third.stdout, "Installing: jq\n", "only what is missing")
    tap.equal(m.read("apt/sources.list"), LINES.format(""), "no contrib when nothing needs it")

with Machine() as m:
    tap.equal(m.deps().returncode, 0, "without any file of sources")

with Machine(uid=1000) as m:
    m.file("apt/sources.list", LINES.format(""))
    result = m.deps()
    tap.ok(result.returncode == 0 and "sudo cp" in m.read("log"), "as a user, by sudo", m.read("log"))
    tap.ok("noninteractive install" in m.read("log"), "nobody is asked through sudo either",
           m.read("log"))

with Machine() as m:
    m.file("fails", "yes")
    tap.equal(m.deps().returncode, 100, "apt's failure is ours")

with Machine() as m:
    m.file("bin/apt-get", "#!/bin/sh\n")
    result = m.deps()
    tap.ok(result.returncode == 1 and "still missing: build-essential" in result.stderr,
           "an apt that says it worked is not believed", result)

tap.done()
