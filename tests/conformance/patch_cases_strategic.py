"""Strategic merge patches of built-in kinds."""

from patch_cases import Table

TABLE = Table("strategic")
ok, bad, refused, differs = TABLE.ok, TABLE.bad, TABLE.refused, TABLE.differs

ORDER = "$setElementOrder/"
DELETE = "$deleteFromPrimitiveList/"

OWNERS = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": "u1"},
          {"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": "u2"}]

POD_SPEC = {
    "containers": [
        {"name": "a", "image": "img:1", "args": ["x", "y"],
         "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"},
                 {"name": "C", "value": "3"}],
         "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"},
                   {"containerPort": 53, "protocol": "UDP"}],
         "volumeMounts": [{"name": "data", "mountPath": "/data"},
                          {"name": "data", "mountPath": "/more", "subPath": "more"}],
         "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
        {"name": "b", "image": "img:2"},
        {"name": "c", "image": "img:3"}],
    "initContainers": [{"name": "i", "image": "init:1"}],
    "volumes": [{"name": "data", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "c"}}],
    "tolerations": [{"key": "k1", "operator": "Exists"}, {"key": "k2", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "s1"}, {"name": "s2"}],
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]},
                    {"ip": "10.0.0.2", "hostnames": ["c"]}],
    "topologySpreadConstraints": [
        {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
        {"topologyKey": "host", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}],
    "nodeSelector": {"disk": "ssd", "arch": "amd64"},
}
META = {"name": "x", "labels": {"app": "x", "tier": "one"}, "finalizers": ["f/1", "f/2", "f/3"],
        "ownerReferences": OWNERS}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": META, "spec": POD_SPEC,
       "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"},
                                                     {"type": "PodScheduled", "status": "True"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": META,
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}},
             "strategy": {"type": "RollingUpdate",
                          "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
             "template": {"metadata": {"labels": {"app": "x"}}, "spec": POD_SPEC}}}
STATEFULSET = {
    "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "x"},
    "spec": {"serviceName": "x", "volumeClaimTemplates": [
        {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}},
        {"metadata": {"name": "logs"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
             "template": {"spec": {"containers": [{"name": "a", "image": "img"}]}}}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"},
           "spec": {"selector": {"app": "x"}, "externalIPs": ["1.1.1.1"],
                    "ports": [{"port": 80, "protocol": "TCP", "name": "http", "targetPort": 8080},
                              {"port": 53, "protocol": "UDP", "name": "dns-udp"},
                              {"port": 53, "protocol": "TCP", "name": "dns-tcp"}]}}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "x"},
         "spec": {"accessModes": ["ReadWriteOnce"],
                  "resources": {"requests": {"storage": "1Gi"}}},
         "status": {"conditions": [{"type": "Resizing", "status": "True"}]}}
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"},
           "secrets": [{"name": "s1"}, {"name": "s2"}], "imagePullSecrets": [{"name": "p1"}]}


def pod(**spec):
    return {"spec": spec}


def template(**spec):
    return {"spec": {"template": {"spec": spec}}}


def container(**members):
    """A patch of the Pod's container "a"."""
    return {"spec": {"containers": [{"name": "a", **members}]}}


def meta(**members):
    return {"metadata": members}


def directives(directive, **members):
    """Members beside directives, whose names are no Python names."""
    return {**members, **directive}


# Objects and scalars.
ok("an empty patch", POD, {})
ok("a scalar", DEPLOYMENT, {"spec": {"replicas": 3}})
ok("null deletes a key", DEPLOYMENT, {"spec": {"replicas": None}})
ok("null of what is not there", DEPLOYMENT, {"spec": {"paused": None}})
ok("null deletes an object", DEPLOYMENT, {"spec": {"template": None}})
ok("null deletes a list", POD, pod(containers=None))
ok("a map merges by key", POD, pod(nodeSelector={"disk": "hdd", "zone": "a"}))
ok("null deletes a key of a map", POD, pod(nodeSelector={"disk": None}))
ok("labels", POD, meta(labels={"app": "y", "tier": None, "new": "z"}))
ok("resources", POD, container(resources={"limits": {"memory": "2Gi", "cpu": None},
                                          "requests": {"storage": "1"}}))
