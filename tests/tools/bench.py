#!/usr/bin/env python3
"""What benchmarks share: verdicts, what is saved and compared, the page, the picture, and which folders are refused.

bench.py TOOLS
"""
import argparse
import contextlib
import os
import sys
import xml.dom.minidom

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
from tap import Scratch, Tap, run  # noqa: E402
import measure  # noqa: E402
import picture  # noqa: E402
import report  # noqa: E402

tap = Tap()
ARGS = argparse.Namespace(quick=False, only="", rounds=3)


@contextlib.contextmanager
def a_run(**args):
    """A run; what it prints is no TAP."""
    with contextlib.redirect_stdout(sys.stderr), \
            report.Report("x", "Title", argparse.Namespace(**{**vars(ARGS), **args}), "tgt") as it:
        yield it


def check_rows():
    row = report.make_row("w", 50, "/s", 100, aim=">= 0.6")
    tap.equal((row["ratio"], row["verdict"]), (0.5, "missed"), "an aim is about the ratio where there is a peer")
    tap.equal(report.make_row("w", 0.5, "s", aim="<= 1")["verdict"], "reached", "and about the value where there is none")
    tap.equal(report.make_row("w", 5, "s")["verdict"], None, "without an aim there is no verdict")
    last = {"rows": [report.make_row("w", 100, "/s", 100)]}
    tap.equal(report.change_since(row, last), "-50 % worse", "a row that fell by half says so")
    tap.equal(report.change_since(report.make_row("w", 4, "s", aim="<= 5"), {"rows": [report.make_row("w", 8, "s")]}),
              "-50 % better", "less is better where the aim is to have little")
    tap.equal(report.change_since(row, {"rows": [report.make_row("w", 51, "/s", 100)]}), "same", "a little is noise")
    tap.equal(report.change_since(row, {}), "", "the first run has nothing to compare with")


def check_runs(scratch):
    report.FOLDER = scratch.file("results")
    for rate in (10, 30):
        with a_run() as run_:
            run_.row("writes", rate, "/s", 20, aim=">= 1.0", CPU=1.5)
    tap.equal((report.load("x")["rows"][0]["value"], report.load("x", last=True)["rows"][0]["value"]), (30, 10),
              "a run is saved, and the one before it kept")
    text = "\n".join(report.table(report.load("x"), report.load("x", last=True)))
    tap.ok("1.50" in text and ">= 1.0" in text and "reached" in text and "+200 % better" in text,
           "the table has ratio, aim, verdict and what changed", text)
    with a_run(only="read") as run_:
        run_.row("writes", 1, "/s")
        run_.row("reads", 1, "/s")
    tap.equal(([r["name"] for r in run_.result["rows"]], report.load("x")["rows"][0]["value"]), (["reads"], 30),
              "a run of a part is not saved")
    try:
        with a_run():
            raise KeyError
    except KeyError:
        tap.equal(report.load("x")["rows"][0]["value"], 30, "nor is one that failed")


def check_page():
    page = "a\n<!-- bench x -->\nold\n<!-- end -->\nb\n<!-- bench y -->\nkept\n<!-- end -->\n"
    tap.equal(report.insert(page, "x", ["new", "lines"]), page.replace("old", "new\nlines"),
              "a page changes at the place of the benchmark alone")
    tap.equal(report.insert(page, "z", ["new"]), None, "a page without a place is not changed")
    result = report.load("x")
    result["noise"] = {"quiet": False, "load": 3, "others": 0.5, "steal": 0}
    text = "\n".join(report.markdown(result))
    tap.ok("not quiet" in text and "other programs took 50 %" in text and "| writes |" in text and "**reached**" in text,
           "it says where a run was, and that the machine was not quiet", text)
    drawn = picture.draw({**result, "rows": result["rows"] + [report.make_row("<a & b>", 1, "/s", 2, aim=">= 1"),
                                                                report.make_row("c", 1, "s", aim="<= 1")]})
    tree = xml.dom.minidom.parseString(drawn)
    tap.equal(len(tree.getElementsByTagName("rect")), 3, "the picture has a bar for each ratio, and is XML")
    tap.equal(picture.draw({**result, "rows": []}), "", "there is no picture of nothing")


def check_variants():
    rows = [report.make_row(f"writes: {n} replicas", n, "/s", 2, aim=">= 1.0", CPU=7 * n) for n in (1, 3)]
    text = report.markdown({**report.load("x"), "variants": ["1 replicas", "3 replicas"], "columns": ["CPU"],
                            "rows": [*rows, report.make_row("syncs", 7, "", aim="<= 20")]})
    tap.ok("| writes | 2.00 /s | 1.00 | 0.50 (>= 1.0) | 7.00 | 3.00 | **1.50** (>= 1.0) | 21.0 |" in text and
           "| syncs | 7.00 | <= 20 | **reached** |" in text, "variants of a row stand beside each other", "\n".join(text))


def check_noise():
    quiet = measure.Quiet()
    loop = "import time\ne = time.process_time() + 0.5\nwhile time.process_time() < e: pass"
    run(sys.executable, "-c", loop)
    before = measure.own_time()
    run("sh", "-c", f"{sys.executable} -c '{loop}' & wait")
    tap.ok(measure.own_time() - before > 0.4, "what its own programs use is not taken for others'")
    tap.ok(0 <= quiet.report()["others"] <= 1, "others' share of the processors is a share", quiet.report())


def check_folder():
    tools = os.path.join(os.path.dirname(__file__), "..", "bench", "bench_volume.py")
    if measure.file_system("/dev/shm")[0] != "tmpfs":
        tap.skip("a folder in memory is refused", "it takes a tmpfs at /dev/shm")
        return
    tap.ran(run(sys.executable, tools, "--quick", "--folder", "/dev/shm"), "a folder in memory is refused", 1,
            stderr="/dev/shm is on tmpfs, where a sync costs nothing: name a folder on a disk with --folder DIR")


with Scratch() as scratch_:
    check_rows()
    check_runs(scratch_)
    check_page()
    check_variants()
    check_noise()
    check_folder()
tap.done()
