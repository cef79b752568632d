"""Writes a PyTorch model as the ONNX file that a job trains."""

import contextlib
import functools
import os
import warnings

# Protocol buffers end at 2 GiB; the weights of larger models lie in a file beside the model.
_LARGEST_FILE = 1_500_000_000


def export(model, example, path, *, opset=20):
    """Writes `model` to `path` for a job's `model.onnx`, with its present weights.

    `example` is a tensor, or a tuple of them, one per argument of `forward`, batches first. The batch stays open where the
    model allows it; else a warning says for which batch the file is. Layers are exported as they stand: call
    `model.train()` first, and `eval()` on those that are not to train. The model itself is not changed.

    Returns `path`. Raises ValueError for a model that cannot be trained from a file: other parameters than float32, a
    tensor or a setting that the file lost.
    """
    import torch

    inputs = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    state = model.state_dict()
    _check(model, state)
    kept = {name: value.detach().clone() for name, value in state.items()}
    smoothed = []
    try:
        with _noting_smoothing(smoothed):
            _export(model, inputs, path, opset, external=_bytes(state) > _LARGEST_FILE)
    finally:
        with torch.no_grad():
            model.load_state_dict(kept)  # the exporter runs the model, which may move its buffers
    if smoothed:
        for written in (path, f"{os.fspath(path)}.data"):
            if os.path.exists(written):
                os.remove(written)
        raise ValueError(f"the model's cross_entropy has label_smoothing={smoothed[0]}, which PyTorch's exporter leaves out "
                         "of the file. Return the scores and set model.label_smoothing in the job, or write the smoothed "
                         "loss in forward")
    _annotate(model, path)
    _compare(model, path)
    return path


@contextlib.contextmanager
def _noting_smoothing(found):
    """Adds to `found` what cross_entropy is called with meanwhile."""
    import torch.nn.functional as functional

    original = functional.cross_entropy

    @functools.wraps(original)
    def cross_entropy(*args, **settings):
        smoothing = settings.get("label_smoothing", args[7] if len(args) > 7 else 0.0)
        if smoothing:
            found.append(smoothing)
        return original(*args, **settings)

    functional.cross_entropy = cross_entropy
    try:
        yield
    finally:
        functional.cross_entropy = original


def _bytes(state):
    return sum(value.numel() * value.element_size() for value in state.values())


def _check(model, state):
    import torch

    other = [name for name, value in model.named_parameters() if value.dtype != torch.float32]
    if other:
        raise ValueError(f"parameters are trained in float32; {other[0]} is {model.get_parameter(other[0]).dtype}. Call "
                         "model.float() and set train.precision in the job")
    if not any(value.requires_grad for value in model.parameters()):
        raise ValueError("no parameter of the model has requires_grad=True, so that nothing would train")
    odd = [name for name in state if "\n" in name or "=" in name]
    if odd:
        raise ValueError(f"the name {odd[0]!r} holds a line break or an equals sign")
    if not model.training:
        warnings.warn("the model is in eval(): dropout and batch normalisation will not train. Call model.train() first",
                      stacklevel=3)


def _export(model, inputs, path, opset, external):
    import torch

    call = dict(optimize=False, verbose=False, external_data=external, opset_version=opset)
    batch = torch.export.Dim("batch")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _call_exporter(model, inputs, path, dynamic_shapes=tuple({0: batch} for _ in inputs), **call)
        return
    except Exception as error:  # the exporter's own kinds differ from version to version
        why = str(error).strip().splitlines()[:1]
    _call_exporter(model, inputs, path, **call)
    warnings.warn(f"the file is for batches of {inputs[0].shape[0]} alone, which train.micro_batch has to be: with an open "
                  f"batch the exporter said {why}", stacklevel=3)


def _call_exporter(model, inputs, path, **call):
    """Fused attention with a bias has other strides in PyTorch's exporter than in its decomposition, and is refused as a
    tensor that it cannot view: such a model is exported with attention in single steps, which compute the same."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    try:
        torch.onnx.export(model, inputs, path, **call)
    except Exception as error:
        if "Cannot view a tensor" not in str(error):
            raise
        with sdpa_kernel(SDPBackend.MATH):
            torch.onnx.export(model, inputs, path, **call)


def _trains(model, buffer):
    """Whether the layer that counts its steps in `buffer` trains."""
    return model.get_submodule(buffer.rpartition(".")[0]).training


def _is_count(name):
    return name.rpartition(".")[2] == "num_batches_tracked"


def _same(a, b):
    return (a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype and
            a.numel() > 0)


def _annotate(model, path):
    """Adds what the exporter left out."""
    import onnx
    from onnx import numpy_helper

    file = onnx.load(path, load_external_data=False)
    held = {tensor.name for tensor in file.graph.initializer}
    state = model.state_dict(keep_vars=True)
    tied = {}
    for name, value in state.items():
        # The count of a layer that trains is the number of the step, which the job knows.
        if name in held or (_is_count(name) and _trains(model, name)):
            continue
        first = next((other for other in state if other in held and other != name and _same(state[other], value)), None)
        if first is not None:
            tied[name] = first
        else:
            file.graph.initializer.append(numpy_helper.from_array(value.detach().cpu().contiguous().numpy(), name))
            held.add(name)
    frozen = sorted({tied.get(name, name) for name, value in model.named_parameters(remove_duplicate=False)
                     if not value.requires_grad})
    notes = {"lockstep.frozen": "\n".join(frozen),
             "lockstep.tied": "\n".join(f"{second}={first}" for second, first in sorted(tied.items()))}
    others = [entry for entry in file.metadata_props if entry.key not in notes]
    del file.metadata_props[:]
    file.metadata_props.extend(others)
    for key, value in notes.items():
        file.metadata_props.add(key=key, value=value)
    onnx.save(file, path)


def _compare(model, path):
    """Raises ValueError unless the file holds the model's state."""
    import numpy
    import onnx
    from onnx import numpy_helper

    file = onnx.load(path)
    tensors = {tensor.name: tensor for tensor in file.graph.initializer}
    notes = {entry.key: entry.value for entry in file.metadata_props}
    tied = dict(line.split("=") for line in notes["lockstep.tied"].splitlines())
    for name, value in model.state_dict().items():
        if _is_count(name) and _trains(model, name):
            continue
        tensor = tensors.get(tied.get(name, name))
        if tensor is None:
            raise ValueError(f"{os.fspath(path)} does not hold {name}")
        if not numpy.array_equal(numpy_helper.to_array(tensor), value.detach().cpu().numpy(), equal_nan=True):
            raise ValueError(f"{os.fspath(path)} holds other values of {name} than the model")
