#!/usr/bin/env python3
"""Compares our canonical quantities with kubectl's.  usage: quantity-kubectl.py QUANTITY-PRINT

`kubectl create quota --dry-run=client` reads quantities and prints them again without a cluster.
Three kinds of text are left out, because there kubectl does not show what Kubernetes' canonical
form is:

  * Texts that it prints back verbatim. Its parser keeps the text of a number that it believes to be
    canonical already: in a decimal family when the places after the point, less the exponent, are a
    multiple of three and the digits neither start with 0 nor end with 000; in a binary family when
    there is no point and the number is no multiple of 8. So "+1", "5." and "1E3" come back as they
    went in. Forms with a sign, a trailing point or E are compared on numbers that escape the rule.
  * Numbers past 2^63-1, which it caps or prints in full; we refuse them.
  * Texts without a digit ("Gi", "-"), which it takes for 0 against its own grammar; we refuse them.
"""
import json
import os
import re
import sys
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, run  # noqa: E402

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
EXPONENTS = ["e0", "e1", "e2", "e3", "e4", "e+5", "e6", "e18", "e-1", "e-2", "e-3", "e-9", "e-10",
             "E2", "E3", "E-3", "E+6", "e003"]
MANTISSAS = ["0", "1", "7", "8", "-1", "-8", "+8", "10", "100", "999", "1000", "-1000", "+1000",
             "1023", "1024", "1025", "-1024", "-2048", "4096", "008", "1500", "1000000", "1048576",
             "123456789", "0.1", "-0.1", ".5", "-.25", "0.5", "1.5", "-1.5", "+1.5", "8.", "5000.",
             "0.001", "0.0009765625", "1.0009765625", "3.14159265", "0.999999999", "0.9999999999",
             "1.1", "0.0000000001", "-0.0000000001", "9.2", "0.00000000000000000000001",
             "7.99999", "12345678901234567", "0.1234567890123456789"]
PICKED = ["9223372036854775807", "-9223372036854775807", "9223372036854775806.5", "7.5Ei", "-7.5Ei",
          "9.2E", "9200P", "9.2e18", "0.000000000931322574615478515625Gi",
          "0.000000000931322574615478515624Gi", "0.000000000931322574615478515626Gi",
          "0.0000000000000000001Ei", "00000000000000000000000000000000000000008",
          "8.00000000000000000000000000000000000001", "1e-100", "-1e-100", "100000e-5",
          "1152921504606846976", "1048576Ki", "1073741824Ki", "0.00000000000000000001e30"]
INVALID = ["1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-", "1 ",
           " 1", "1K", "1ki", "1KI", "1GB", "1GiB", "1g", "1t", "1e", "1e+", "1e-", "1ee3", "1e3k",
           "1e3Ki", "1e1.5", "0x10", "1_000", "--1", "+-1", "1-", "1+", "1..2", "inf", "nan", "1m1",
           "1Ki3", "1kk", "1KiKi", "1iK", "1MK", "\uff11", "1\u00a0", "1Gi\t", "1.5.Gi", "1/2",
           "1%", "-", "+", ".", "Gi", "e3"]
LAX = {"-", "+", ".", "Gi", "e3"}  # kubectl takes these for 0
TEXT = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(\D*|[eE][+-]?\d+)$", re.ASCII)


def parts(text):
    sign, whole, fraction, suffix = TEXT.match(text).groups()
    return sign, whole.lstrip("0") or "0", fraction or "", suffix


def value(text):
    sign, whole, fraction, suffix = parts(text)
    number = Fraction(int(whole + fraction), 10 ** len(fraction))
    number *= (Fraction(2) ** BINARY[suffix] if suffix in BINARY
               else Fraction(10) ** DECIMAL.get(suffix, 0) if suffix in DECIMAL
               else Fraction(10) ** int(suffix[1:]))
    return -number if sign == "-" else number


def printed_verbatim(text):
    _, whole, fraction, suffix = parts(text)
    digits = whole + fraction
    if suffix in BINARY:
        return not fraction and int(whole) % 8 != 0
    exponent = DECIMAL[suffix] if suffix in DECIMAL else int(suffix[1:])
    return (len(digits) <= 18 and (exponent - len(fraction)) % 3 == 0
            and not digits.endswith("000") and digits[0] != "0")


def texts():
    suffixes = list(DECIMAL) + list(BINARY) + EXPONENTS
    for text in [m + s for m in MANTISSAS for s in suffixes] + PICKED:
        if abs(value(text)) <= 2 ** 63 - 1 and not printed_verbatim(text):
            yield text


def kubectl(quantities, scratch):
    """The result of one run; resource names r0, r1, ... in the order of the quantities."""
    hard = ",".join(f"r{i}={text}" for i, text in enumerate(quantities))
    return run("kubectl", "create", "quota", "q", "--hard=" + hard, "--dry-run=client",
               "-o", "json", env=scratch.kubectl_env())


def main(printer):
    valid = list(dict.fromkeys(texts()))
    result = run(printer, stdin="\n".join(valid + INVALID) + "\n")
    if result.returncode != 0:
        sys.exit(f"Bail out! {printer}: {result.stderr.strip()[:300]}")
    ours = result.stdout.split("\n")
    with Scratch() as scratch:
        result = kubectl(valid, scratch)
        if result.returncode != 0:
            sys.exit(f"Bail out! kubectl refused the table: {result.stderr.strip()[:300]}")
        theirs = json.loads(result.stdout)["spec"]["hard"]
        refused = {text: kubectl([text], scratch).returncode != 0 for text in INVALID}

    tap = Tap()
    for i, text in enumerate(valid):
        tap.equal(ours[i], theirs[f"r{i}"], text)
    for i, text in enumerate(INVALID, len(valid)):
        tap.ok(ours[i].startswith("error: INVALID_ARGUMENT:")
               and refused[text] == (text not in LAX), f"refused: {text!a}",
               f"ours {ours[i]}, kubectl {'refuses' if refused[text] else 'takes'} it")
    tap.done()


if __name__ == "__main__":
    main(sys.argv[1])
