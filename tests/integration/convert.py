#!/usr/bin/env python3
"""orlop convert: between the seed's and the published form, and from StoragePoolClaim.

convert.py ORLOP
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Tap, json_values, run  # noqa: E402

orlop = sys.argv[1]
tap = Tap()


def convert(text, *options):
    return run(orlop, "convert", "-o", "json", *options, "-", stdin=text)


def value(text, *options):
    result = convert(text, *options)
    if result.returncode:
        return result.stderr
    return json.loads(result.stdout)


CSPC = """
apiVersion: openebs.io/v1alpha1
kind: CStorPoolCluster
metadata: {name: pool}
spec:
  pools:
  - nodeSelector: {kubernetes.io/hostname: node-1}
    raidGroups:
    - {type: mirror, blockDevices: [{blockDeviceName: a}, {blockDeviceName: b}]}
    - {type: stripe, isWriteCache: true, blockDevices: [{blockDeviceName: c}]}
    poolConfig: {overProvisioning: true, compression: lz}
"""
published = value(CSPC, "--to", "published")
tap.equal(published, {
    "apiVersion": "cstor.openebs.io/v1", "kind": "CStorPoolCluster", "metadata": {"name": "pool"},
    "spec": {"pools": [{
        "nodeSelector": {"kubernetes.io/hostname": "node-1"},
        "poolConfig": {"compression": "lz4", "dataRaidGroupType": "mirror",
                       "writeCacheGroupType": "stripe", "thickProvision": False},
        "dataRaidGroups": [{"blockDevices": [{"blockDeviceName": "a"}, {"blockDeviceName": "b"}]}],
        "writeCacheRaidGroups": [{"blockDevices": [{"blockDeviceName": "c"}]}]}]}},
    "a cluster of pools, published")
back = value(json.dumps(published), "--to", "seed")
tap.equal(back["spec"]["pools"][0]["raidGroups"], [
    {"blockDevices": [{"blockDeviceName": "a"}, {"blockDeviceName": "b"}]},
    {"blockDevices": [{"blockDeviceName": "c"}], "isWriteCache": True, "type": "stripe"}],
    "and back: one list of groups")
tap.equal((back["apiVersion"], back["spec"]["pools"][0]["poolConfig"]),
          ("openebs.io/v1alpha1", {"compression": "lz4", "defaultRaidGroupType": "mirror",
                                   "overProvisioning": True}), "and back: its settings")
mixed = convert(CSPC.replace("isWriteCache", "isSpare"), "--to", "published")
tap.ok(mixed.returncode == 0 and "warning" in mixed.stderr and "raidGroups" in mixed.stdout,
       "what the published form cannot say is kept, with a warning", mixed.stderr)
wrong = convert(CSPC.replace("{blockDeviceName: b}", "{}"))
tap.ok(wrong.returncode == 1 and wrong.stdout == "" and ":9:" in wrong.stderr,
       "an object with mistakes is not converted", wrong.stderr + wrong.stdout)

named = convert(CSPC.replace("{type: mirror", "{name: one, type: mirror")
                .replace("compression: lz", "cacheFile: /tmp/x"), "--to", "published")
tap.ok("raidGroups[0].name: left out" in named.stderr and "cacheFile: left out" in named.stderr
       and named.returncode == 0, "what is left out is said", named.stderr)
LV = {"apiVersion": "topolvm.cybozu.com/v1", "kind": "LogicalVolume", "metadata": {
    "name": "x", "annotations": {"topolvm.cybozu.com/resize-requested-at": "now", "a/b": "c"},
    "finalizers": ["topolvm.cybozu.com/logicalvolume", "a/b"]},
      "spec": {"name": "x", "nodeName": "n", "size": "1Gi", "vgName": "v"}}
published = value(json.dumps(LV), "--to", "published")
tap.equal((published["apiVersion"], published["metadata"], published["spec"]["deviceClass"]), (
    "topolvm.io/v1", {"name": "x", "annotations": {
        "topolvm.io/resize-requested-at": "now", "a/b": "c"},
        "finalizers": ["topolvm.io/logicalvolume", "a/b"]}, "v"), "a logical volume, published")
tap.equal(value(json.dumps(published), "--to", "seed"), LV, "and back")
LV["metadata"]["annotations"]["topolvm.io/resize-requested-at"] = "later"
LV["metadata"]["finalizers"].append("topolvm.io/logicalvolume")
both = convert(json.dumps(LV), "--to", "published")
tap.ok("left out: topolvm.io/resize-requested-at" in both.stderr, "two names of an annotation",
       both.stderr)
tap.equal((json.loads(both.stdout)["metadata"]["finalizers"],
           json.loads(both.stdout)["metadata"]["annotations"]["topolvm.io/resize-requested-at"]),
          (["a/b", "topolvm.io/logicalvolume"], "later"), "the form's own name stays")

SPC = """
apiVersion: openebs.io/v1alpha1
kind: StoragePoolClaim
metadata: {name: cstor-disk}
spec:
  name: cstor-disk
  type: disk
  poolSpec: {poolType: %s, cacheFile: "", overProvisioning: false}
  blockDevices:
    blockDeviceList: [bd-1, bd-2, bd-3, bd-4, bd-5]
"""
BDS = "".join(f"""---
apiVersion: openebs.io/v1alpha1
kind: BlockDevice
metadata: {{name: bd-{i}, labels: {{kubernetes.io/hostname: node-{1 + (i > 4)}}}}}
spec: {{capacity: {{storage: 10Gi}}}}
""" for i in range(1, 6))


def pools(text):
    result = convert(text)
    if result.returncode:
        return result.stderr
    cspc = json_values(result.stdout)[-1]
    return [(p["nodeSelector"]["kubernetes.io/hostname"],
             [(g["type"], [d["blockDeviceName"] for d in g["blockDevices"]])
              for g in p["raidGroups"]]) for p in cspc["spec"]["pools"]]


tap.equal(pools(SPC % "striped" + BDS),
          [("node-1", [("stripe", ["bd-1", "bd-2", "bd-3", "bd-4"])]),
           ("node-2", [("stripe", ["bd-5"])])], "a striped claim, by its block devices")
tap.equal(pools((SPC % "mirrored").replace(", bd-5", "") + BDS),
          [("node-1", [("mirror", ["bd-1", "bd-2"]), ("mirror", ["bd-3", "bd-4"])])],
          "a mirrored claim, by its block devices")
CSP = """---
apiVersion: openebs.io/v1alpha1
kind: CStorPool
metadata:
  name: cstor-disk-x
  labels: {kubernetes.io/hostname: node-9, openebs.io/storage-pool-claim: cstor-disk}
spec:
  group:
  - blockDevice: [{name: bd-7}, {name: bd-8}]
"""
tap.equal(pools(SPC % "mirrored" + CSP), [("node-9", [("mirror", ["bd-7", "bd-8"])])],
          "a claim, by its pools")
for name, text, words in (("a device whose node nobody knows", SPC % "striped", "kubectl get bd"),
                          ("a type that is none", SPC % "raid5" + BDS, '"raid5"'),
                          ("a claim that chose its devices itself",
                           (SPC % "striped").split("  blockDevices:")[0], "kubectl get csp")):
    got = pools(text)
    tap.ok(isinstance(got, str) and words in got, name, got)
tap.done()
