"""Brings the weights of a job back into a PyTorch model."""

import json
import os
import pathlib
import struct

_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
          "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool"}
_LARGEST_HEADER = 100_000_000


def load(place, model, *, step=None, best=False, ema=False, strict=True):
    """Loads trained weights into `model`, as `model.load_state_dict` does, and returns what that returns.

    `place`: a job's directory (its newest checkpoint, that of `step`, or the `best`), the folder of one checkpoint, or a
    safetensors file. `ema`: the average of the weights (train.ema).
    """
    return model.load_state_dict(read_weights(place, step=step, best=best, ema=ema), strict=strict)


def read_weights(place, *, step=None, best=False, ema=False):
    """The weights of `place` as a dictionary of tensors by their names; see `load`."""
    if str(place).startswith("s3://"):
        raise ValueError(f"{place} is in a bucket; `lockstep checkpoint export {place} -o w.safetensors` writes a file")
    path = pathlib.Path(place)
    if path.is_file():
        if step is not None or best or ema:
            raise ValueError(f"{path} is one file; step, best and ema are of a job's directory")
        return dict(_tensors(path))
    folder = path if (path / "manifest.json").is_file() else checkpoint_folder(path, step=step, best=best)
    if ema:
        folder = folder / "ema"
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder.parent} has no average of its weights (train.ema)")
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{folder} holds no weights")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = set(json.loads(index.read_text())["weight_map"].values())
        missing = names - {file.name for file in files}
        if missing:
            raise FileNotFoundError(f"{folder} lacks {sorted(missing)[0]}; `lockstep checkpoint verify` tells more")
    weights = {}
    for file in files:
        weights.update(_tensors(file))
    return weights


def checkpoint_folder(directory, *, step=None, best=False):
    """The folder of a checkpoint that counts: the newest, that of `step`, or the best."""
    directory = pathlib.Path(directory)
    record = _newest_record(directory)
    if best:
        if not record.get("best"):
            raise FileNotFoundError(f"{directory} has no best checkpoint (checkpoint.keep_best)")
        return directory / record["best"]
    live = {entry["step"]: directory / entry["prefix"] for entry in record.get("live", [])}
    if not live or (step is not None and step not in live):
        raise FileNotFoundError(f"{directory} has no checkpoint" + ("" if step is None else f" of step {step}"))
    return live[max(live) if step is None else step]


def _newest_record(directory):
    """The newest record of the job's log that can be read; {} where there is none."""
    for entry in sorted(directory.glob("log/*/record.json"))[:8]:
        try:
            return json.loads(entry.read_text())
        except ValueError:
            continue
    return {}


def _tensors(path):
    """The tensors of a safetensors file, by name."""
    import torch

    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else _LARGEST_HEADER + 1
        if length > min(_LARGEST_HEADER, size):
            raise ValueError(f"{path} is no safetensors file")
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            file.seek(8 + length + begin)
            data = bytearray(file.read(end - begin))
            if len(data) != end - begin:
                raise ValueError(f"{path} ends in {name}; copy it again")
            dtype = getattr(torch, _TYPES[entry["dtype"]])
            flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
            yield name, flat.reshape(entry["shape"])
