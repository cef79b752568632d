"""A Ray cluster on this machine: a head without processors for tasks, and nodes with one each. Says its address, then obeys
the lines of its input: `add NAME`, `kill NAME`. Ends, and all of it, with its input."""

import sys

from ray.cluster_utils import Cluster


def main():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    print(cluster.address, flush=True)
    nodes = {}
    for line in sys.stdin:
        verb, name = line.split()
        if verb == "add":
            nodes[name] = cluster.add_node(num_cpus=1, resources={name: 1})
        else:
            cluster.remove_node(nodes.pop(name), allow_graceful=False)
        print(verb, name, flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
