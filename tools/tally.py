#!/usr/bin/env python3
"""Adds up the cases in meson's reports: prints each failure and "N passed, N failed".

tally.py STATUS LOGS...   LOGS is build/NAME/meson-logs; exits 1 when a case or a program failed, a
                          report is missing, or STATUS is not 0

The JUnit report has the cases but does not tell of a program that hung, or that died between its
cases; what became of each program is in the other one.
"""
import json
import os
import sys
import xml.etree.ElementTree as xml


def read(logs):
    """The cases, and the programs that failed with how: TIMEOUT, ERROR, ..."""
    cases = list(xml.parse(os.path.join(logs, "testlog.junit.xml")).getroot().iter("testcase"))
    with open(os.path.join(logs, "testlog.json"), encoding="utf-8") as f:
        results = {test["name"]: test["result"] for test in map(json.loads, f)}
    good = ("OK", "SKIP", "EXPECTEDFAIL")
    return cases, {name: how for name, how in results.items() if how not in good}


def tally(build, cases, bad):
    """How many cases passed and were skipped, and a line for each failure."""
    passed, skipped, failures, explained = 0, 0, [], set()
    for case in cases:
        # The class is PROJECT.PROGRAM, or PROJECT alone when the program is the case.
        program = case.get("classname", "").partition(".")[2]
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failures.append(f"{build}: {program} {case.get('name')}".replace("  ", " "))
            explained.add(program or case.get("name"))
        elif not program and case.get("name") in bad:
            continue  # it hung, which this report does not say
        elif "skipped" in outcomes:
            skipped += 1
        else:
            passed += 1
    failures += [f"{build}: {program}: {how} outside any case" for program, how in bad.items()
                 if program not in explained]
    return passed, skipped, failures


def main(status, folders):
    passed, skipped, failures = 0, 0, []
    for logs in folders:
        build = os.path.basename(os.path.dirname(logs))
        try:
            cases, bad = read(logs)
        except (OSError, ValueError, xml.ParseError) as error:
            failures.append(f"{build}: no report: {error}")
            continue
        more = tally(build, cases, bad)
        passed, skipped, failures = passed + more[0], skipped + more[1], failures + more[2]
    if status != "0" and not failures:
        failures.append("a build or the test runner failed outside any test")
    for failure in failures:
        print("FAILED", failure)
    print(f"{passed} passed, {len(failures)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
