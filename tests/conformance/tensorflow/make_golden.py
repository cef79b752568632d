"""Writes golden/ with TensorFlow itself: python3 make_golden.py golden

Needs tensorflow-cpu 2.21 from PyPI. `objects` is a tf.train.Checkpoint of nested modules with an optimizer, `names` one
of tf.compat.v1.train.Saver in two data files, `partitioned` one with a partitioned variable. Element i of variable n has
the value n + i / 4, of integers n + i; variables count from 1 as they are made here.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
made = 0


def values(shape, dtype):
    global made
    made += 1
    count = int(numpy.prod(shape, dtype=numpy.int64))
    ramp = numpy.arange(count) * (0.25 if dtype.is_floating else 1) + made
    return tf.cast(tf.constant(ramp.reshape(shape)), dtype)


def variable(shape, dtype=tf.float32):
    return tf.Variable(values(shape, dtype))


class Layer(tf.Module):
    def __init__(self, inputs, outputs, dtype):
        super().__init__()
        self.weight = variable([outputs, inputs])
        self.bias = variable([outputs], dtype)


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.features = [Layer(2, 3, tf.bfloat16), Layer(3, 4, tf.float16)]
        self.norm = tf.Module()
        self.norm.count = variable([], tf.int64)
        self.by_name = {"a/b.c": variable([2])}
        self.none = variable([0, 2])
        self.many = [variable([]) for _ in range(40)]
        self.zz_tied = self.features[0].weight


def write_objects(prefix):
    model = Model()
    optimizer = tf.compat.v1.train.AdamOptimizer(0.0)
    weights = [model.features[0].weight, model.features[1].weight]
    optimizer.apply_gradients([(tf.ones_like(weight), weight) for weight in weights])
    for weight in weights:
        for slot in ("m", "v"):
            optimizer.get_slot(weight, slot).assign(values(weight.shape, tf.float32))
    tf.train.Checkpoint(model=model, optimizer=optimizer).write(prefix)


def write_names(prefix, partitioner=None):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        shapes = {"dense/kernel": [4, 3], "dense/bias": [3], "model/out": [2]}
        made_here = {}
        for i, (name, shape) in enumerate(shapes.items()):
            with tf.device(f"/cpu:{i % 2}"):
                made_here[name] = tf.compat.v1.get_variable(
                    name, shape, initializer=lambda shape, dtype, **_: values(shape, dtype), use_resource=True,
                    partitioner=partitioner if name == "dense/kernel" else None)
        if partitioner is None:
            step = tf.compat.v1.train.get_or_create_global_step()
            loss = tf.add_n([tf.reduce_sum(v) for v in made_here.values()])
            tf.compat.v1.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(sharded=True)
        saver.save(session, prefix, write_meta_graph=False, write_state=False)


folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
write_objects(os.path.join(folder, "objects"))
made = 0
write_names(os.path.join(folder, "names"))
made = 0
write_names(os.path.join(folder, "partitioned"), tf.compat.v1.fixed_size_partitioner(2))
for name in ("objects", "names", "partitioned"):
    for key, shape in tf.train.list_variables(os.path.join(folder, name)):
        print(name, key, shape)
