# A job whose state has about so many bytes, for scripts that source this: weights and Adam's two slots of an mlp of two
# hidden layers, on Fashion-MNIST.

mlp_job() {  # NAME MIB STEPS SAVES: the job file; SAVES is its `checkpoint.every`.
  local width data=/usr/share/datasets/fashion-mnist
  width=$(awk -v mib="$2" 'BEGIN { b = 795; c = mib * 1048576 / 12; printf "%d", (sqrt(b * b + 4 * c) - b) / 2 }')
  cat <<JOB
name: $1
model:
  builtin: {name: mlp, hidden: [$width, $width], classes: 10}
  loss: softmax_cross_entropy
data:
  train: {inputs: $data/train-images-idx3-ubyte.gz, labels: $data/train-labels-idx1-ubyte.gz}
  normalize: {divide_by: 255, mean: 0.2860, std: 0.3530}
train:
  seed: 1
  duration: ${3}steps
  global_batch_size: 16
  logical_shards: 2
  optimizer: {name: adam, lr: 0.001}
checkpoint: {every: ${4}steps, keep_latest: 1}
JOB
}

median() { sort -n | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