ok("a new object loses its nulls", POD, meta(annotations={"a": None, "b": "c"}))
ok("a new object loses nested nulls", POD, pod(affinity={"nodeAffinity": {"x": None, "y": {}}}))
ok("an object replaces a scalar", CLAIM, {"spec": {"volumeName": {"x": None, "y": 1}}})
ok("a scalar replaces a list", POD, pod(tolerations="none"))
ok("an object replaces a list", POD, pod(tolerations={"a": None, "b": 1}))
ok("a list replaces an object", POD, pod(nodeSelector=["a"]))
ok("a claim grows", CLAIM, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})

# Lists that merge by key.
ok("a container's image", POD, container(image="img:9"))
ok("two containers", POD, pod(containers=[{"name": "c", "image": "C"}, {"name": "a", "tty": True}]))
ok("the middle container", POD, pod(containers=[{"name": "b", "image": "B"}]))
ok("a new container", POD, pod(containers=[{"name": "d", "image": "D"}]))
ok("two new containers", POD, pod(containers=[{"name": "d"}, {"name": "e"}]))
ok("a new container before an old one", POD, pod(containers=[{"name": "d"}, {"name": "b"}]))
ok("a new container after an old one", POD, pod(containers=[{"name": "b"}, {"name": "d"}]))
ok("new and old ones mixed", POD,
   pod(containers=[{"name": "c"}, {"name": "d"}, {"name": "a"}, {"name": "e"}]))
ok("containers turned round", POD, pod(containers=[{"name": "c"}, {"name": "b"}, {"name": "a"}]))
ok("the same container twice", POD, pod(containers=[{"name": "b", "image": "1", "tty": True},
                                                    {"name": "b", "image": "2"}]))
ok("the same new container twice", POD, pod(containers=[{"name": "d", "image": "1", "tty": True},
                                                        {"name": "d", "image": "2"}]))
ok("a new element is taken as it is", POD, pod(containers=[{"name": "d", "image": None,
                                                            "env": [{"$patch": "delete"}]}]))
ok("null deletes a container's key", POD, container(image=None, args=None))
ok("atomic list in a merged one", POD, container(args=["z"]))
ok("an empty list merges nothing", POD, pod(containers=[]))
ok("into an empty list", {**POD, "spec": {"containers": []}}, container(image="x"))
ok("a list where there was none", {**POD, "spec": {}},
   pod(containers=[{"name": "b", "image": None}, {"name": "a", "x": {"$patch": "delete"}}]))
ok("init containers", POD, pod(initContainers=[{"name": "j", "image": "J"},
                                               {"name": "i", "image": "I"}]))
