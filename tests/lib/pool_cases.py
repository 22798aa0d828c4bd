"""Every rule of CStorPoolCluster's admission: what is accepted, and what is refused by which rule.

A case is a cluster of objects in a namespace of its own. `old` is what the pools were (admitted in
`before`), then `after` is changed, then `new` is asked for: NEW None is the deletion.
"""
from dataclasses import dataclass, field

from pool_objects import GI, claim, cluster, device, group, instance, node, pool, replica

NODES = [node("node-1"), node("node-2"), node("twin-a", zone="twin"), node("twin-b", zone="twin")]


@dataclass
class Case:
    rule: str           # that is asked
    title: str
    new: object         # a CStorPoolCluster; None: it is deleted
    refused: bool = True
    old: object = None
    before: list = field(default_factory=list)
    after: list = field(default_factory=list)
    at: str = ""        # the field that the message names
    says: str = ""      # what it says to do
    other: str = ""     # an object that is deleted in place of the cluster: "KIND/NAME"
    claims: dict = None  # predecessors by device, afterwards


ABCD = [device(it) for it in "abcdef"]
TWO = cluster(pool("node-1", group("mirror", "a", "b")))
FOUR = cluster(pool("node-1", group("mirror", "a", "b"), group("mirror", "c", "d")))
STRIPE = cluster(pool("node-1", group("stripe", "a", "b")))
REPLACED = cluster(pool("node-1", group("mirror", "e", "b")))
DATA = "spec.pools[0].raidGroups[0]"


def pairs(rule, accepted, *refused):
    """One that is accepted and those that are refused; each is what Case takes."""
    for refuse, cases in ((False, [accepted]), (True, refused)):
        for title, new, *more in cases:
            yield Case(rule, title, new, refuse, **(more[0] if more else {}))


def on(*names, **more):
    return [device(it, **more) for it in names]


