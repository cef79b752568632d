"""What the workers of a job did, as rows."""

import json
import pathlib


def stats(directory):
    """One dictionary per worker of a job's directory, with the same keys in each: what `pandas.DataFrame` takes.

    The columns are those of docs/formats/worker_stats.md, with `job_step` and `job_ended` of the job beside them.
    """
    file = json.loads((pathlib.Path(directory) / "stats" / "worker_stats.json").read_text())
    job = file.get("job", {})
    return [{**worker, "job_step": job.get("step"), "job_ended": job.get("ended", "")} for worker in file["workers"]]
