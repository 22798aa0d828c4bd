#!/usr/bin/env python3
"""Adds up the cases in meson's JUnit reports: prints each failure and "N passed, N failed".

tally.py STATUS REPORT...   exits 1 when a case failed, a report is missing, or STATUS is not 0
"""
import sys
import xml.etree.ElementTree as xml


def main(status, reports):
    passed, failures, skipped = 0, [], 0
    for report in reports:
        build = report.split("/")[1]
        try:
            root = xml.parse(report).getroot()
        except (OSError, xml.ParseError) as error:
            failures.append(f"{build}: no report: {error}")
            continue
        for case in root.iter("testcase"):
            outcomes = {child.tag for child in case}
            if outcomes & {"failure", "error"}:
                name = case.get("classname", "") + " " + case.get("name", "")
                failures.append(f"{build}: {name.strip()}")
            elif "skipped" in outcomes:
                skipped += 1
            else:
                passed += 1
    if status != "0" and not failures:
        failures.append("a build or a test program failed outside any case")
    for failure in failures:
        print("FAILED", failure)
    print(f"{passed} passed, {len(failures)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