CASES = [
    # Nodes.
    *pairs("node-selector",
           ("a selector of one node", TWO, {"before": ABCD}),
           ("a selector of no node", cluster(pool("node-9", group("mirror", "a", "b"))),
            {"before": ABCD, "at": "spec.pools[0].nodeSelector", "says": "no node has these labels"}),
           ("a selector of two nodes", cluster(pool({"zone": "twin"}, group("mirror", "a", "b"))),
            {"before": ABCD, "at": "spec.pools[0].nodeSelector", "says": "twin-a, twin-b"})),
    *pairs("one-pool-per-node",
           ("pools on two nodes", cluster(pool("node-1", group("stripe", "a")),
                                          pool("node-2", group("stripe", "z"))),
            {"before": [device("a"), device("z", "node-2")]}),
           ("two selectors of one node",
            cluster(pool("twin-a", group("stripe", "a")),
                    pool({"kubernetes.io/hostname": "twin-a", "zone": "twin"},
                         group("stripe", "b"))),
            {"before": on("a", "b", on="twin-a"), "at": "spec.pools[1].nodeSelector",
             "says": "a node has one pool of a cluster"}),
           ("a pool that moves to the node of another",
            cluster(pool({"kubernetes.io/hostname": "twin-a", "zone": "twin"}, group("mirror", "a", "b")),
                    pool("twin-a", group("stripe", "t"))),
            {"before": [*on("a", "b"), device("t", "twin-a")], "after": on("a", "b", on="twin-a"),
             "old": cluster(pool("node-1", group("mirror", "a", "b")),
                            pool("twin-a", group("stripe", "t"))),
             "says": "a node has one pool of a cluster"})),
    # Devices.
    *pairs("device-exists",
           ("a device that is there", STRIPE, {"before": ABCD}),
           ("a device that is not", STRIPE,
            {"before": on("a"), "at": f"{DATA}.blockDevices[1].blockDeviceName",
             "says": "orlop disk list"})),
    *pairs("device-one-group",
           ("each device once", FOUR, {"before": ABCD}),
           ("a device in two groups",
            cluster(pool("node-1", group("mirror", "a", "b"), group("mirror", "a", "c"))),
            {"before": ABCD, "says": "a device belongs to one group"}),
           ("a replacement that the same pool has",
            cluster(pool("node-1", group("mirror", "c", "b"), group("mirror", "c", "d"))),
            {"before": ABCD, "old": FOUR, "says": "a device belongs to one group"}),
           ("a replacement from another group",
            cluster(pool("node-1", group("mirror", "c", "b"), group("mirror", "e", "d"))),
            {"before": ABCD, "old": FOUR, "says": "use a free device"}),
           ("a replacement from another pool of the cluster",
            cluster(pool("node-1", group("mirror", "a", "z")),
                    pool("node-2", group("mirror", "y", "x"))),
            {"before": [*ABCD, *on("x", "y", "z", on="node-2")],
             "old": cluster(pool("node-1", group("mirror", "a", "b")),
                            pool("node-2", group("mirror", "y", "z"))),
             "says": "use a free device"})),
    *pairs("device-one-cluster",
           ("devices that no other cluster has", TWO,
            {"before": [*ABCD, cluster(pool("node-1", group("stripe", "c")), name="other")]}),
           ("a device of another cluster", TWO,
            {"before": [*ABCD, cluster(pool("node-1", group("stripe", "b")), name="other")],
             "at": f"{DATA}.blockDevices[1].blockDeviceName", "says": '"other"'}),
           ("a replacement from another cluster", REPLACED,
            {"before": [*ABCD, cluster(pool("node-1", group("stripe", "e")), name="other")],
             "old": TWO, "says": '"other"'})),
    *pairs("device-active",
           ("a device that is Active", TWO, {"before": ABCD}),
           ("a device that is Inactive", TWO,
            {"before": [*on("a"), device("b", state="Inactive")], "says": "is Inactive"}),
           ("a replacement that is Unknown", REPLACED,
            {"before": ABCD, "old": TWO, "after": [device("e", state="Unknown")],
             "says": "is Unknown"})),
    Case("device-active", "an old device that is gone can be replaced", REPLACED, False, old=TWO,
         before=ABCD, after=[device("a", state="Inactive")], claims={"e": "a"}),
    *pairs("device-on-node",
           ("devices of the node", TWO, {"before": ABCD}),
           ("a device of another node", TWO,
            {"before": [*on("a"), device("b", "node-2")], "says": "use a device of that node"})),
    *pairs("device-unclaimed",
           ("a device that this cluster has claimed", TWO,
            {"before": [*on("a"), device("b", claim_state="Claimed", claimRef={"name": "c1"}),
                        claim("c1", "b", "pool")]}),
           ("a device that somebody else has claimed", TWO,
            {"before": [*ABCD, claim("c1", "b")], "says": "of somebody else"}),
           ("a replacement that a local volume has claimed", REPLACED,
            {"before": ABCD, "old": TWO, "after": [claim("c1", "e")], "says": "of somebody else"}),
           ("a replacement that another cluster has claimed", REPLACED,
            {"before": ABCD, "old": TWO, "after": [claim("c1", "e", "other")],
             "says": 'CStorPoolCluster "other"'}),
           ("a device whose claim is not known", TWO,
            {"before": [*on("a"), device("b", claim_state="Claimed", claimRef={"name": "gone"})],
             "says": '"gone"'}),
           ("a device that is not clean yet", TWO,
            {"before": [*on("a"), device("b", claim_state="Released")], "says": "wait until"})),
    *pairs("device-free",
           ("devices with nothing on them", TWO, {"before": ABCD}),
           ("a device with a file system", TWO,
            {"before": [*on("a"), device("b", filesystem={"fsType": "ext4"})], "says": "wipefs"}),
           ("a device that is mounted", TWO,
            {"before": [*on("a"), device("b", filesystem={"fsType": "xfs", "mountPoint": "/srv"})],
             "says": "mounted on /srv"}),
           ("a device with partitions", TWO,
            {"before": [*on("a"), device("b", partitioned="Yes")], "says": "partitions"})),
    *pairs("device-tag",
           ("a tag that is allowed",
            cluster(pool("node-1", group("mirror", "a", "b")),
                    annotations={"openebs.io/allowed-bd-tags": "slow, fast"}),
            {"before": [*on("a"), device("b", labels={"openebs.io/block-device-tag": "fast"})]}),
           ("a tag that is not", TWO,
            {"before": [*on("a"), device("b", labels={"openebs.io/block-device-tag": "fast"})],
             "says": "openebs.io/allowed-bd-tags"})),
    # What may change.
    *pairs("no-device-removal",
           ("a device added to a stripe", cluster(pool("node-1", group("stripe", "a", "b", "c"))),
            {"before": ABCD, "old": STRIPE}),
           ("a device removed from a stripe", cluster(pool("node-1", group("stripe", "a"))),
            {"before": ABCD, "old": STRIPE, "says": "put it back"}),
           ("a device removed from a mirror", cluster(pool("node-1", group("mirror", "a", "b"))),
            {"before": ABCD, "old": cluster(pool("node-1", group("mirror", "a", "b", "c"))),
             "says": "put one in its place"})),
    *pairs("no-group-removal",
           ("a group added", FOUR, {"before": ABCD, "old": TWO}),
           ("a group removed", TWO, {"before": ABCD, "old": FOUR, "says": "put it back"})),
    *pairs("no-raid-type-change",
           ("a new group of another type",
            cluster(pool("node-1", group("mirror", "a", "b"), group("raidz", "c", "d", "e"))),
            {"before": ABCD, "old": TWO}),
           ("another type", cluster(pool("node-1", group("stripe", "a", "b"))),
            {"before": ABCD, "old": TWO, "says": "add a new group"})),
    *pairs("no-purpose-change",
           ("a new group for writes", cluster(pool("node-1", group("mirror", "a", "b"), group("stripe", "c", isWriteCache=True))),
            {"before": ABCD, "old": TWO}),
           ("a group for data that becomes one for writes",
            cluster(pool("node-1", group("mirror", "a", "b"), group("mirror", "c", "d", isWriteCache=True))),
            {"before": ABCD, "old": FOUR, "says": "add a new group"})),
    *pairs("group-width",
           ("a mirror as wide as before", REPLACED, {"before": ABCD, "old": TWO}),
           ("a device added to a mirror", cluster(pool("node-1", group("mirror", "a", "b", "c"))),
            {"before": ABCD, "old": TWO, "says": "add a new group to grow the pool"})),
    # Replacement.
    *pairs("replacement-needs-redundancy",
           ("a device of a raidz replaced", cluster(pool("node-1", group("raidz", "a", "b", "d"))),
            {"before": ABCD, "old": cluster(pool("node-1", group("raidz", "a", "b", "c"))),
             "claims": {"d": "c"}}),
           ("a device of a stripe replaced", cluster(pool("node-1", group("stripe", "a", "c"))),
            {"before": ABCD, "old": STRIPE, "says": "use a mirror or raidz group"})),
    Case("replacement-needs-redundancy", "a device of a raidz2 replaced", refused=False,
         new=cluster(pool("node-1", group("raidz2", "a", "b", "c", "e"))), before=ABCD,
         old=cluster(pool("node-1", group("raidz2", "a", "b", "c", "d"))), claims={"e": "d"}),
    *pairs("one-replacement-per-group",
           ("two replaced, in two groups, and the pool expanded",
            cluster(pool("node-1", group("mirror", "a", "e"), group("mirror", "f", "d"),
                         group("mirror", "g", "h"))),
            {"before": [*ABCD, *on("g", "h")], "old": FOUR, "claims": {"e": "b", "f": "c"}}),
           ("two replaced in one group", cluster(pool("node-1", group("mirror", "a", "c", "d"))),
            {"before": ABCD, "old": cluster(pool("node-1", group("mirror", "a", "b", "e"))),
             "says": "replace one, wait until it is resilvered"})),
    *pairs("replacement-under-way",
           ("a replacement beside one in another group",
            cluster(pool("node-1", group("mirror", "a", "e"), group("mirror", "c", "d"))),
            {"before": ABCD, "old": FOUR, "after": [claim("c1", "c", "pool", predecessor="f")],
             "claims": {"c": "f", "e": "b"}}),
           ("a second replacement in a group", REPLACED,
            {"before": ABCD, "old": TWO, "after": [claim("c1", "b", "pool", predecessor="c")],
             "at": f"{DATA}.blockDevices[0]", "says": '"b" is still taking the place of "c"'})),
    *pairs("replacement-predecessor",
           ("a device that is replacing none", REPLACED,
            {"before": ABCD, "old": TWO, "claims": {"e": "a"}}),
           ("a device that is being replaced",
            cluster(pool("node-1", group("mirror", "e", "b"), group("mirror", "c", "d"))),
            {"before": ABCD, "old": FOUR, "after": [claim("c1", "c", "pool", predecessor="e")],
             "says": "itself being replaced"})),
    *pairs("replacement-size",
           ("a larger device", REPLACED,
            {"before": [*on("a", "b"), device("e", size=11 * GI)], "old": TWO}),
           ("a smaller device", REPLACED,
            {"before": [*on("a", "b"), device("e", size=9 * GI)], "old": TWO,
             "says": "at least the same size"})),
    Case("replacement-claim", "a claim that exists is given its predecessor", REPLACED, False,
         old=TWO, before=[*ABCD], after=[claim("c1", "e", "pool")], claims={"e": "a"}),
    # Moving and going.
    *pairs("migration-devices",
           ("a pool moves with its devices", cluster(pool("node-2", group("mirror", "a", "b"))),
            {"before": ABCD, "old": TWO, "after": on("a", "b", on="node-2")}),
           ("a pool moves without one of them", cluster(pool("node-2", group("mirror", "a", "b"))),
            {"before": ABCD, "old": TWO, "after": on("a", on="node-2"),
             "at": "spec.pools[0].nodeSelector", "says": "attach all devices"}),
           ("a pool moves before one is seen", cluster(pool("node-2", group("mirror", "a", "b"))),
            {"before": ABCD, "old": TWO,
             "after": [device("a", "node-2"), device("b", "node-2", state="Inactive")],
             "says": '"b" is Inactive'})),
]

