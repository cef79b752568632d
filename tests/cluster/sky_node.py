"""One node of a SkyPilot task: makes of its `setup` or `run` the script that SkyPilot makes, and runs it as SkyPilot does.

    sky_node.py FILE setup|run RANK ADDRESS…    the variables of the task and HOME are in the environment; ends with its code
"""

import os
import sys

from sky.backends import task_codegen
from sky.skylet import constants, log_lib
from sky.utils import dag_utils


def main(file, part, rank, addresses):
    given = [("LOCKSTEP_DIR", os.environ["LOCKSTEP_DIR"])]
    task = dag_utils.load_chain_dag_from_yaml(file, env_overrides=given).tasks[0]
    variables = dict(task.envs)
    variables[constants.SKYPILOT_NODE_RANK] = rank
    variables[constants.SKYPILOT_NODE_IPS] = "\n".join(addresses)
    variables[constants.SKYPILOT_NUM_NODES] = len(addresses)
    variables[constants.SKYPILOT_NUM_GPUS_PER_NODE] = 0
    os.makedirs(os.path.expanduser(constants.SKY_REMOTE_WORKDIR), exist_ok=True)
    script = task_codegen.TaskCodeGen.build_task_bash_script(task.run) if part == "run" else task.setup
    ended = log_lib.run_bash_command_with_log_and_return_pid(
        script, os.path.expanduser("~/log"), env_vars=variables, stream_logs=True)
    return ended["return_code"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
