"""Writes the node cases of the installed onnx package, as folders that onnx_case.cc reads.

    python3 tests/conformance/onnx/newest_cases.py DIR

Makes DIR/node/CASE/{model.onnx, test_data_set_0/{input,output}_N.pb}.
"""
import pathlib
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def write(value, name, path):
    if isinstance(value, onnx.TensorProto):
        message = value
    elif isinstance(value, (numpy.ndarray, numpy.generic)):
        message = numpy_helper.from_array(numpy.asarray(value), name)
    else:
        message = onnx.SequenceProto()  # no tensor: the reader says so
    path.write_bytes(message.SerializeToString())


def main():
    target = pathlib.Path(sys.argv[1]) / "node"
    count = 0
    for case in collect_testcases(None):
        folder = target / case.name
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        inputs, outputs = case.data_sets[0]
        for values, names, kind in ((inputs, case.model.graph.input, "input"), (outputs, case.model.graph.output, "output")):
            for i, (value, info) in enumerate(zip(values, names)):
                write(value, info.name, data / f"{kind}_{i}.pb")
        count += 1
    print(f"onnx {onnx.__version__}: {count} cases")


if __name__ == "__main__":
    main()
