# Pods that `podman kube play` of podman 4.3 can run, out of what kustomize made (as one array of documents). It has no
# Jobs, Services, probes without systemd, addresses of pods and variables from Secrets, so that:
#   * a Job becomes the pod `lockstep-chief`, which podman starts again when it fails; its DNS knows that name
#   * a Deployment becomes the pods `NAME-0`, `NAME-1`, …, whose --peer-host is their name
#   * a variable from a Secret has the value of $token, all variables of a Secret are $keys; probes and published ports go
#   * init containers go, whose end podman 4.3 misses at times: the test runs them before
# Everything else stays as it is: arguments, users, rights, read-only roots, volumes, limits, time to end.
def variables: [(.env // [])[] | select(.name != "POD_IP")
    | if .valueFrom.secretKeyRef then {name, value: $token} else . end]
  + [select(.envFrom) | $keys | to_entries[] | {name: .key, value}];

def pod($name; $restart): {apiVersion: "v1", kind: "Pod", metadata: {$name, labels: .metadata.labels},
  spec: (.spec | .restartPolicy = $restart | del(.initContainers)
    | .containers |= map(.env = variables | del(.ports, .readinessProbe, .envFrom)
      | .args |= map(gsub("\\$\\(POD_IP\\)"; $name))))};

.[]
| if .kind == "Job" then .spec.template | pod("lockstep-chief"; "OnFailure")
  elif .kind == "Deployment" then . as $d | range(.spec.replicas) as $n
    | $d.spec.template | pod("\($d.metadata.name)-\($n)"; "Always")
  elif .kind == "ConfigMap" or .kind == "PersistentVolumeClaim" then .
  else empty end
