#!/usr/bin/env python3
"""Who may log in to a JivaVolume: those who were given its Secret, and nobody else on the machine.

jiva-login.py ORLOP
"""
import json
import os
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from initiator import Initiator  # noqa: E402
from jiva import PATIENCE, Jiva, volume  # noqa: E402
from namespaces import own_network  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

orlop = sys.argv[1]
tap = Tap()
NOBODY = 65534
AUTHENTICATION_FAILED = 0x0201


def initiator(s, name="vol"):
    v = s.volume(name)
    host, port = v["iscsi"]["targetPortal"].rsplit(":", 1)
    return Initiator(int(port), v["iscsi"]["iqn"], host=host)


def status_of(s, normal=True, chap=None):
    i = initiator(s)
    try:
        return i.login(normal=normal, chap=chap)
    finally:
        i.close()


def qemu_io(url, *commands, **options):
    return run("qemu-io", "-f", "raw", *(w for c in commands for w in ("-c", c)), url, **options)


def shown(s, *words):
    return s.orlop_("volume", "show", "vol", "--login", *words)


def check_strangers(s):
    user, password, *_ = s.login("vol")
    tap.equal(status_of(s), AUTHENTICATION_FAILED, "without CHAP nobody logs in")
    tap.equal(status_of(s, normal=False), AUTHENTICATION_FAILED, "nor learns what there is")
    tap.equal(status_of(s, chap=(user, password[::-1] + "x")), AUTHENTICATION_FAILED, "a wrong password is refused")
    tap.equal(status_of(s, chap=("somebody", password)), AUTHENTICATION_FAILED, "so is a wrong name")
    tap.equal((status_of(s, chap=(user, password)), status_of(s, normal=False, chap=(user, password))), (0, 0),
              "who has both logs in, and may ask what there is")
    if os.geteuid() == 0:
        result = run("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "qemu-io", "-f", "raw",
                     "-c", "write -P 0x66 0 1M", s.url("vol", login=False))
        tap.ok(result.returncode != 0, "another user of the machine writes nothing", result.stdout + result.stderr)
    tap.ran(qemu_io(s.url("vol"), "read -P 0 0 1M"), "the volume is as it was")
    wrong = s.url("vol")[:-1] + "!"
    tap.ok(run("iscsi-inq", wrong).returncode != 0, "a target with another secret is not taken for this one")


def check_command(s):
    user, password, target_user, target_password = s.login("vol")
    text = shown(s)
    tap.ok(text.returncode == 0 and all(t in text.stdout for t in (
        s.portal("vol"), s.volume("vol")["iscsi"]["iqn"], user, password, target_user, target_password)),
        "volume show --login says all that a person needs", text.stdout + text.stderr)
    value = json.loads(shown(s, "-o", "json").stdout)
    tap.equal((value["user"], value["password"], value["lun"], value["url"]), (user, password, 0, s.url("vol")),
              "or as JSON")
    url = shown(s, "-o", "url").stdout.strip()
    tap.equal(url, s.url("vol"), "or as a URL")
    tap.ran(run("iscsi-inq", url), "which libiscsi takes as it is", stdout="Vendor:ORLOP")
    tap.ran(run("iscsi-ls", "-s", url.split("/iqn")[0]), "for discovery too", stdout="Lun:0")
    tap.ran(run("qemu-img", "info", "-f", "raw", url), "and qemu", stdout="virtual size: 64 MiB")
    tap.ran(qemu_io(url, "write -P 0x21 0 1M", "flush", "read -P 0x21 0 1M"), "which writes with it")
    tap.equal(s.bench("vol", "-n", "50").returncode, 0, "orlop bench logs in with it")
    plain = s.orlop_("volume", "show", "vol")
    tap.ok(password not in plain.stdout and "URL" not in plain.stdout, "without --login no secret is shown",
           plain.stdout)
    tap.ran(s.orlop_("volume", "show", "vol", "-o", "url"), "-o url is for --login", 2, stderr="--login")
    s.kubectl("create", "rolebinding", "seer", "--clusterrole=view", "--user=seer")
    seen = s.kubectl("get", "jv", "vol", "-o", "json", "--as", "seer")
    tap.ok(seen.returncode == 0 and password not in seen.stdout, "who may view the volume sees no secret", seen.stderr)
    tap.ran(s.kubectl("get", "secret", "vol-chap", "--as", "seer"), "nor may read it", 1, stderr="cannot get resource")


def readable(folder, text):
    """Files that everybody may reach and read and that have the text in them."""
    found = []
    for path in run("grep", "-rlF", text, folder).stdout.split():
        parts = path.split("/")
        above = ["/".join(parts[:n]) or "/" for n in range(1, len(parts))]
        if os.stat(path).st_mode & stat.S_IROTH and all(os.stat(p).st_mode & stat.S_IXOTH for p in above):
            found.append(path)
    return found