ok("env by name", POD, container(env=[{"name": "B", "value": "two"}]))
ok("a new env goes first", POD, container(env=[{"name": "Z", "value": "26"}]))
ok("env from value to valueFrom", POD, container(
    env=[{"name": "B", "value": None, "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]))
ok("ports by containerPort", POD, container(ports=[{"containerPort": 80, "name": "web"},
                                                   {"containerPort": 443}]))
ok("ports: the protocol does not count", POD, container(
    ports=[{"containerPort": 53, "protocol": "TCP"}]))
ok("volumeMounts by mountPath", POD, container(
    volumeMounts=[{"mountPath": "/more", "readOnly": True}, {"mountPath": "/new", "name": "data"}]))
ok("volumeDevices where there were none", POD, container(
    volumeDevices=[{"devicePath": "/dev/x", "name": "raw"}]))
ok("image pull secrets", POD, pod(imagePullSecrets=[{"name": "s3"}]))
ok("host aliases by ip, host names atomic", POD, pod(
    hostAliases=[{"ip": "10.0.0.1", "hostnames": ["z"]}, {"ip": "10.0.0.3", "hostnames": []}]))
ok("topology spread constraints by key", POD, pod(
    topologySpreadConstraints=[{"topologyKey": "host", "maxSkew": 5}]))
ok("conditions by type", POD, {"status": {"conditions": [
    {"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]}})
ok("conditions of a claim", CLAIM, {"status": {"conditions": [
    {"type": "FileSystemResizePending", "status": "True"}, {"type": "Resizing", "status": "False"}]}})
ok("service ports by port, which finds the first of two", SERVICE, {"spec": {
    "ports": [{"port": 53, "targetPort": 5353}]}})
ok("service ports: a patch by number", SERVICE, {"spec": {"ports": [{"port": 80, "nodePort": 30080},
                                                                    {"port": 443}]}})
ok("service ports: the patch reorders duplicates", SERVICE, {"spec": {
    "ports": [{"port": 53}, {"port": 80}]}})
ok("secrets of an account merge", ACCOUNT, {"secrets": [{"name": "s3"}, {"name": "s1"}]})
ok("pull secrets of an account are atomic", ACCOUNT, {"imagePullSecrets": [{"name": "p2"}]})
ok("owners by uid", POD, meta(ownerReferences=[{"uid": "u2", "controller": True},
                                               {"uid": "u3", "name": "three"}]))
ok("in a template", DEPLOYMENT, template(containers=[
    {"name": "b", "env": [{"name": "X", "value": "1"}]}]))
bad("an element without its key", POD, pod(containers=[{"image": "x"}]))
bad("an element of the document without its key",
    {**POD, "spec": {"containers": [{"image": "x"}]}}, container(image="y"))
bad("a string among objects", POD, pod(containers=["a"]))
bad("strings in a list of objects", {**POD, "spec": {"containers": ["x"]}}, pod(containers=["a"]))
bad("a list of lists", {**POD, "spec": {"containers": [["x"]]}}, pod(containers=[["a"]]))

# Atomic lists.
ok("tolerations are replaced", POD, pod(tolerations=[{"key": "k3", "effect": None}]))
ok("tolerations become empty", POD, pod(tolerations=[]))
ok("claim templates are replaced", STATEFULSET, {"spec": {"volumeClaimTemplates": [
    {"metadata": {"name": "logs"}}]}})
ok("access modes are replaced", CLAIM, {"spec": {"accessModes": ["ReadWriteMany"]}})
ok("external IPs are replaced", SERVICE, {"spec": {"externalIPs": ["2.2.2.2", "1.1.1.1"]}})
ok("directives in an atomic list are not read", POD, pod(
    tolerations=[{"$patch": "replace"}, {"key": "k3"}]))

# Sets of scalars.
ok("a finalizer is added", POD, meta(finalizers=["f/4"]))
ok("a finalizer that is there", POD, meta(finalizers=["f/2"]))
ok("finalizers in another order", POD, meta(finalizers=["f/3", "f/1", "f/5"]))
ok("finalizers where there were none", CLAIM, meta(finalizers=["f/1", "f/1"]))
ok("a duplicate in the patch", POD, meta(finalizers=["f/9", "f/9"]))
ok("delete from a list", POD, meta(**{DELETE + "finalizers": ["f/2"]}))
ok("delete all of a list", POD, meta(**{DELETE + "finalizers": ["f/3", "f/2", "f/1"]}))
ok("delete what is not in the list", POD, meta(**{DELETE + "finalizers": ["f/9"]}))
ok("delete from a list that is not there", CLAIM, meta(**{DELETE + "finalizers": ["f/9"]}))
ok("delete nothing", POD, meta(**{DELETE + "finalizers": []}))
ok("delete and add", POD, meta(**{DELETE + "finalizers": ["f/1"], "finalizers": ["f/7"]}))
ok("delete from an atomic list", POD, container(**{DELETE + "args": ["x"]}))
ok("a null deletion deletes the list", POD, meta(**{DELETE + "finalizers": None}))
bad("a number among strings", POD, meta(finalizers=[1]))
bad("objects in a set", POD, meta(finalizers=[{"a": 1}]))
bad("a deletion that names no list", POD, meta(**{"$deleteFromPrimitiveList": ["f/1"]}))
bad("a deletion of another type", POD, meta(**{DELETE + "finalizers": [1]}))

# $patch.
ok("delete a container", POD, pod(containers=[{"name": "b", "$patch": "delete"}]))
ok("delete one that is not there", POD, pod(containers=[{"name": "z", "$patch": "delete"}]))
ok("delete one and change one", POD, pod(containers=[{"name": "a", "$patch": "delete"},
                                                     {"name": "c", "image": "C"}]))
ok("delete one and add it again", POD, pod(containers=[{"name": "b", "image": "B"},
                                                       {"name": "b", "$patch": "delete"}]))
ok("delete every container", POD, pod(containers=[{"name": n, "$patch": "delete"} for n in "abc"]))
ok("delete duplicates", SERVICE, {"spec": {"ports": [{"port": 53, "$patch": "delete"}]}})
ok("delete an env", POD, container(env=[{"name": "A", "$patch": "delete"}]))
ok("replace the containers", POD, pod(containers=[{"$patch": "replace"}, {"name": "n", "tty": None}]))
ok("replace the containers, the directive last", POD, pod(
    containers=[{"name": "n2"}, {"name": "n1"}, {"name": "n2", "x": 1}, {"$patch": "replace"}]))
ok("replace and delete", POD, pod(
    containers=[{"$patch": "replace"}, {"name": "a"}, {"name": "a", "$patch": "delete"}]))
ok("replace by nothing", POD, pod(containers=[{"$patch": "replace"}]))
ok("replace an object", POD, pod(nodeSelector={"$patch": "replace", "a": "b"}))
ok("replace an object deep down", DEPLOYMENT, template(nodeSelector={"$patch": "replace"}))
ok("replace takes the rest as it is", DEPLOYMENT, {"spec": {"strategy": {
    "$patch": "replace", "type": None, "x": {"$patch": "delete"}, "$retainKeys": ["y"]}}})
ok("delete an object's members", POD, pod(nodeSelector={"$patch": "delete"}))
ok("delete a whole spec", DEPLOYMENT, {"spec": {"$patch": "delete", "replicas": 1}})
ok("replace the document", POD, {"$patch": "replace", "apiVersion": "v1", "kind": "Pod",
                                 "metadata": {"name": "y"}})
ok("a directive for what is not there", CLAIM, meta(annotations={"$patch": "delete"}))
ok("a directive in what is not there", CLAIM, meta(annotations={"x": {"$patch": "replace"},
                                                                "y": "z"}))
ok("directives in a list that is not there", {**POD, "spec": {}}, pod(
    containers=[{"$patch": "replace"}, {"name": "b", "$patch": "delete"}, {"name": "a"}]))
ok("a directive where a scalar was", CLAIM, {"spec": {"volumeName": {"$patch": "delete"}}})
bad("merge is no directive in an object", POD, pod(nodeSelector={"$patch": "merge", "a": "b"}))
bad("merge is no directive in a list", POD, pod(containers=[{"name": "a", "$patch": "merge"}]))
bad("an unknown directive", POD, pod(nodeSelector={"$patch": "destroy"}))
bad("an unknown directive in a list", POD, pod(containers=[{"name": "a", "$patch": "destroy"}]))
bad("a directive that is no string", POD, pod(nodeSelector={"$patch": None}))
bad("delete without the key", POD, pod(containers=[{"$patch": "delete"}]))

# $retainKeys.
ok("a volume changes its source", POD, pod(volumes=[
    {"name": "data", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}]))
ok("a volume without it has two sources", POD, pod(volumes=[
    {"name": "data", "hostPath": {"path": "/x"}}]))
ok("a new volume with it", POD, pod(volumes=[
    {"name": "new", "emptyDir": {}, "$retainKeys": ["name", "emptyDir"]}]))
ok("a strategy without its rolling update", DEPLOYMENT, {"spec": {"strategy": {
    "type": "Recreate", "$retainKeys": ["type"]}}})
ok("it may name what is only in the document", DEPLOYMENT, {"spec": {"strategy": {
    "type": "x", "$retainKeys": ["type", "rollingUpdate", "none"]}}})
ok("a null need not be named", DEPLOYMENT, {"spec": {"strategy": {
    "rollingUpdate": None, "$retainKeys": ["type"]}}})
ok("it works on every object", POD, meta(labels={"$retainKeys": ["app"]}))
ok("an empty one empties the object", POD, meta(labels={"$retainKeys": []}))
ok("lists with directives need not be named", POD, meta(**{
    "$retainKeys": ["name", "finalizers"], DELETE + "finalizers": ["f/1"],
    ORDER + "finalizers": ["f/3", "f/2"]}))
bad("a member that it does not name", DEPLOYMENT, {"spec": {"strategy": {
    "type": "x", "$retainKeys": ["rollingUpdate"]}}})
bad("not a list", DEPLOYMENT, {"spec": {"strategy": {"$retainKeys": "type"}}})

# $setElementOrder.
ok("order alone", POD, pod(**{ORDER + "containers": [{"name": n} for n in "cab"]}))
ok("order of some", POD, pod(**{ORDER + "containers": [{"name": n} for n in "cb"]}))
ok("order of some others", POD, pod(**{ORDER + "containers": [{"name": n} for n in "ca"]}))
ok("order of those that are not there", POD, pod(**{ORDER + "containers": [{"name": "z"}]}))
ok("order and a new one last", POD, pod(containers=[{"name": "d", "image": "D"}], **{
    ORDER + "containers": [{"name": n} for n in "abcd"]}))
ok("order and a new one between", POD, pod(containers=[{"name": "d"}, {"name": "b", "tty": True}], **{
    ORDER + "containers": [{"name": n} for n in "adcb"]}))
ok("order without one of the document's", POD, pod(containers=[{"name": "d"}], **{
    ORDER + "containers": [{"name": n} for n in "cda"]}))
ok("order and delete", POD, pod(containers=[{"name": "b", "$patch": "delete"}], **{
    ORDER + "containers": [{"name": n} for n in "ca"]}))
ok("order and delete, the directive first", POD, pod(
    containers=[{"name": "b", "$patch": "delete"}, {"name": "d"}, {"name": "a", "tty": True}],
    **{ORDER + "containers": [{"name": n} for n in "cda"]}))
ok("order, delete one and add one", POD, pod(
    containers=[{"name": "b", "$patch": "delete"}, {"name": "d"}],
    **{ORDER + "containers": [{"name": "a"}, {"name": "d"}]}))
ok("order, delete one and add two", POD, pod(
    containers=[{"name": "a", "$patch": "delete"}, {"name": "d"}, {"name": "e"}],
    **{ORDER + "containers": [{"name": n} for n in "dbe"]}))
ok("order, delete two and add one", POD, pod(
    containers=[{"name": "d"}, {"name": "a", "$patch": "delete"}, {"name": "c", "$patch": "delete"}],
    **{ORDER + "containers": [{"name": "d"}]}))
ok("order and replace", POD, pod(containers=[{"$patch": "replace"}, {"name": "y"}, {"name": "x"}],
                                 **{ORDER + "containers": [{"name": "y"}, {"name": "x"}]}))
ok("an empty order and replace", POD, pod(
    containers=[{"$patch": "replace"}, {"name": "x"}, {"name": "b"}, {"name": "a"}],
    **{ORDER + "containers": []}))
ok("order of a list that is not there", {**POD, "spec": {}}, pod(**{
    ORDER + "containers": [{"name": "a"}]}))
ok("order of a list that comes", {**POD, "spec": {}}, pod(
    containers=[{"name": "b", "image": None}, {"name": "a", "x": {"$patch": "delete"}}],
    **{ORDER + "containers": [{"name": "b"}, {"name": "a"}]}))
ok("an empty order and a new element", POD, pod(containers=[{"name": "d"}], **{
    ORDER + "containers": []}))
ok("an empty order, new elements and old ones", POD, pod(
    containers=[{"name": "d"}, {"name": "b"}, {"name": "e"}, {"name": "f"}, {"name": "a"}],
    **{ORDER + "containers": []}))
ok("order of finalizers", POD, meta(finalizers=["f/9"], **{
    ORDER + "finalizers": ["f/3", "f/9", "f/1"]}))
ok("order of finalizers, deletion too", POD, meta(**{
    DELETE + "finalizers": ["f/2"], ORDER + "finalizers": ["f/3", "f/1"]}))
ok("order of an atomic list of scalars", POD, container(**{ORDER + "args": ["y", "x"]}))
ok("order of env in a container", POD, pod(containers=[{"name": "a", "env": [
    {"name": "Z", "value": "26"}], ORDER + "env": [{"name": n} for n in "CZA"]}], **{
        ORDER + "containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}))
ok("order of service ports", SERVICE, {"spec": {ORDER + "ports": [{"port": 53}, {"port": 80}]}})
ok("as apply sends it", DEPLOYMENT, {
    "metadata": {"annotations": {"example.io/last": "{}"}},
    "spec": {"replicas": 2, "strategy": {"$retainKeys": ["type"], "type": "Recreate",
                                         "rollingUpdate": None},
             "template": {"spec": {
                 ORDER + "containers": [{"name": "a"}, {"name": "sidecar"}],
                 "containers": [
                     {"name": "a", "image": "img:9", ORDER + "env": [{"name": "A"}, {"name": "N"}],
                      "env": [{"name": "N", "value": "n"}, {"name": "B", "$patch": "delete"}]},
                     {"name": "sidecar", "image": "s:1"},
                     {"name": "b", "$patch": "delete"}, {"name": "c", "$patch": "delete"}],
                 ORDER + "volumes": [{"name": "data"}],
                 "volumes": [{"name": "conf", "$patch": "delete"}]}}}})
bad("the patch is in another order", POD, pod(containers=[{"name": "b"}, {"name": "a"}], **{
    ORDER + "containers": [{"name": "a"}, {"name": "b"}]}))
bad("the patch has one that the order has not", POD, pod(containers=[{"name": "d"}], **{
    ORDER + "containers": [{"name": "a"}]}))
bad("order that is no list", POD, pod(**{ORDER + "containers": "a"}))
bad("order of a null list", POD, pod(containers=None, **{ORDER + "containers": [{"name": "a"}]}))
bad("order without the key", POD, pod(**{ORDER + "containers": [{"image": "a"}]}))
bad("order that names no list", POD, pod(**{"$setElementOrder": [{"name": "a"}]}))
bad("order of an object", POD, pod(**{ORDER + "nodeSelector": ["a"]}))

# Beyond what kubectl can do.
BOGUS = {**CLAIM, "spec": {"bogus": {"a": 1}, "list": [{"name": "a"}]}}
differs("an unknown object merges by key", BOGUS, {"spec": {"bogus": {"b": 2}}},
        {**CLAIM, "spec": {"bogus": {"a": 1, "b": 2}, "list": [{"name": "a"}]}})
differs("an unknown list is replaced", BOGUS, {"spec": {"list": [{"name": "b"}]}},
        {**CLAIM, "spec": {"bogus": {"a": 1}, "list": [{"name": "b"}]}})
differs("order of nothing", {**POD, "spec": {"containers": []}}, pod(**{ORDER + "containers": []}),
        {**POD, "spec": {"containers": []}})
differs("order and replace, the directive last", POD, pod(
    containers=[{"name": "y"}, {"$patch": "replace"}], **{ORDER + "containers": [{"name": "y"}]}),
        {**POD, "spec": {**POD_SPEC, "containers": [{"name": "y"}]}})
refused("objects in a list of deletions", POD, pod(**{DELETE + "containers": [{"name": "a"}]}))
