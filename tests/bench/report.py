"""What a benchmark has seen: rows with a ratio, an aim and a verdict; as text, as Markdown, as JSON.

A run is saved in build/bench/NAME.json, a quick one in NAME.quick.json; the run before it stays beside it as *.last.json,
and a table shows how much each row has changed since. A run of a part of the rows is shown and not saved. A row is

    {"name", "value", "unit", "peer", "ratio", "aim", "verdict", "more"}

where peer, ratio and aim may be null. The aim is about the ratio if there is one, else about the value.
"""
import argparse
import datetime
import json
import os

from measure import TOP, Quiet, describe_noise, machine
from tap import run

FOLDER = os.environ.get("BENCH_RESULTS", f"{TOP}/build/bench")
CHANGED = 0.10  # what differs by less is noise


def arguments(rounds, text):
    """The options of every benchmark."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help=f"medians of that many ({rounds})")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it works")
    parser.add_argument("--only", default="", metavar="TEXT", help="the rows whose name has TEXT; nothing is saved")
    parser.set_defaults(usual_rounds=rounds)
    return parser


def parse(parser):
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else args.usual_rounds)
    return args


def judge(number, aim):
    """"reached" or "missed", for an aim such as ">= 0.6"."""
    sign, bound = aim.split()
    return "reached" if (number >= float(bound) if sign == ">=" else number <= float(bound)) else "missed"


def make_row(name, value, unit, peer=None, ratio=None, aim=None, **more):
    if ratio is None and peer:
        ratio = value / peer
    return {"name": name, "value": value, "unit": unit, "peer": peer, "ratio": ratio, "aim": aim,
            "verdict": judge(value if ratio is None else ratio, aim) if aim else None, "more": more}


def text_of(number):
    """Three digits are enough."""
    if number is None:
        return ""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"


def change_since(row, last):
    """How a row differs from the same row of the run before; "" when that has none."""
    before = next((r for r in last.get("rows", []) if r["name"] == row["name"]), None)
    key = "value" if row["ratio"] is None else "ratio"
    if not before or not before.get(key) or row[key] is None:
        return ""
    share = row[key] / before[key] - 1
    if abs(share) < CHANGED:
        return "same"
    better = (share > 0) == (row["aim"] or ">=").startswith(">=")
    return f"{100 * share:+.0f} %" + ((" better" if better else " worse") if row["aim"] else "")


def cells(row, last):
    more = ", ".join(f"{name} {text_of(value) if isinstance(value, (int, float)) else value}"
                     for name, value in row["more"].items() if value is not None)
    return [row["name"], f"{text_of(row['value'])} {row['unit']}".strip(), text_of(row["peer"]), text_of(row["ratio"]),
            row["aim"] or "", row["verdict"] or "", change_since(row, last), more]


def heads(result):
    return ["", "seen", result["peer"] or "peer", "ratio", "aim", "verdict", "since last run", ""]


def table(result, last):
    """Lines of text."""
    rows = [heads(result)] + [cells(row, last) for row in result["rows"]]
    kept = [i for i in range(len(rows[0])) if i < 2 or any(r[i] for r in rows[1:])]
    widths = {i: max(len(r[i]) for r in rows) for i in kept}
    lines = ["  " + "  ".join(r[i].ljust(widths[i]) if i in (0, 7) else r[i].rjust(widths[i]) for i in kept).rstrip() for r in rows]
    return [f"{result['title']} ({result['rounds']})", *lines]


def markdown_table(rows):
    """Columns that are empty are left out."""
    kept = [i for i in range(len(rows[0])) if i < 2 or any(r[i] for r in rows[1:])]
    lines = ["| " + " | ".join(r[i] for i in kept) + " |" for r in rows]
    return [lines[0], "|" + " --- |" * len(kept), *lines[1:]]


def beside(result):
    """Rows `NAME: VARIANT` as one for each name, with the variants beside each other, each with what `columns` names of its
    `more`; and the other rows."""
    found, rest = {}, []
    for row in result["rows"]:
        name, _, variant = row["name"].rpartition(": ")
        if variant in result.get("variants", []) and row["ratio"] is not None:
            found.setdefault(name, {})[variant] = row
        else:
            rest.append(row)
    rows = [["", result["peer"]] + [w for v in result.get("variants", []) for w in (v, "ratio (aim)", *result["columns"])]]
    for name, variants in found.items():
        one = next(iter(variants.values()))
        line = [name, f"{text_of(one['peer'])} {one['unit']}"]
        for variant in result["variants"]:
            row = variants.get(variant)
            ratio = text_of(row["ratio"]) if row else ""
            ratio = f"**{ratio}**" if row and row["verdict"] == "reached" else ratio
            line += [text_of(row["value"]) if row else "", ratio + (f" ({row['aim']})" if row and row["aim"] else "")]
            line += [text_of(row["more"].get(column)) if row else "" for column in result["columns"]]
        rows.append(line)
    return rows, rest


def markdown(result):
    """The same for a page, with when and where it was seen; what reaches its aim is bold."""
    where = f"**{result['title']}.** Seen on {result['date'][:10]} at revision {result['revision']}: {result['machine']}; {result['rounds']}."
    lines = [" ".join(filter(None, [where, describe_noise(result["noise"])])), ""]
    variants, rest = beside(result)
    if len(variants) > 1:
        lines += [*markdown_table(variants), ""]
    rows = [heads(result)] + [cells(row, {}) for row in rest]
    for row in rows[1:]:
        row[5] = f"**{row[5]}**" if row[5] == "reached" else row[5]
    return lines + markdown_table(rows) if rest else lines[:-1]


def insert(page, name, lines):
    """The page with these lines at the place of a benchmark, which begins with `<!-- bench NAME -->`; None without one."""
    begin, end = f"<!-- bench {name} -->\n", "<!-- end -->"
    before, found, rest = page.partition(begin)
    if not found or end not in rest:
        return None
    return before + begin + "\n".join(lines) + "\n" + rest[rest.index(end):]


def path_of(name, quick=False, last=False):
    return f"{FOLDER}/{name}{'.quick' if quick else ''}{'.last' if last else ''}.json"


def load(name, quick=False, last=False):
    """A saved run, or {}."""
    try:
        with open(path_of(name, quick, last), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def store(result):
    """Keeps a run, and the one before it."""
    os.makedirs(FOLDER, exist_ok=True)
    path = path_of(result["bench"], result["quick"])
    if os.path.exists(path):
        os.replace(path, path_of(result["bench"], result["quick"], True))
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    os.replace(path + ".new", path)


class Report:
    """A run of a benchmark, in `with`: it is saved and shown at the end, unless it fails."""

    def __init__(self, name, title, args, peer=None, rounds=None, folder=None, variants=(), columns=()):
        self.args, self.quiet = args, Quiet()
        revision = run("git", "-C", TOP, "describe", "--always", "--dirty", "--exclude=*").stdout.strip()
        self.result = {"bench": name, "title": title, "peer": peer, "quick": args.quick,
                       "rounds": rounds or (f"medians of {args.rounds}" if args.rounds > 1 else "one round"),
                       "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                       "revision": revision or "unknown", "machine": machine(folder), "variants": list(variants), "columns": list(columns),
                       "rows": []}

    def wants(self, name):
        return self.args.only in name

    def row(self, name, value, unit, peer=None, ratio=None, aim=None, **more):
        """Adds a row, and shows it at once: a benchmark takes long."""
        row = make_row(name, value, unit, peer, ratio, aim, **more)
        if self.wants(name):
            self.result["rows"].append(row)
            print("  " + "  ".join(filter(None, [f"{name:64}", *cells(row, {})[1:]])), flush=True)

    def __enter__(self):
        print(f"\n{self.result['title']}", flush=True)
        return self

    def __exit__(self, kind, *_):
        if kind:
            return
        self.result["noise"] = self.quiet.report()
        if not self.args.only:
            store(self.result)
        if not self.result["noise"]["quiet"]:
            print(f"  WARNING: {describe_noise(self.result['noise'])}", flush=True)