BOTH = cluster(pool("node-1", group("mirror", "a", "b")), pool("node-2", group("stripe", "z")))
HOME = [*ABCD, device("z", "node-2")]
INSTANCES = [instance("pool-one", "pool", BOTH["spec"]["pools"][0]),
             instance("pool-two", "pool", BOTH["spec"]["pools"][1])]
USED = [*INSTANCES, replica("pvc-1-pool-two", "pool-two")]
CASES += [
    *pairs("pool-in-use",
           ("a pool removed that nothing lives on", TWO,
            {"before": HOME, "old": BOTH, "after": [*INSTANCES, replica("r", "pool-one")]}),
           ("a pool removed with a replica on it", TWO,
            {"before": HOME, "old": BOTH, "after": USED, "at": "spec.pools",
             "says": "delete or move those volumes first"}),
           ("the cluster deleted with a replica on a pool", None,
            {"before": HOME, "old": BOTH, "after": USED, "says": '"pvc-1-pool-two"'}),
           ("an instance deleted with a replica on it", None,
            {"before": HOME, "old": BOTH, "after": USED,
             "other": "CStorPoolInstance/pool-two", "says": '"pvc-1-pool-two"'})),
    Case("pool-in-use", "the cluster deleted with nothing on it", None, False, old=BOTH,
         before=HOME, after=INSTANCES),
    Case("pool-in-use", "an instance deleted with nothing on it", None, False, old=BOTH,
         before=HOME, after=USED, other="CStorPoolInstance/pool-one"),
]