def check_hidden(s):
    for secret in (s.login("vol")[1], s.login("vol")[3]):
        said = run("grep", "-rlF", secret, s.folder, "--include=*.log").stdout
        tap.equal(said, "", "no log has the secret")
        tap.equal(readable(s.folder, secret), [], "no file has it that others may read")
        with open(f"/proc/{s.target('vol')}/cmdline", "rb") as f:
            tap.ok(secret.encode() not in f.read(), "it is not in the target's command line")
        everything = s.kubectl("get", "jv,pods,deployments,replicasets,events,services", "-o", "json").stdout
        tap.ok(secret not in everything, "nor in any object but the Secret")


def check_owner(s):
    secret = json.loads(s.kubectl("get", "secret", "vol-chap", "-o", "json").stdout)
    v = s.volume("vol")
    tap.equal((secret["type"], secret["metadata"]["ownerReferences"][0]["uid"]),
              ("kubernetes.io/iscsi-chap", v["metadata"]["uid"]), "the Secret is of Kubernetes' type and the volume's")
    tap.equal(s.condition("vol", "Authenticated").get("status"), "True", "the volume says that it asks for CHAP")


def check_new_secret(s):
    old = s.login("vol")
    s.kubectl("delete", "secret", "vol-chap")
    tap.ok(wait_for(lambda: s.login("vol") and s.login("vol") != old, PATIENCE), "a Secret that was deleted is made anew")

    def takes(login):
        try:
            return status_of(s, chap=login[:2]) == 0
        except OSError:  # the target is being started
            return False

    tap.ok(wait_for(lambda: takes(s.login("vol")), PATIENCE), "and asked for from then on")
    tap.ok(not takes(old), "in place of the old one")
    tap.ran(qemu_io(s.url("vol"), "read -P 0x21 0 1M"), "the data is what it was")


def check_without(s):
    patch = {"spec": {"policy": {"target": {"authentication": "None"}}}}
    result = s.kubectl("patch", "jivavolume.v1alpha1.openebs.io", "vol", "--type=merge", "-p", json.dumps(patch))
    tap.ran(result, "authentication can be given up", stderr="can read and write it")
    tap.ok(wait_for(lambda: s.condition("vol", "Authenticated").get("status") == "False", PATIENCE),
           "the volume says so", s.volume("vol"))
    tap.ok(s.ready("vol", 1), "and is served", s.volume("vol"))
    tap.ran(qemu_io(s.url("vol", login=False), "read -P 0x21 0 1M"), "then an initiator without CHAP logs in")
    tap.ok(wait_for(lambda: not s.login("vol"), PATIENCE), "the Secret, which is good for nothing now, is gone")
    tap.equal(shown(s, "-o", "url").stdout.strip(), s.url("vol", login=False), "and the URL has none")
    said = s.orlop_("volume", "show", "vol").stdout
    tap.ok("Whoever reaches the portal" in said, "volume show warns", said)
    patch["spec"]["policy"]["target"]["authentication"] = "Maybe"
    result = s.kubectl("patch", "jivavolume.v1alpha1.openebs.io", "vol", "--type=merge", "-p", json.dumps(patch))
    tap.ran(result, "another word is refused", 1, stderr="authentication")
    patch["spec"]["policy"]["target"]["authentication"] = "CHAP"
    s.kubectl("patch", "jivavolume.v1alpha1.openebs.io", "vol", "--type=merge", "-p", json.dumps(patch))
    tap.ok(wait_for(lambda: s.condition("vol", "Authenticated").get("status") == "True", PATIENCE)
           and s.ready("vol", 1), "CHAP comes back", s.volume("vol"))
    tap.equal(status_of(s), AUTHENTICATION_FAILED, "and strangers are refused again")


if not own_network():
    tap.skip("logins to JivaVolumes", "no network namespaces here")
    tap.done()
with Scratch() as scratch, Jiva(orlop, scratch.file("data"), "--nodes", "1") as system:
    system.apply(volume("vol", "64Mi", 1))
    tap.ok(system.ready("vol", 1), "a volume", system.volume("vol"))
    for check in (check_owner, check_strangers, check_command, check_hidden, check_new_secret, check_without):
        check(system)
    system.kubectl("delete", "jv", "vol", "--timeout=120s")
    tap.ok(wait_for(lambda: not system.login("vol"), PATIENCE), "the Secret goes with its volume")
    tap.equal(system.complaints(), "", "no sanitizer complained")
tap.done()
