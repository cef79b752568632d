"""Reads exported/ with TensorFlow itself: python3 check_exported.py exported

Needs tensorflow-cpu 2.21 and tf_keras from PyPI. The files are what chief/checkpoint/tensorflow_export writes for the
state of chief/checkpoint/tensorflow_test_state.h after 7 steps; tensorflow_golden_test holds that it still does. Element
i of tensor t of that state is t + i / 4.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy
import tensorflow as tf
import tf_keras

STEP = 7
folder = sys.argv[1]


def ramp(t, shape):
    return (t + numpy.arange(numpy.prod(shape, dtype=numpy.int64)) / 4).astype(numpy.float32).reshape(shape)


def places():
    return numpy.arange(4, dtype=numpy.int64) - 1


def model_values(weight, bias):
    return {"features/0/weight": ramp(weight, [3, 2]), "features/0/bias": ramp(bias, [3]),
            "norm/running_mean": ramp(2, [3]), "norm/num_batches_tracked": numpy.int64(STEP),
            "table": numpy.zeros([2, 0, 2], tf.bfloat16.as_numpy_dtype), "places": places()}


def adam_values():
    slot = "features/0/%s/.OPTIMIZER_SLOT/optimizer/%s"
    return {slot % ("weight", "m"): ramp(7, [3, 2]), slot % ("bias", "m"): ramp(8, [3]),
            slot % ("weight", "v"): ramp(9, [3, 2]), slot % ("bias", "v"): ramp(10, [3])}


class Model(tf.Module):
    """A module with the names of the state, its variables at other values."""

    def __init__(self):
        super().__init__()
        self.features = [tf.Module()]
        self.features[0].weight = tf.Variable(tf.fill([3, 2], 99.0))
        self.features[0].bias = tf.Variable(tf.fill([3], 99.0))
        self.norm = tf.Module()
        self.norm.running_mean = tf.Variable(tf.fill([3], 99.0))
        self.norm.num_batches_tracked = tf.Variable(99, dtype=tf.int64)
        self.table = tf.Variable(tf.zeros([2, 0, 2], tf.bfloat16))
        self.places = tf.Variable(tf.zeros([4], tf.int64))
        self.head = tf.Module()
        self.head.weight = self.features[0].weight

    def check(self, weight, bias):
        values = model_values(weight, bias)
        for name, variable in (("features/0/weight", self.head.weight), ("features/0/bias", self.features[0].bias),
                               ("norm/running_mean", self.norm.running_mean), ("places", self.places),
                               ("norm/num_batches_tracked", self.norm.num_batches_tracked), ("table", self.table)):
            equal(variable.numpy(), values[name])


def equal(a, b):
    a, b = numpy.asarray(a), numpy.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), (a, b)


def check_values(name, model, more):
    reader = tf.train.load_checkpoint(os.path.join(folder, name))
    expected = {"model/" + key: value for key, value in model.items()} | more
    expected = {key + "/.ATTRIBUTES/VARIABLE_VALUE": value for key, value in expected.items()}
    found = {key for key, _ in tf.train.list_variables(os.path.join(folder, name))}
    assert found == set(expected) | {"_CHECKPOINTABLE_OBJECT_GRAPH"}, found ^ set(expected)
    for key, value in expected.items():
        equal(reader.get_tensor(key), value)


def powers(steps):
    beta1, beta2 = numpy.float32(0.9), numpy.float32(0.999)
    power1, power2 = beta1, beta2
    for _ in range(steps):
        power1, power2 = power1 * beta1, power2 * beta2
    return power1, power2


def restored(name, **objects):
    """The status of restoring a new model, and the model."""
    model = Model()
    return tf.train.Checkpoint(model=model, **objects).restore(os.path.join(folder, name)), model


counter = {"save_counter": numpy.int64(1)}
of_optimizer = counter | {"optimizer/iter": numpy.int64(STEP)}
of_adam = of_optimizer | dict(zip(("optimizer/beta1_power", "optimizer/beta2_power"), powers(STEP)))
for name in ("adam", "sharded"):
    check_values(name, model_values(0, 1) | adam_values(), of_adam)
momentum = "features/0/%s/.OPTIMIZER_SLOT/optimizer/momentum"
check_values("sgd", model_values(0, 1) | {momentum % "weight": ramp(7, [3, 2]), momentum % "bias": ramp(8, [3])},
             of_optimizer)
check_values("weights", model_values(0, 1), counter)
check_values("average", model_values(13, 14), counter)
print("load_checkpoint and list_variables: every value is there, bit for bit, and nothing else")

for name, weight, bias in (("weights", 0, 1), ("average", 13, 14)):
    status, model = restored(name)
    status.assert_consumed()
    model.check(weight, bias)
for name in ("adam", "sharded", "sgd"):
    status, model = restored(name)
    status.assert_existing_objects_matched()
    model.check(0, 1)
print("tf.train.Checkpoint(model=...): assert_consumed of weights alone, assert_existing_objects_matched of all")

optimizer = tf.compat.v1.train.AdamOptimizer(0.5)
model = Model()
variables = [model.features[0].weight, model.features[0].bias]
optimizer.apply_gradients([(tf.zeros_like(v), v) for v in variables])
status = tf.train.Checkpoint(model=model, optimizer=optimizer).restore(os.path.join(folder, "adam"))
status.assert_existing_objects_matched()
for variable, first, second in zip(variables, (7, 8), (9, 10)):
    equal(optimizer.get_slot(variable, "m").numpy(), ramp(first, variable.shape))
    equal(optimizer.get_slot(variable, "v").numpy(), ramp(second, variable.shape))
optimizer.apply_gradients([(tf.ones_like(v), v) for v in variables])
power1, power2 = (p.astype(numpy.float64) for p in powers(STEP))
m = 0.9 * ramp(8, [3]) + 0.1
v = 0.999 * ramp(10, [3]) + 0.001
expected = ramp(1, [3]) - 0.5 * numpy.sqrt(1 - power2) / (1 - power1) * m / (numpy.sqrt(v) + 1e-8)
numpy.testing.assert_allclose(variables[1].numpy(), expected, rtol=1e-6)
print("tf.compat.v1.train.AdamOptimizer: slots and powers restored, and the next update is that of step 8")

optimizer = tf.compat.v1.train.MomentumOptimizer(0.5, 0.9)
model = Model()
variables = [model.features[0].weight, model.features[0].bias]
optimizer.apply_gradients([(tf.zeros_like(v), v) for v in variables])
tf.train.Checkpoint(model=model, optimizer=optimizer).restore(
    os.path.join(folder, "sgd")).assert_existing_objects_matched()
equal(optimizer.get_slot(variables[1], "momentum").numpy(), ramp(8, [3]))
print("tf.compat.v1.train.MomentumOptimizer: slots restored")

optimizer = tf_keras.optimizers.legacy.Adam(0.5)
status, model = restored("adam", optimizer=optimizer)
status.assert_existing_objects_matched()
variables = [model.features[0].weight, model.features[0].bias]
optimizer.apply_gradients([(tf.ones_like(v), v) for v in variables])  # which makes its variables, and restores them
assert optimizer.iterations.numpy() == STEP + 1
numpy.testing.assert_allclose(optimizer.get_slot(variables[1], "m").numpy(), m, rtol=1e-6)
print("tf_keras.optimizers.legacy.Adam: iterations and slots restored when it makes them")

assert tf.train.latest_checkpoint(folder) == os.path.join(folder, "adam")
print("latest_checkpoint: finds the newest")
