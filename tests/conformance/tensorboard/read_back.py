"""Reads the events of a job with the real TensorBoard, and fails where it shows something else than it should.

Run by hand, when the job has ended:

    python3 -m venv /some/where && /some/where/bin/pip install tensorboard
    /some/where/bin/python tests/conformance/tensorboard/read_back.py DIR [STEPS]

DIR is the directory of a job, STEPS how many it trained. Three readers are asked: the event accumulator, and the HTTP
interface of a server with each of TensorBoard's loaders, the one in Python and the one in Rust.
"""

import glob
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from google.protobuf import text_format
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.compat.proto import graph_pb2
from tensorboard.compat.proto import meta_graph_pb2

failures = 0


def expect(condition, what):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", what)


def check_curves(curves, steps):
    """`curves`: (step, value) by tag, as a reader gives them."""
    for tag, points in sorted(curves.items()):
        if not points:
            expect(False, f"{tag} has values")
            continue
        told = [step for step, _ in points]
        if not tag.startswith("evaluation/"):  # made again after a kill, one may stand there twice
            expect(all(a < b for a, b in zip(told, told[1:])), f"{tag}: a step counts twice or comes late")
        print(f"    {tag}: {len(told)} values, steps {told[0]} to {told[-1]}, the last {points[-1][1]:.6g}")
    for tag in ("loss", "learning_rate", "samples_per_second", "cluster/workers", "cluster/lost", "cluster/chief_starts"):
        expect(tag in curves, f"{tag} is shown")
    expect(any(re.fullmatch(r"worker/.*/step_ms", tag) for tag in curves), "a worker's step time is shown")
    for tag in ("loss", "learning_rate"):
        if tag in curves and steps:
            expect(curves[tag][-1][0] == steps, f"{tag} ends with step {steps}")


def check_graph(graph):
    names = {node.name for node in graph.node}
    expect(len(names) == len(graph.node), "names of nodes are unique")
    for node in graph.node:
        for source in node.input:
            expect(source.split(":")[0] in names, f"{node.name} reads {source}, which is there")
    tops = {name.split("/")[0] for name in names}
    shapes = sum(1 for node in graph.node if node.attr["_output_shapes"].list.shape)
    edges = sum(len(node.input) for node in graph.node)
    print(f"    graph: {len(names)} nodes, {edges} edges, {len(tops)} at the top, {shapes} with shapes")


def check_files(directory):
    graphs, metagraphs = [], []
    for path in sorted(glob.glob(os.path.join(directory, "*tfevents*"))):
        events = list(event_file_loader.LegacyEventFileLoader(path).Load())
        graphs += [e.graph_def for e in events if e.HasField("graph_def")]
        metagraphs += [e.meta_graph_def for e in events if e.HasField("meta_graph_def")]
        print(f"    {os.path.basename(path)}: {len(events)} events")
    expect(len(graphs) == 1, f"one graph event, not {len(graphs)}")
    expect(len(metagraphs) == 1, f"one metagraph event, not {len(metagraphs)}")
    for data in metagraphs:
        print("    metagraph", meta_graph_pb2.MetaGraphDef.FromString(data).meta_info_def.meta_graph_version)


def check_accumulator(directory, steps):
    accumulator = event_accumulator.EventAccumulator(directory, size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    tags = accumulator.Tags()
    check_curves({tag: [(e.step, e.value) for e in accumulator.Scalars(tag)] for tag in tags["scalars"]}, steps)
    expect(tags["graph"] and tags["meta_graph"], "there are a graph and a metagraph")
    check_graph(accumulator.Graph())
    for tag in tags["tensors"]:
        for event in accumulator.Tensors(tag):
            if not event.tensor_proto.string_val:
                continue  # a histogram
            print(f"    {tag} at step {event.step}: {event.tensor_proto.string_val[0].decode()!r:.160}")


def check_histograms(histograms):
    """`histograms`: (step, [(left, right, count)]) by tag, as a reader gives them."""
    for tag, points in sorted(histograms.items()):
        for step, buckets in points:
            expect(buckets, f"{tag} at step {step} has buckets")
            expect(all(a[1] < b[1] for a, b in zip(buckets, buckets[1:])), f"{tag} at step {step}: buckets rise")
        step, buckets = points[-1]
        print(f"    histogram {tag}: {len(points)}, the last at step {step}: {sum(b[2] for b in buckets):.0f} values "
              f"from {buckets[0][0]:.4g} to {buckets[-1][1]:.4g}")


class Server:
    def __init__(self, directory, fast):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", directory, "--port", "0", "--load_fast", fast,
             "--samples_per_plugin", "scalars=1000000,text=1000"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if found := re.search(r"(http://\S+)", line.replace(" at ", " ")):
                self.url = found[1].rstrip("/")
                if "Press CTRL+C" in line:
                    return
        raise RuntimeError("TensorBoard did not start")

    def get(self, path, **query):
        url = f"{self.url}/data/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read().decode()

    def close(self):
        self.process.terminate()
        self.process.wait()


def check_server(directory, steps, fast):
    server = Server(directory, fast)
    try:
        runs = []
        while not runs:
            time.sleep(0.1)
            runs = json.loads(server.get("runs"))
        expect(len(runs) == 1, f"one run, not {runs}")
        run = runs[0]
        for _ in range(100):  # the server is still reading
            time.sleep(0.1)
            tags = json.loads(server.get("plugin/scalars/tags"))[run]
            curves = {tag: [(step, value) for _, step, value
                            in json.loads(server.get("plugin/scalars/scalars", run=run, tag=tag))] for tag in tags}
            if all(curves.values()) and (not steps or curves.get("loss", [(0, 0)])[-1][0] == steps):
                break
        check_curves(curves, steps)
        expect(json.loads(server.get("plugin/graphs/info"))[run]["run_graph"], "the graph tab has a graph")
        graph = server.get("plugin/graphs/graph", run=run, limit_attr_size=1024, large_attrs_key="_too_large_attrs")
        check_graph(text_format.Parse(graph, graph_pb2.GraphDef()))
        for tag in json.loads(server.get("plugin/text/tags"))[run]:
            texts = json.loads(server.get("plugin/text/text", run=run, tag=tag))
            print(f"    text {tag}: {len(texts)}, the last at step {texts[-1]['step']}: {texts[-1]['text']!r:.120}")
        check_histograms({tag: [(step, buckets) for _, step, buckets
                                in json.loads(server.get("plugin/histograms/histograms", run=run, tag=tag))]
                          for tag in json.loads(server.get("plugin/histograms/tags")).get(run, {})})
    finally:
        server.close()


def main():
    directory = os.path.join(sys.argv[1], "events")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    print("files")
    check_files(directory)
    print("event accumulator")
    check_accumulator(directory, steps)
    for fast in ("false", "true"):
        print(f"server, --load_fast={fast}")
        check_server(directory, steps, fast)
    print("FAILED" if failures else "passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
